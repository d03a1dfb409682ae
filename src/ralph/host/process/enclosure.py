"""What a process can be started in: a fence or a sandbox around it and everything it starts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from subprocess import Popen
from typing import Protocol

from msgspec import Struct

Process = Popen[bytes]


class Start(Struct, frozen=True):
    """A process to start. Nothing is inherited: `env` is its whole environment."""

    argv: tuple[str, ...]
    cwd: Path
    env: Mapping[str, str]
    is_terminal: bool = False
    """Its standard streams are a terminal that is nobody's yet: inside, it has to become the command's own."""


class Enclosure(Protocol):
    def start(self, wanted: Start, make: Callable[[Start], Process]) -> Process:
        """Start it inside. `make` starts what it is given."""
        ...

    def end(self, process: Process) -> str:
        """Called when the process is over: ends what no signal of ours reaches. Returns what went wrong inside for a
        reason that the process itself cannot know, such as a limit; mostly an empty string."""
        ...
