"""Finding the program that an agent is."""

from __future__ import annotations

import shutil
from pathlib import Path


def which(name: str, cwd: Path, path: str) -> str | None:
    """A name is searched on `path`; one with a slash is a file, seen from the workspace."""
    if "/" in name:
        return shutil.which(str(cwd / Path(name).expanduser()))
    return shutil.which(name, path=path)


def argument(text: str) -> str:
    """As one word of a command line: the system cannot pass a NUL."""
    return text.replace("\0", "")
