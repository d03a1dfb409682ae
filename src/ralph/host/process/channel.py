"""A child process of our own that takes orders on stdin and answers on stdout: one length-prefixed frame each."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import struct
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Protocol

_HEAD = struct.Struct(">Q")
LONGEST = 1 << 30
"""Bytes of one frame."""
_BLOCK = 1 << 20


class Closed(EOFError):
    """The other side is gone."""


class Process(Protocol):
    """What is at the other end."""

    @property
    def pid(self) -> int: ...

    def ended(self, timeout: float) -> int | None:
        """Its exit code once it has one, -1 if that cannot be known."""
        ...

    def kill(self) -> None:
        """With its process group. Returns when it has ended."""
        ...


class Channel:
    """The side of the parent."""

    def __init__(self, process: Process, stdin: IO[bytes], stdout: IO[bytes]) -> None:
        self._process, self._stdin, self._stdout = process, stdin, stdout
        os.set_blocking(stdout.fileno(), False)
        self._buffer = bytearray()
        self.is_open = True

    @property
    def pid(self) -> int:
        return self._process.pid

    def fileno(self) -> int:
        return self._stdout.fileno()

    def send(self, data: bytes) -> None:
        """Raises Closed if the child is gone."""
        try:
            write_frame(self._stdin, data)
        except (OSError, ValueError):
            self.is_open = False
            raise Closed from None

    def receive(self) -> Iterator[bytes]:
        """The frames that have arrived. Does not wait. `is_open` is false once the child has closed its side."""
        while self.is_open:
            try:
                block = os.read(self._stdout.fileno(), _BLOCK)
            except BlockingIOError:
                break
            except OSError:
                block = b""
            if not block:
                self.is_open = False
                break
            self._buffer += block
        while len(self._buffer) >= _HEAD.size:
            (size,) = _HEAD.unpack_from(self._buffer)
            if size > LONGEST:
                self.is_open = False
                return
            if len(self._buffer) < _HEAD.size + size:
                return
            frame = bytes(self._buffer[_HEAD.size : _HEAD.size + size])
            del self._buffer[: _HEAD.size + size]
            yield frame

    def ended(self, timeout: float = 0) -> int | None:
        """Its exit code, once it has one."""
        return self._process.ended(timeout)

    def close(self) -> None:
        """Its stdin ends: it is to stop by itself."""
        with contextlib.suppress(OSError):
            self._stdin.close()

    def kill(self) -> None:
        self._process.kill()
        self.is_open = False
        with contextlib.suppress(OSError):
            self._stdin.close()
        self._stdout.close()


class _Child:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process

    @property
    def pid(self) -> int:
        return self._process.pid

    def ended(self, timeout: float) -> int | None:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(timeout) if timeout else self._process.poll()
        return None

    def kill(self) -> None:
        if self._process.poll() is None:  # later the number may be somebody else's
            end_group(self._process.pid)
        with contextlib.suppress(OSError):
            self._process.kill()
        self._process.wait()


def end_group(leader: int) -> None:
    with contextlib.suppress(OSError, ProcessLookupError):
        os.killpg(leader, signal.SIGKILL)


def start_channel(argv: Sequence[str], cwd: Path, env: Mapping[str, str], errors: Path) -> Channel:
    """`errors`: the file that takes its stderr."""
    with errors.open("ab") as sink:
        process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=sink,
            start_new_session=True,  # out of reach of Ctrl-C: the parent says what is to be done
        )
    assert process.stdin is not None
    assert process.stdout is not None
    return Channel(_Child(process), process.stdin, process.stdout)


def wait_for(channels: Sequence[Channel], others: Sequence[int], timeout: float) -> None:
    """Until one of them has something to say, or a descriptor of `others` is readable."""
    descriptors = [channel.fileno() for channel in channels if channel.is_open]
    with contextlib.suppress(OSError, ValueError):
        select.select([*descriptors, *others], [], [], max(timeout, 0))


def write_frame(stream: IO[bytes], data: bytes) -> None:
    stream.write(_HEAD.pack(len(data)) + data)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes:
    """For the side of the child. Raises Closed at the end."""
    head = stream.read(_HEAD.size)
    if len(head) < _HEAD.size:
        raise Closed
    (size,) = _HEAD.unpack(head)
    data = stream.read(size) if size <= LONGEST else b""
    if len(data) < size:
        raise Closed
    return data
