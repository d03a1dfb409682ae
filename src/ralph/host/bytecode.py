"""Compiled Python files: which of them belong to the source files as they are."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

_HEADER = 16
"""Magic number, flags, modification time and size of the source: four bytes each."""


def remove_stale_bytecode(folder: Path) -> None:
    """Remove from a `__pycache__` what Python would load without comparing it with the source, or not load at all."""
    with contextlib.suppress(OSError):
        for path in folder.iterdir():
            if not _matches(path, folder.parent / f"{path.name.partition('.')[0]}.py"):
                with contextlib.suppress(OSError):
                    path.unlink()


def _matches(path: Path, source: Path) -> bool:
    try:
        with path.open("rb") as stream:
            header = stream.read(_HEADER)
        found = os.lstat(source)
    except OSError:
        return False
    flags, modified, size = (int.from_bytes(header[start : start + 4], "little") for start in (4, 8, 12))
    is_current = modified == int(found.st_mtime) & 0xFFFFFFFF and size == found.st_size & 0xFFFFFFFF
    return flags == 0 and is_current and not path.is_symlink()
