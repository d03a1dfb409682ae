"""Agents that die before they have begun to work: the next one would, too. What they said is the reason."""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Reason, Stop


def guard(history: History, limits: Limits, now: float) -> Stop | None:
    if not limits.crash_loop or history.crashes < limits.crash_loop:
        return None
    return Stop(Reason.CRASH_LOOP, f"the agent died within a second {history.crashes} times in a row: {history.crash}")
