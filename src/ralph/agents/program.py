"""Find the program of an agent."""

from __future__ import annotations

from pathlib import Path

from ralph.host import programs


def which(name: str, cwd: Path, path: str) -> str | None:
    """A bare name is searched on `path`; a name with a slash is a file relative to the workspace."""
    if "/" in name:
        return programs.which(str(cwd / Path(name).expanduser()), path)
    return programs.which(name, path)


def argument(text: str) -> str:
    """As one argument of a command line: the system cannot pass a NUL."""
    return text.replace("\0", "")
