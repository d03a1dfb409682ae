"""Stop when agents keep crashing at startup: the next one would crash too. The last output is the reason."""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Reason, Stop


def guard(history: History, limits: Limits, now: float) -> Stop | None:
    if not limits.crash_loop or history.crashes < limits.crash_loop:
        return None
    return Stop(
        Reason.CRASH_LOOP,
        f"the agent crashed within a second of starting, {history.crashes} times in a row: {history.crash}",
    )
