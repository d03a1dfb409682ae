"""Finding the program that an agent is."""

from __future__ import annotations

from pathlib import Path

from ralph.host import programs


def which(name: str, cwd: Path, path: str) -> str | None:
    """A name is searched on `path`; one with a slash is a file, seen from the workspace."""
    if "/" in name:
        return programs.which(str(cwd / Path(name).expanduser()), path)
    return programs.which(name, path)


def argument(text: str) -> str:
    """As one word of a command line: the system cannot pass a NUL."""
    return text.replace("\0", "")
