"""A process that has imported everything once, and forks: a worker starts in milliseconds instead of half a second.

The parent sends three descriptors for each child over a socket: its stdin, stdout and stderr. It gets the pid back.
When the socket closes, the server ends; its children live on until their own stdin ends. Linux only.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from ralph.host.process.channel import Channel, end_group

_PID = struct.Struct(">q")
_PATIENCE = 60.0
"""Seconds in which the server has to have forked, after it was asked to."""


def is_possible() -> bool:
    return sys.platform == "linux" and hasattr(os, "pidfd_open")


class ForkServer:
    """The side of the parent. `argv`: starts the server; the number of its end of the socket is added."""

    def __init__(self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], errors: Path) -> None:
        self._socket, theirs = socket.socketpair()
        with theirs, errors.open("ab") as sink:
            self._process = subprocess.Popen(
                [*argv, str(theirs.fileno())],
                cwd=cwd,
                env=dict(env),
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        self._socket.settimeout(_PATIENCE)
        self._waiting: list[_Forked] = []

    def start(self, errors: Path) -> Channel:
        """Ask for a child. Does not wait for it. Raises OSError if the server is gone."""
        child_in, stdin = os.pipe()
        stdout, child_out = os.pipe()
        try:
            with errors.open("ab") as sink:
                socket.send_fds(self._socket, [b"."], [child_in, child_out, sink.fileno()])
        except OSError:
            os.close(stdin)
            os.close(stdout)
            raise
        finally:
            os.close(child_in)
            os.close(child_out)
        child = _Forked(self)
        self._waiting.append(child)
        return Channel(child, os.fdopen(stdin, "wb"), os.fdopen(stdout, "rb", buffering=0))

    def learn(self) -> None:
        """Read the pid of the child that was asked for first."""
        child = self._waiting.pop(0)
        data = b""
        with contextlib.suppress(OSError):
            while len(data) < _PID.size and (block := self._socket.recv(_PID.size - len(data))):
                data += block
        if len(data) == _PID.size:
            child.found(_PID.unpack(data)[0])
        else:
            child.found(0)

    def close(self) -> None:
        self._socket.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
            return
        self._process.kill()
        self._process.wait()


class _Forked:
    """A child of the server; for us only a descriptor that tells when it has ended."""

    def __init__(self, server: ForkServer) -> None:
        self._server = server
        self._pid: int | None = None
        self._descriptor = -1

    def found(self, pid: int) -> None:
        self._pid = pid
        with contextlib.suppress(OSError):
            self._descriptor = os.pidfd_open(pid) if pid else -1

    @property
    def pid(self) -> int:
        while self._pid is None:
            self._server.learn()
        return self._pid

    def ended(self, timeout: float) -> int | None:
        if not self.pid or self._descriptor < 0:
            return -1
        ready, _, _ = select.select([self._descriptor], [], [], timeout)
        return -1 if ready else None

    def kill(self) -> None:
        if self.ended(0) is None:  # later the number may be somebody else's
            end_group(self.pid)
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._descriptor, signal.SIGKILL)
            self.ended(_PATIENCE)
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def serve_forks(descriptor: int, child: Callable[[], int]) -> int:
    """The server: fork for each request, and run `child` there."""
    requests = socket.socket(fileno=descriptor)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody asks how they ended
    while True:
        data, descriptors, _, _ = socket.recv_fds(requests, 1, 3)
        if not data:
            return 0
        pid = os.fork()
        if pid:
            for one in descriptors:
                os.close(one)
            requests.sendall(_PID.pack(pid))
            continue
        code = 70
        try:
            requests.close()
            os.setsid()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for number, one in enumerate(descriptors):
                os.dup2(one, number)
                os.close(one)
            code = child()
        finally:
            sys.stderr.flush()
            os._exit(code)
