"""Waiting, with a journal record at the start and at the end, and the time that a run has left."""

from __future__ import annotations

import time
from collections.abc import Callable

from ralph.core.events import Record, Resumed, WaitEnded, WaitStarted
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
    """Wait; return whether the run should stop, which ends the wait at once.

    If the clock is set back, elapsed real time ends the wait.
    """
    journal.write(WaitStarted(until, why))
    last = time.monotonic() + max(until - clock(), 0) * _SLOWER + 1
    while (left := min(until - clock(), last - time.monotonic())) > 0 and not is_enough():
        if stop.wait(min(left, LOOK)):
            break
    journal.write(WaitEnded())
    return stop.requested


class TimeLeft:
    """By the monotonic clock: a change of the system time does not end a running agent. Pauses are not counted."""

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._begun = time.monotonic()

    def listen(self, record: Record) -> None:
        if isinstance(record.event, Resumed):
            self._begun += record.event.seconds

    def __call__(self) -> float | None:
        return self._longest - (time.monotonic() - self._begun) if self._longest else None
