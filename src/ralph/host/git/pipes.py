"""Named pipes where git expects a file. Git opens them and waits for ever; ending the wait is enough to go on."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

_READ_BY_GIT = frozenset({".gitignore", ".gitattributes", ".gitmodules", ".mailmap"})


def remove_pipes_in_the_way(root: Path, git_dir: Path) -> int:
    """Remove them from the working tree and from git's own folder. A program that waits for one reads its end."""
    found = [*_pipes(root, _READ_BY_GIT), *_pipes(git_dir, None)]
    for path in found:
        with contextlib.suppress(OSError):
            writer = -1
            with contextlib.suppress(OSError):  # nobody waits for this one
                writer = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            path.unlink()
            if writer >= 0:
                os.close(writer)
    return len(found)


def _pipes(folder: Path, names: frozenset[str] | None) -> list[Path]:
    found = []
    for parent, folders, files in os.walk(folder):
        if names is not None and ".git" in folders:
            folders.remove(".git")
        for name in files:
            if names is None or name in names:
                path = Path(parent, name)
                with contextlib.suppress(OSError):
                    if stat.S_ISFIFO(path.lstat().st_mode):
                        found.append(path)
    return found
