"""The run's circuit breaker: stop when nothing gets proven or the same error keeps coming back.

Each story also has its own breaker, which sets the story aside; see `decide`.
"""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits, OnStuck
from ralph.core.moves import Reason, Stop


def guard(history: History, limits: Limits, now: float) -> Stop | None:
    streak = history.streak
    if limits.same_error and streak.same_error >= limits.same_error and _is_the_runs(history, limits):
        return Stop(Reason.SAME_ERROR, _told(f"the same error {streak.same_error} times in a row", streak.said))
    if limits.on_stuck is OnStuck.NEXT:
        if limits.no_progress and history.stuck >= limits.no_progress:
            return Stop(Reason.NO_PROGRESS, f"{history.stuck} stories in a row were set aside")
    elif limits.no_progress and streak.no_progress >= limits.no_progress:
        return Stop(
            Reason.NO_PROGRESS, _told(f"{streak.no_progress} iterations in a row without progress", streak.said)
        )
    return None


def _is_the_runs(history: History, limits: Limits) -> bool:
    """With `on_stuck: next`, an error seen in only one story sets that story aside instead of stopping the run."""
    return limits.on_stuck is OnStuck.STOP or len(history.error_from) > 1


def _told(what: str, said: str) -> str:
    return f"{what}; last failure: {said}" if said else what
