"""How long a run may take. The agent at work is ended in time by its own limit; this one starts nothing new."""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Reason, Stop


def guard(history: History, limits: Limits, now: float) -> Stop | None:
    taken = now - history.started
    if not limits.max_time or taken < limits.max_time:
        return None
    return Stop(Reason.TIME_CAP, f"{taken:.0f} s, and the run may take {limits.max_time:.0f} s")
