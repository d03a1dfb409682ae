"""Whether the time a file was written can be compared with the time something else happened."""

from __future__ import annotations

import os
import time
from pathlib import Path

_APART = 1.0
"""Seconds by which two clocks that agree may differ."""


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
