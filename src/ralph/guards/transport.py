"""The connection to the model failed or its answer was empty: retry with growing pauses, then give up."""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Reason, Stop, Wait
from ralph.core.verdict import Kind

_FIRST, _LONGEST = 2.0, 300.0


def guard(history: History, limits: Limits, now: float) -> Stop | Wait | None:
    count, said = history.transport, history.transport_said
    if not count or history.last_kind is not Kind.TRANSPORT:
        return None
    if count > limits.max_transport:
        return Stop(Reason.TRANSPORT, f"the connection to the model failed {count} times in a row; last error: {said}")
    since = min(history.last_ended, now)
    pause = min(max(_FIRST * 2 ** (count - 1), history.transport_until - since), _LONGEST)
    until = since + pause
    told = f"the connection to the model failed (attempt {count})" + (f" ({said})" if said else "")
    return Wait(until, told) if until > now else None
