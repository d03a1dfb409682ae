"""The wall clock as a run sees it: it never goes back.

If the system's clock is set back, this one continues from where it was, by the monotonic clock: waits do not get
longer, elapsed times stay right, and the times in the journal keep their order. It follows a clock that is set forward,
because a computer that slept has missed time that the monotonic clock does not count.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class SteadyClock:
    def __init__(self, wall: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._last = wall()
        self._at = monotonic()

    def __call__(self) -> float:
        with self._lock:
            now = self._monotonic()
            # Monotonic time that has passed since the last call counts, whatever the system's clock says.
            self._last = max(self._wall(), self._last + max(now - self._at, 0.0) * _SLOWEST)
            self._at = now
            return self._last


_SLOWEST = 0.999
"""A clock that is a little ahead is corrected by running slower; that is not setting it back."""
