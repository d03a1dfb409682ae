"""The output of a process in bounded memory: read without blocking, split into lines, and cut in the middle."""

from __future__ import annotations

import contextlib
import os
import selectors
import sys
from collections.abc import Callable
from subprocess import Popen

from msgspec import Struct

LONGEST_LINE = 4 * 1024 * 1024
_HEAD = 64 * 1024
_ROOM_FOR_MARKER = 64
CHUNK = 128 * 1024
_POLL = 0.02
"""Seconds between checks on the child where its end cannot wake us."""
_LARGEST_PIPE = 1024 * 1024
"""Capacity of a pipe. Anything beyond it, read after the child has ended, comes from another process."""


class Oversize(Struct, frozen=True):
    """A line longer than the limit: its beginning and its full length."""

    head: bytes
    length: int


class LineSplitter:
    """Lines without their `\n` or `\r\n`. Bytes stay bytes: NUL and invalid UTF-8 are left to the reader."""

    def __init__(self, limit: int = LONGEST_LINE, head: int = _HEAD) -> None:
        self._limit = limit
        self._head_size = min(head, limit)
        self._pending = bytearray()
        self._length = 0
        """Length of the line being read, including the part that was not kept."""

    def feed(self, data: bytes) -> list[bytes | Oversize]:
        """The lines completed by `data`."""
        return [line for block in self.blocks(data) for line in split_block(block)]

    def blocks(self, data: bytes) -> list[bytes | Oversize]:
        """The same lines, as few blocks of lines joined by newlines: a reader may skip a whole block at once."""
        end = data.rfind(b"\n")
        if end < 0:
            self._keep(data)
            return []
        if self._length + end <= self._limit:  # nearly always, so make it quick
            blocks: list[bytes | Oversize] = [bytes(self._pending + data[:end])]
            self._pending, self._length = bytearray(), 0
        else:
            blocks = []
            for piece in data[:end].split(b"\n"):
                self._keep(piece)
                blocks.append(self._take())
        self._keep(data[end + 1 :])
        return blocks

    def flush(self) -> list[bytes | Oversize]:
        """The rest after the last newline."""
        return split_block(self._take()) if self._length else []

    def _keep(self, piece: bytes) -> None:
        self._length += len(piece)
        if self._length <= self._limit:
            self._pending += piece
        elif len(self._pending) < self._head_size:
            self._pending += piece[: self._head_size - len(self._pending)]
        elif len(self._pending) > self._head_size:
            self._pending = self._pending[: self._head_size]  # a new object, so that the memory is given back

    def _take(self) -> bytes | Oversize:
        pending, length = self._pending, self._length
        self._pending, self._length = bytearray(), 0
        if length > self._limit:
            return Oversize(bytes(pending[: self._head_size]), length)
        return bytes(pending)


def split_block(block: bytes | Oversize) -> list[bytes | Oversize]:
    """The lines of a block, without `\r` at their ends."""
    if isinstance(block, Oversize):
        return [block]
    lines = block.split(b"\n")
    return [line.removesuffix(b"\r") for line in lines] if b"\r" in block else [*lines]


class Excerpt:
    """Keeps at most `limit` bytes of its input: head and tail, with a line between them that says what was cut."""

    def __init__(self, limit: int) -> None:
        room = max(limit - _ROOM_FOR_MARKER, 0)
        self._limit = limit
        self._head_size = room // 2
        self._tail_size = room - self._head_size
        self._kept = bytearray()
        self._tail = bytearray()
        self.total = 0

    @property
    def cut(self) -> bool:
        return self.total > self._limit

    def feed(self, data: bytes) -> None:
        self.total += len(data)
        room = self._limit - len(self._kept)
        if room > 0:
            self._kept += data[:room]
            data = data[room:]
        if data:
            self._tail += data
            # Cut seldom, not at every feed: each cut moves the whole tail.
            if len(self._tail) > 2 * self._tail_size:
                del self._tail[: len(self._tail) - self._tail_size]

    def value(self) -> bytes:
        if not self.cut:
            return bytes(self._kept)
        tail = bytes((self._kept + self._tail)[-self._tail_size :]) if self._tail_size else b""
        left_out = self.total - self._head_size - len(tail)
        marker = b"\n[... %d bytes left out ...]\n" % left_out
        return (bytes(self._kept[: self._head_size]) + marker + tail) if self._head_size else marker[: self._limit]


class Tail:
    """The last `limit` bytes of its input."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()

    def feed(self, data: bytes) -> None:
        self._data += data[-self._limit :]
        if len(self._data) > 2 * self._limit:
            del self._data[: len(self._data) - self._limit]

    def value(self) -> bytes:
        return bytes(self._data[-self._limit :])


Sink = Callable[[bytes], None]


class Pump:
    def __init__(self, process: Popen[bytes], stdin: bytes, out: Sink, err: Sink, wake: int | None = None) -> None:
        self._process = process
        self._selector = selectors.DefaultSelector()
        self._left = memoryview(stdin)
        self._sinks: dict[int, Sink] = {}
        self._wake = wake
        self._end_watch = _watch_end(process.pid)
        for stream, sink in ((process.stdout, out), (process.stderr, err)):
            if stream is not None:
                os.set_blocking(stream.fileno(), False)
                self._selector.register(stream.fileno(), selectors.EVENT_READ)
                self._sinks[stream.fileno()] = sink
        if process.stdin is not None:
            os.set_blocking(process.stdin.fileno(), False)
            self._selector.register(process.stdin.fileno(), selectors.EVENT_WRITE)
        if self._end_watch is not None:
            self._selector.register(self._end_watch, selectors.EVENT_READ)
        if wake is not None:
            self._selector.register(wake, selectors.EVENT_READ)

    def turn(self, timeout: float) -> bool:
        """Wait for something to happen, at most `timeout` seconds, and move one chunk per stream.

        Returns whether `wake` was readable; its owner must drain it.
        """
        woken = False
        if self._end_watch is None and self._process.poll() is None:
            timeout = min(timeout, _POLL)
        for key, _ in self._selector.select(max(timeout, 0)):
            if key.fd in self._sinks:
                self._read(key.fd)
            elif key.fd == self._wake:
                woken = True
            elif key.fd == self._end_watch:
                self._stop_watching_end()
            else:
                self._write(key.fd)
        self._process.poll()
        return woken

    def drain(self) -> None:
        """Read what is already available, without waiting for other processes that keep the pipe open."""
        for descriptor in list(self._sinks):
            left = _LARGEST_PIPE
            while left > 0 and (size := self._read(descriptor)):
                left -= size

    def close(self) -> None:
        self._stop_watching_end()
        self._selector.close()

    def _read(self, descriptor: int) -> int:
        try:
            data = os.read(descriptor, CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            data = b""
        if data:
            self._sinks[descriptor](data)
        else:
            self._selector.unregister(descriptor)
            del self._sinks[descriptor]
        return len(data)

    def _write(self, descriptor: int) -> None:
        try:
            self._left = self._left[os.write(descriptor, self._left[:CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it does not want to read its input; that is its own business
            self._left = memoryview(b"")
        if not self._left:
            self._selector.unregister(descriptor)
            if self._process.stdin is not None:
                with contextlib.suppress(OSError):
                    self._process.stdin.close()

    def _stop_watching_end(self) -> None:
        if self._end_watch is not None:
            with contextlib.suppress(KeyError):
                self._selector.unregister(self._end_watch)
            os.close(self._end_watch)
            self._end_watch = None


def _watch_end(pid: int) -> int | None:
    """A descriptor that becomes readable when the process ends, where the system supports that."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            return os.pidfd_open(pid)
    return None
