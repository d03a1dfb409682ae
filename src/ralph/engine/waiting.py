"""A wait, wherever it comes: a record when it begins, one when it is over, and nobody who wants to stop is kept."""

from __future__ import annotations

import time
from collections.abc import Callable

from ralph.core.events import WaitEnded, WaitStarted
from ralph.host.signals import StopSignal
from ralph.journal.writing import Journal

LOOK = 0.2
"""Seconds between looks: at the wall clock, a laptop may have slept; and at what people want."""
_SLOWER = 1.001
"""A clock that is being corrected may be as much slower than the other one."""


def wait(
    journal: Journal,
    stop: StopSignal,
    clock: Callable[[], float],
    until: float,
    why: str,
    is_enough: Callable[[], bool] = lambda: False,
) -> bool:
    """Whether the run is to stop. Where the clock is set back, it ends when as much time has really passed."""
    journal.write(WaitStarted(until, why))
    last = time.monotonic() + max(until - clock(), 0) * _SLOWER + 1
    while (left := min(until - clock(), last - time.monotonic())) > 0 and not is_enough():
        if stop.wait(min(left, LOOK)):
            break
    journal.write(WaitEnded())
    return stop.requested
