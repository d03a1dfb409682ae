"""Wait with a journal record at the start and at the end; a stop request ends the wait at once."""

from __future__ import annotations

import time
from collections.abc import Callable

from ralph.core.events import WaitEnded, WaitStarted
from ralph.host.process.signals import StopSignal
from ralph.journal.records import Journal

LOOK = 0.2
"""Seconds between checks of the wall clock (a laptop may have slept) and of user requests."""
_SLOWER = 1.001
"""How much slower a clock may run while it is being corrected."""


def wait(
    journal: Journal,
    stop: StopSignal,
    clock: Callable[[], float],
    until: float,
    why: str,
    is_enough: Callable[[], bool] = lambda: False,
) -> bool:
    """Wait; return whether the run should stop. If the clock is set back, elapsed real time ends the wait."""
    journal.write(WaitStarted(until, why))
    last = time.monotonic() + max(until - clock(), 0) * _SLOWER + 1
    while (left := min(until - clock(), last - time.monotonic())) > 0 and not is_enough():
        if stop.wait(min(left, LOOK)):
            break
    journal.write(WaitEnded())
    return stop.requested
