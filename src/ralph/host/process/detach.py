"""Continue in the background: a process in its own session, which outlives the terminal."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from pathlib import Path

from ralph.core.errors import SetupError


class Background:
    """In the process that continues. Its output goes to the terminal until redirected to a log."""

    def __init__(self, pipe: int) -> None:
        self._pipe = pipe

    def log_to(self, path: Path) -> None:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError):
                stream.flush()
            os.dup2(descriptor, stream.fileno())
        os.close(descriptor)

    def tell(self, line: str) -> None:
        """Send a line to the waiting process, which may have ended."""
        with contextlib.suppress(OSError):
            os.write(self._pipe, f"{line}\n".encode())


class Waiting:
    """In the process that stays on the terminal."""

    def __init__(self, pid: int, pipe: int) -> None:
        self.pid = pid
        self._pipe = pipe
        self._text = ""

    def hear(self, seconds: float | None = None) -> str | None:
        """The next line; empty on timeout; None when the other process has ended."""
        while "\n" not in self._text:
            try:
                if not select.select([self._pipe], [], [], seconds)[0]:
                    return ""
                data = os.read(self._pipe, 4096)
            except KeyboardInterrupt:  # it has no terminal that would tell it
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self.pid, signal.SIGINT)
                continue
            if not data:
                return None
            self._text += data.decode()
        line, _, self._text = self._text.partition("\n")
        return line

    def end(self) -> int:
        """Its exit code; 128 + N if it was killed by signal N, as in a shell."""
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return 128 - code if code < 0 else code


def fork() -> Background | Waiting:
    if not hasattr(os, "fork"):
        raise SetupError("--detach needs fork(), which this system does not have", hint="leave out --detach")
    sys.stdout.flush()
    sys.stderr.flush()
    reader, writer = os.pipe()  # neither is inherited by what we start
    pid = os.fork()
    if pid:
        os.close(writer)
        return Waiting(pid, reader)
    os.close(reader)
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return Background(writer)
