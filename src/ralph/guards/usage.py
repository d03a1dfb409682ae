"""The usage limit of the agent's account: wait until it resets, then go on with the same story."""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Reason, Stop, Wait


def guard(history: History, limits: Limits, now: float) -> Stop | Wait | None:
    if not history.limit_seen:
        return None
    until = history.limit_until
    if until is None:
        until = history.last_ended + limits.unknown_reset_wait
    until = min(until, history.last_ended + limits.longest_wait)
    if until <= now:
        return None
    if limits.exit_on_limit:
        return Stop(Reason.USAGE_LIMIT, "the usage limit is reached")
    return Wait(until, "the usage limit is reached")
