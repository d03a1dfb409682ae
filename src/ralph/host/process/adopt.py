"""Children and adopted children. Process-wide, because the kernel tracks both per process.

On Linux we become a child subreaper: what an agent leaves behind, however it was forked, becomes our child when its
own parent ends. Everything started through `host.proc` gets its own session, and nothing can re-enter our session, so
a child in another session that we did not start was adopted.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from subprocess import Popen

from ralph.host.process import table as ptable
from ralph.host.process.table import ProcessId

_PR_SET_CHILD_SUBREAPER = 36


class Household:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner = 0
        self._adopts = False
        self._started: set[int] = set()
        self._ended: set[int] = set()
        """Those started whose own process has ended: what they left behind is being swept."""
        self._before: frozenset[ProcessId] = frozenset()

    @contextlib.contextmanager
    def _entered(self) -> Iterator[None]:
        with self._lock:
            if self._owner != os.getpid():  # first use, or a fork of the process that used it
                self._owner = os.getpid()
                self._started.clear()
                self._ended.clear()
                self._adopts = _set_subreaper()
            yield

    @property
    def adopts(self) -> bool:
        """Whether orphans are reparented to this process."""
        with self._entered():
            return self._adopts

    def start(self, make: Callable[[], Popen[bytes]]) -> Popen[bytes]:
        with self._entered():
            if not self._started and self._adopts:
                # Children that were started in other sessions before us are not strays.
                self._before = frozenset(found.id for pid in ptable.own_children() if (found := ptable.row(pid)))
            process = make()
            self._started.add(process.pid)
            return process

    def has_ended(self, root: int) -> None:
        """Its sweep has begun. Of several trees swept at the same time, the last to begin finds every stray."""
        with self._entered():
            self._ended.add(root)

    def forget(self, process: Popen[bytes]) -> None:
        with self._entered():
            self._started.discard(process.pid)
            self._ended.discard(process.pid)

    def strays(self, root: int) -> list[int]:
        """Live adopted children that descend from `root`. Ended ones are reaped.

        While several trees run at the same time, one that cannot be told apart by session or group stays until the
        last of them is swept.
        """
        with self._entered():
            return self._look(root)[0]

    def is_calm(self, root: int) -> bool:
        """No stray is alive, and none was a moment ago: one that just ended may have handed us its own child."""
        with self._entered():
            return any(self._look(root) == ([], 0) for _ in range(3))

    def strike(self, root: int, seconds: float) -> set[int]:
        """Kill strays on sight until none has appeared for a moment.

        This catches those that fork and end faster than the table of processes can be read. They are our children, so
        their numbers are not given to others before we reap them.
        """
        struck: set[int] = set()
        deadline = time.monotonic() + seconds
        with self._entered():
            while time.monotonic() < deadline:
                alive, ended = self._look(root, signal.SIGKILL)
                struck.update(alive)
                if not alive and not ended:
                    break
        return struck

    def _look(self, root: int, number: int = 0) -> tuple[list[int], int]:
        """Live strays, after signalling them, and the number of ended ones that were reaped."""
        alive, ended = [], 0
        for pid in ptable.own_children() if self._adopts else ():
            if not self._is_stray(pid, root):
                continue
            if number:
                with contextlib.suppress(OSError):
                    os.kill(pid, number)
            if _reap(pid):
                ended += 1
            else:
                alive.append(pid)
        return alive, ended

    def _is_stray(self, pid: int, root: int) -> bool:
        if pid in self._started:
            return False
        try:
            session, group = os.getsid(pid), os.getpgid(pid)
        except OSError:
            return False
        if session == os.getsid(0):
            return False
        if self._before and (found := ptable.row(pid)) and found.id in self._before:
            return False
        return not self._started - self._ended - {root} or root in (session, group)


def _reap(pid: int) -> bool:
    """Whether it has ended. Always by pid: waiting for any child would take a status that belongs to a Popen."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _set_subreaper() -> bool:
    if sys.platform != "linux":
        return False
    import ctypes

    try:
        return bool(ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    except (OSError, AttributeError):
        return False


HOUSEHOLD = Household()
