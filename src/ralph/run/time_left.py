"""How much of the run's own time limit is left."""

from __future__ import annotations

import time

from ralph.core.events import Record, Resumed


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
