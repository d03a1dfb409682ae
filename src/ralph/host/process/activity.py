"""Whether anything in a folder is being written. Looks only at names and times, and only at a limited number."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path

_MOST = 20_000


def stamp(folder: Path, most: int = _MOST) -> tuple[int, int]:
    """Changes when a file below was written, created or removed. Entries nearer the top are checked first."""
    newest = count = 0
    folders = deque([os.fspath(folder)])
    while folders and count < most:
        try:
            entries = os.scandir(folders.popleft())
        except OSError:  # it has gone, or is none of ours
            continue
        with entries:
            for entry in entries:
                try:
                    newest = max(newest, entry.stat(follow_symlinks=False).st_mtime_ns)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                except OSError:
                    continue
                count += 1
    return newest, count


def changed_since(folders: Iterable[Path], since: float, most: int = _MOST) -> str:
    """A file below that was written, created or renamed after that time; empty: none. Compiled files do not count."""
    count = 0
    todo = deque(os.fspath(folder) for folder in folders)
    while todo and count < most:
        try:
            entries = os.scandir(todo.popleft())
        except OSError:
            continue
        with entries:
            for entry in entries:
                if entry.name == "__pycache__" or entry.name.endswith(".pyc"):
                    continue
                count += 1
                try:
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                    elif entry.stat(follow_symlinks=False).st_ctime > since:
                        return entry.path
                except OSError:
                    continue
    return ""
