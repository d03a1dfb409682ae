"""What a sandbox lets through, as a value from which every backend builds its command line. Backends are modules."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from ralph.host.process.enclosure import Process, Start

PROXY_PORT = 3128
"""Where a command inside finds the proxy, on its own loopback."""


class Quota(Struct, frozen=True):
    """Limits of everything inside together, or per process where the system offers no better. 0: no limit."""

    processes: int = 0
    memory_mb: int = 0
    disk_mb: int = 0
    """What may be written, in one file and in all."""
    cpu_seconds: int = 0


class Mount(Struct, frozen=True):
    """A file or folder that appears inside at another path."""

    source: Path
    target: Path
    is_writable: bool = False


class Wall(Struct, frozen=True, kw_only=True):
    """The world as a command inside sees it: all that exists can be read, except what is hidden; little is writable."""

    home: Path
    """The path of the home folder inside; the real one is hidden."""
    home_source: Path | None = None
    """The folder that is there instead, writable. None: an empty one."""
    writable: tuple[Path, ...] = ()
    readable: tuple[Path, ...] = ()
    """In hidden folders: programs, for instance. What does not exist is left out."""
    read_only: tuple[Path, ...] = ()
    """In writable folders: `.git/hooks`, `.git/config`, `.ralph`."""
    mounts: tuple[Mount, ...] = ()
    hidden: tuple[Path, ...] = ()
    """More folders that look empty inside, and files that do."""
    proxy: Path | None = None
    """The proxy's socket. None: no network at all, unless it is open."""
    hosts: tuple[str, ...] = ()
    """What the proxy lets through, for backends that filter the network themselves. As in `sandbox.allow_hosts`."""
    forwards: tuple[int, ...] = ()
    """Ports of services on this machine that the proxy may reach; they are at the same port of the loopback inside."""
    is_network_open: bool = False
    image: str = ""
    """For containers. Empty: Ralph's own."""
    quota: Quota = Quota()


class Found(Struct, frozen=True):
    """Whether a backend can be used here."""

    program: str = ""
    version: str = ""
    why_not: str = ""
    """Empty: it can, as far as that is known without starting it."""
    hint: str = ""


class Backend(Protocol):
    """One kind of sandbox. Each is a module."""

    @property
    def NAME(self) -> str: ...

    @property
    def TITLE(self) -> str: ...

    @property
    def MOUNTS(self) -> bool:
        """Files can appear inside at other paths."""
        ...

    def find(self, env: Mapping[str, str]) -> Found: ...

    def enter(self, program: str, wanted: Start, wall: Wall, label: str) -> Start:
        """The process that starts the wanted one inside. `label` is unique among all processes of this machine."""
        ...

    def end(self, program: str, label: str) -> str:
        """End what is left inside; a signal to the process does not reach it everywhere. See `Enclosure.end`."""
        ...


_LIMIT_BY_CODE = {
    128 + 24: "the sandbox's limit of processor time was reached (sandbox.limits.cpu_seconds)",
    128 + 25: "the sandbox's limit of what may be written was reached (sandbox.limits.disk_mb)",
}
"""What the signals SIGXCPU and SIGXFSZ mean, by the exit code of a shell."""


class Walled:
    """A backend and a wall: what processes are started in. One object may start many, one after the other."""

    def __init__(self, backend: Backend, program: str, wall: Wall) -> None:
        self.backend, self.program, self.wall = backend, program, wall
        self._labels: dict[int, str] = {}

    def start(self, wanted: Start, make: Callable[[Start], Process]) -> Process:
        label = f"ralph-{os.urandom(6).hex()}"
        try:
            process = make(self.backend.enter(self.program, self._with_own_programs(wanted), self.wall, label))
        except BaseException:
            self.backend.end(self.program, label)
            raise
        self._labels[process.pid] = label
        return process

    def end(self, process: Process) -> str:
        label = self._labels.pop(process.pid, "")
        problem = self.backend.end(self.program, label) if label else ""
        return problem or _LIMIT_BY_CODE.get(process.returncode or 0, "")

    def _with_own_programs(self, wanted: Start) -> Start:
        """What a set-up installs for its user is found, after everything else."""
        if self.wall.home_source is None or "PATH" not in wanted.env:
            return wanted
        path = f"{wanted.env['PATH']}{os.pathsep}{self.wall.home}/.local/bin"
        return replace(wanted, env={**wanted.env, "PATH": path})
