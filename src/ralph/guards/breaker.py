"""The circuit breaker: stop when nothing gets proven, or the same error comes back again and again."""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Reason, Stop


def guard(history: History, limits: Limits, now: float) -> Stop | None:
    if limits.same_error and history.same_error >= limits.same_error:
        return Stop(Reason.SAME_ERROR, f"the same error {history.same_error} times in a row")
    if limits.no_progress and history.no_progress >= limits.no_progress:
        return Stop(Reason.NO_PROGRESS, f"{history.no_progress} iterations in a row without anything accepted")
    return None
