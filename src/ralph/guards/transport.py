"""The way to the model is broken: try again with growing pauses, and give up after a few."""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Reason, Stop, Wait

_FIRST, _LONGEST = 2.0, 300.0


def guard(history: History, limits: Limits, now: float) -> Stop | Wait | None:
    if not history.transport:
        return None
    if history.transport > limits.max_transport:
        return Stop(Reason.TRANSPORT, f"{history.transport} failures in a row on the way to the model")
    until = history.last_ended + min(_FIRST * 2 ** (history.transport - 1), _LONGEST)
    return Wait(until, f"failure {history.transport} on the way to the model") if until > now else None
