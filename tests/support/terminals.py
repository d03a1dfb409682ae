"""A `ralph` command in a terminal of its own."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from pathlib import Path
from typing import Protocol

_SEQUENCES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class _Place(Protocol):
    @property
    def root(self) -> Path: ...

    @property
    def env(self) -> dict[str, str]: ...


class Terminal:
    def __init__(self, project: _Place, *arguments: str, columns: int = 120, rows: int = 40, **env: str) -> None:
        """Without arguments: a shell."""
        self.pid, self._screen = pty.fork()
        if self.pid == 0:
            os.chdir(project.root)
            command = [sys.executable, "-W", "error", "-m", "ralph", *arguments]
            if not arguments:
                command = ["bash", "--norc", "--noprofile", "-i"]
            os.execvpe(command[0], command, project.env | {"TERM": "xterm"} | env)
        self.text = ""
        self.resize(columns, rows)

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._screen, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    @property
    def plain(self) -> str:
        """What was written, without the sequences that paint it and move the cursor."""
        return _SEQUENCES.sub("", self.text)

    def press(self, key: bytes) -> None:
        os.write(self._screen, key)

    def until(self, words: str, seconds: float = 20) -> None:
        deadline = time.monotonic() + seconds
        while words not in self.plain:
            assert time.monotonic() < deadline, self.plain[-2000:]
            assert self._read(), self.plain[-2000:]

    def end(self) -> int:
        """Read to its end; its exit code."""
        while self._read():
            pass
        os.close(self._screen)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def hang_up(self) -> int:
        """Close the terminal, as its window would; the exit code of what ran in it."""
        os.close(self._screen)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def _read(self) -> bool:
        if not select.select([self._screen], [], [], 0.1)[0]:
            return True
        try:
            data = os.read(self._screen, 65536)
        except OSError:  # the other end is closed
            return False
        self.text += data.decode("utf-8", "replace")
        return bool(data)
