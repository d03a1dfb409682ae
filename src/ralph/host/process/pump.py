"""Move bytes to and from a child without blocking: a buffer to stdin, stdout and stderr to callables."""

from __future__ import annotations

import contextlib
import os
import selectors
import sys
from collections.abc import Callable
from subprocess import Popen

Sink = Callable[[bytes], None]

CHUNK = 128 * 1024
_POLL = 0.02
"""Seconds between checks on the child where its end cannot wake us."""
_LARGEST_PIPE = 1024 * 1024
"""Capacity of a pipe. Anything beyond it, read after the child has ended, comes from another process."""


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
