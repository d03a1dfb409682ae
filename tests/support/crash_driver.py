"""Runs the command line, and at one chosen point kills it or lets a write fail.

    python crash_driver.py HOW AT LOG ROOT STATE -- run --plain

A point is a moment right before something changes outside of this process: a file below ROOT or STATE is opened for
writing, written, flushed, renamed or removed, a program is started, a record is written to the journal; and the moment
right after a program was started, while it works. Every point is written to LOG, one line each. At point number AT
happens HOW:

    kill      SIGKILL
    ENOSPC    the write fails, or git does, as on a full disk
    EIO       the same with an error of the disk
    full      this write and all that follow fail with ENOSPC

With AT 0 nothing happens: the log says which points there are.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_VARIES = re.compile(r"\b[0-9a-f]{12}\b|[0-9a-f]{64}|\d{8}-\d{6}-[0-9a-f]{4}|(?<=\.)[a-z0-9_]{8}(?=\.tmp$)|(?<=\.)\d+$")
_WRITES = os.O_WRONLY | os.O_RDWR
_EVENTS = {
    "os.chmod": "chmod",
    "os.mkdir": "mkdir",
    "os.remove": "remove",
    "os.rename": "rename",
    "os.rmdir": "rmdir",
    "os.truncate": "truncate",
    "os.utime": "utime",
}
WRITING_GIT = frozenset(
    (
        *("add", "checkout-index", "commit", "commit-tree", "mktree", "read-tree", "stash", "symbolic-ref"),
        *("update-index", "update-ref", "write-tree"),
    )
)
"""Commands of git that change something."""


class Driver:
    def __init__(self, how: str, at: int, log: Path, folders: list[str]) -> None:
        self._how = how
        self._at = at
        self._log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC)
        self._folders = tuple(os.path.realpath(folder) for folder in folders)
        self._count = 0
        self._write = os.write
        self._pid = os.getpid()

    def point(self, label: str, *, fails: bool = True) -> None:
        """`fails`: a disk in trouble makes this go wrong."""
        if os.getpid() != self._pid:  # a fork on its way to exec
            return
        self._count += 1
        self._write(self._log, f"{label}\n".encode())
        if self._how == "kill":
            if self._count == self._at:
                os.kill(self._pid, signal.SIGKILL)
        elif fails and self._is_in_trouble:
            number = errno.EIO if self._how == "EIO" else errno.ENOSPC
            raise OSError(number, os.strerror(number))

    @property
    def _is_in_trouble(self) -> bool:
        return self._count == self._at or (self._how == "full" and 0 < self._at < self._count)

    def install(self) -> None:
        from ralph.host.git import command as git
        from ralph.journal.records import Journal

        sys.addaudithook(self._hear)
        self._wrap_descriptor("write")
        self._wrap_descriptor("fsync")
        self._wrap_journal(Journal)
        self._wrap_start()
        self._wrap_git(git)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            if isinstance(path, int):
                if isinstance(mode, str) and mode[:1] in "wa":
                    self.point("fill")
            elif flags & _WRITES and self._is_ours(path):
                self.point(f"open {_name(path)}")
        elif event in _EVENTS and (isinstance(arguments[0], int) or self._is_ours(arguments[0])):
            # Removing makes room, and a flag of a file needs none: neither fails on a full disk.
            self.point(f"{_EVENTS[event]} {_name(arguments[0])}", fails=event in ("os.mkdir", "os.rename"))
        elif event == "subprocess.Popen":
            self.point(f"start {_program(arguments[1])}", fails=False)

    def _is_ours(self, path: object) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        text = os.fsdecode(path)
        # One that is not absolute is named from a descriptor, and only the loop works that way.
        return not text.startswith("/") or text.startswith(self._folders)

    def _wrap_descriptor(self, name: str) -> None:
        real = getattr(os, name)

        def wrapped(descriptor: int, *rest: Any) -> Any:
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                self.point(name)
            return real(descriptor, *rest)

        setattr(os, name, wrapped)

    def _wrap_journal(self, journal: Any) -> None:
        real = journal.write

        def write(this: Any, event: Any) -> Any:
            self.point(f"journal {type(event).__name__}", fails=False)
            record = real(this, event)
            self.point(f"journalled {type(event).__name__}", fails=False)
            return record

        journal.write = write

    def _wrap_start(self) -> None:
        real: Callable[..., None] = subprocess.Popen._execute_child  # type: ignore[attr-defined]

        def started(this: Any, args: Any, *rest: Any, **named: Any) -> None:
            real(this, args, *rest, **named)
            self.point(f"started {_program(args)}", fails=False)

        subprocess.Popen._execute_child = started  # type: ignore[attr-defined]

    def _wrap_git(self, git: Any) -> None:
        """A git that runs into the same trouble says so and changes nothing."""
        real = git._started

        def started(call: Any, **named: Any) -> Any:
            try:
                if _verb(call.args) in WRITING_GIT:
                    self.point(f"git {_verb(call.args)}")
            except OSError as error:
                call = git.Call(call.where, ("cat-file", "-e", error.strerror))
            return real(call, **named)

        git._started = started


def _name(path: Any) -> str:
    """The last part of a path, without what is another one in every run."""
    return "descriptor" if isinstance(path, int) else _VARIES.sub("*", Path(os.fsdecode(path)).name)


def _program(arguments: Any) -> str:
    words = [os.fsdecode(word) for word in arguments]
    if words[0] == "git":
        return f"git {_verb(words[1:])}"
    return "agent" if "ralph.agents.play" in words else Path(words[0]).name


def _verb(arguments: Any) -> str:
    words = iter(os.fsdecode(word) for word in arguments)
    for word in words:
        if word == "-c":
            next(words)
        elif not word.startswith("-"):
            return word
    return ""


def main() -> None:
    how, at, log, root, state, _, *arguments = sys.argv[1:]
    from ralph.cli import main as cli

    driver = Driver(how, int(at), Path(log), [root, state])
    driver.install()
    sys.argv = ["ralph", *arguments]
    cli.entry()


if __name__ == "__main__":
    main()
