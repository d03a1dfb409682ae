"""Agent starts per hour, in a sliding window."""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Wait

_HOUR = 3600.0


def guard(history: History, limits: Limits, now: float) -> Wait | None:
    if not limits.rate_per_hour:
        return None
    recent = sorted(call for call in history.calls if now - _HOUR < call <= now)
    if len(recent) < limits.rate_per_hour:
        return None
    until = recent[-limits.rate_per_hour] + _HOUR
    return Wait(until, f"{len(recent)} agent starts in the last hour, and the cap is {limits.rate_per_hour}")
