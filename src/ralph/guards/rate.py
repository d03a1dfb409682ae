"""Agent starts and tokens per hour, in a sliding window that includes earlier runs of the workspace."""

from __future__ import annotations

from collections.abc import Sequence

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Wait

_HOUR = 3600.0


def guard(history: History, limits: Limits, now: float) -> Wait | None:
    waits = []
    starts = [(call, 1) for call in history.calls]
    for most, used, what in (
        (limits.rate_per_hour, starts, "agent start"),
        (limits.tokens_per_hour, history.used, "token"),
    ):
        recent = sorted((min(when, now), count) for when, count in used if when > now - _HOUR)
        total = sum(count for _, count in recent)
        if most and total >= most:
            until = _when_below(recent, total, most) + _HOUR
            many = "" if total == 1 else "s"
            waits.append(Wait(until, f"{total:,} {what}{many} in the last hour; the cap is {most:,}"))
    return max(waits, key=lambda wait: wait.until, default=None)


def _when_below(recent: Sequence[tuple[float, int]], total: int, most: int) -> float:
    """When the oldest uses leave the window, the time of the one that brings the total below the limit."""
    for when, count in recent:
        total -= count
        if total < most:
            return when
    return recent[-1][0]
