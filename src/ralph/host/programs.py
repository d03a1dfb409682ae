"""Find a program on PATH."""

from __future__ import annotations

import os
import sys


def which(name: str, path: str) -> str | None:
    """Like `shutil.which`, without the 5 ms that importing shutil takes."""
    if sys.platform == "win32":
        from shutil import which as search

        return search(name, path=path)
    if os.path.dirname(name):  # noqa: PTH120 - for a name that is a path, whatever its end is
        return name if _is_program(name) else None
    found = (os.path.join(folder, name) for folder in path.split(os.pathsep) if path)  # noqa: PTH118
    return next(filter(_is_program, found), None)


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)  # noqa: PTH113
