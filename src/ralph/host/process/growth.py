"""How much was written to folders since a time, by the change times of files. Reading them takes little of the time."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

_SHARE = 20
"""Between two looks pass this many times the duration of the last one."""


class Growth:
    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._since = time.time()
        self._next = 0.0

    def over(self, most: int) -> int:
        """The bytes of files that were written since, if they are more than `most`; otherwise, or if it is too early
        to look again, 0."""
        begun = time.monotonic()
        if begun < self._next:
            return 0
        written = sum(_written(folder, self._since) for folder in self._folders)
        now = time.monotonic()
        self._next = now + _SHARE * (now - begun)
        return written if written > most else 0


def _written(folder: Path, since: float) -> int:
    """What files take up on disk that were changed since."""
    total, waiting = 0, [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    try:
                        found = entry.stat(follow_symlinks=False)
                        total += found.st_blocks * 512 if found.st_ctime >= since else 0
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                    except OSError:
                        continue
        except OSError:
            continue
    return total
