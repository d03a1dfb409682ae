"""What a sandbox lets through, as a value that every backend can build its command line from."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

PROXY_PORT = 3128
"""Where a command inside finds the proxy, on its own loopback."""


class Quota(Struct, frozen=True):
    """Limits of everything inside together, or per process where the system has no better. 0: no limit."""

    processes: int = 1024
    memory_mb: int = 0
    file_mb: int = 4096
    """The largest file."""
    cpu_seconds: int = 0


class Wall(Struct, frozen=True, kw_only=True):
    """The world as a command inside sees it. All else that exists can be read, except the home and temporary folders."""

    folder: Path
    """Where the command starts."""
    home: Path
    """Hidden, except for what is listed below."""
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    """In hidden folders: programs, and the login of the client. What does not exist is left out."""
    hidden: tuple[Path, ...] = ()
    """More folders that look empty inside."""
    read_only: tuple[Path, ...] = ()
    """In writable folders: `.git/hooks`, `.git/config`, `.ralph`."""
    proxy: Path | None = None
    """The proxy's socket. None: no network at all."""
    is_network_open: bool = False
    quota: Quota = Quota()
