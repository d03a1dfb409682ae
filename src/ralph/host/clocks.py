"""Clocks and file times: a clock that never goes back, whether file times can be trusted, and how to set them."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from pathlib import Path

_SLOWEST = 0.999
"""A clock that is a little ahead is corrected by running slower; that is not setting it back."""
_APART = 1.0
"""Seconds by which two clocks that agree may differ."""


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


class WriteTimes:
    """Since its last start. A file server has a clock of its own, and a clock that is set back repeats an hour."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self._begun = time.time(), time.monotonic()

    def are_comparable(self, folder: Path) -> bool:
        """Whether the file system's clock agrees with the system's, and that one was not set back."""
        wall, steady = self._begun
        now = time.time()
        if now - wall < time.monotonic() - steady - _APART:
            return False
        try:
            import tempfile  # takes a while to import

            with tempfile.TemporaryFile(dir=folder) as probe:
                written = os.fstat(probe.fileno()).st_ctime
        except OSError:  # the disk is full: what that means for the iteration is found out elsewhere
            return True
        return abs(written - now) <= _APART + (time.time() - now)


def newest(root: Path, paths: Iterable[bytes]) -> float:
    """The latest modification time of these files; 0 if none exists."""
    times = [0.0]
    for path in paths:
        with contextlib.suppress(OSError):
            times.append(os.lstat(os.fsencode(root) + b"/" + path).st_mtime)
    return max(times)


def set_later(root: Path, paths: Iterable[bytes], last: float) -> float:
    """Give files a modification time in a later second than `last`, and return it.

    Caches of compiled files compare size and whole seconds: two versions must never share both. And never a moment
    before now: build tools rebuild what is newer than their last result.
    """
    at = max(time.time(), math.floor(last) + 1)
    for path in paths:
        with contextlib.suppress(OSError, NotImplementedError):
            os.utime(os.fsencode(root) + b"/" + path, (at, at), follow_symlinks=False)
    return at
