"""The time limit of a run. The running agent is stopped by its own timeout; this guard starts no new work."""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Reason, Stop


def guard(history: History, limits: Limits, now: float) -> Stop | None:
    taken = now - history.started
    if not limits.max_time or taken < limits.max_time:
        return None
    return Stop(Reason.TIME_CAP, f"the run took {_told(taken)}; the limit is {_told(limits.max_time)}")


def _told(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02} m" if minutes >= 60 else f"{minutes} m {rest:02} s"
