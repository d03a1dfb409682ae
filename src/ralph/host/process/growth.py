"""How much was written to folders, without reading them all the time: free space tells when that is worth it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path


class Growth:
    def __init__(self, folders: Sequence[Path]) -> None:
        self._folders = folders
        self._since = time.time()
        self._free = _free(folders)

    def over(self, most: int) -> int:
        """The bytes of files that were written since, if they are more than `most`; otherwise 0."""
        if self._free - _free(self._folders) <= most:
            return 0
        grown = sum(_written(folder, self._since) for folder in self._folders)
        if grown > most:
            return grown
        self._free = _free(self._folders) + grown  # somebody else wrote the rest
        return 0


def _free(folders: Sequence[Path]) -> int:
    """On their file systems together."""
    found: dict[int, int] = {}
    for folder in folders:
        try:
            kept = os.statvfs(folder)
            found[folder.stat().st_dev] = kept.f_bfree * kept.f_frsize
        except OSError:
            continue
    return sum(found.values())


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
