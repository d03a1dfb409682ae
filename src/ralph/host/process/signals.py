"""Requests to stop, from a signal or from the program itself."""

from __future__ import annotations

import contextlib
import os
import select
import selectors
import signal
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from ralph.core.errors import StoppedNow
from ralph.core.exit_codes import ExitCode

_ECHO = 0.1
"""Seconds in which a second signal counts as the same one: a wrapper forwards what the terminal also sent to us."""
_READER = 0.5
"""Seconds in which stdout and stderr must take more, once a signal has come."""

_ENTERED: list[StopSignal] = []


def is_stopping() -> bool:
    """Whether a stop was requested of this process: then waits for other programs are cut short."""
    return any(each.requested for each in _ENTERED)


def urgent_exit_code() -> ExitCode | None:
    """The exit code if a stop was requested twice: then nothing waits for other programs."""
    return next((each.exit_code for each in _ENTERED if each.urgent), None)


class StopSignal:
    """Counts requests to stop. As a context manager it handles SIGINT, SIGTERM and SIGHUP, then restores the handlers.

    The first request means: end cleanly. The second: end immediately. Signals cannot be handled outside the main
    thread; there only `request` counts. With `key`, SIGQUIT (Ctrl-\\) is counted too, and ends nothing. `on_first` is
    called by the handler of the first signal, at any point of the main thread: it must not print to a stream.
    """

    def __init__(
        self,
        clock: Callable[[], float] = time.monotonic,
        *,
        key: bool = False,
        on_first: Callable[[], object] | None = None,
    ) -> None:
        self._on_first = on_first
        self._clock = clock
        self._reader, self._writer = _wakeup_pipe()
        self._count = 0
        self._last = 0.0
        self._first: int | None = None
        self._key = key
        self._pressed = 0.0
        self.presses = 0
        """How often Ctrl-\\ was pressed."""
        self._before: dict[int, Any] = {}
        self._wakeup_before: int | None = None

    @property
    def requested(self) -> bool:
        return self._count > 0

    @property
    def urgent(self) -> bool:
        return self._count > 1

    @property
    def signum(self) -> int | None:
        """The first signal."""
        return self._first

    @property
    def exit_code(self) -> ExitCode | None:
        if self._first is None:
            return None
        return ExitCode.INTERRUPTED if self._first == signal.SIGINT else ExitCode.TERMINATED

    def request(self, signum: int = signal.SIGTERM) -> None:
        """Request a stop, from any thread or from a signal handler."""
        now = self._clock()
        # Both the kernel and the shell report a closed terminal: that is not an urgent request.
        is_again = signum == getattr(signal, "SIGHUP", None) and self._first == signum
        if self._count == 0 or (now - self._last >= _ECHO and not is_again):
            self._count += 1
            self._last = now
        if self._first is None:
            self._first = signum
        self._wake()

    def refuse_to_start(self) -> None:
        """Raise StoppedNow if a stop was requested before the run has started anything."""
        if (code := self.exit_code) is not None:
            raise StoppedNow("stopped before the run started", code)

    def fileno(self) -> int:
        """Readable when there may be a new request. Call `drain` before checking."""
        return self._reader

    def drain(self) -> None:
        with contextlib.suppress(OSError):
            while os.read(self._reader, 4096):
                pass

    def wait(self, seconds: float) -> bool:
        """Sleep, but return early on a request to stop. Returns whether there is one."""
        deadline = self._clock() + seconds
        if self._reader < 0:
            while not self.requested and (left := deadline - self._clock()) > 0:
                time.sleep(min(left, 0.1))
            return self.requested
        with selectors.DefaultSelector() as selector:
            selector.register(self._reader, selectors.EVENT_READ)
            while not self.requested and (left := deadline - self._clock()) > 0:
                if selector.select(left):
                    self.drain()
        return self.requested

    def __enter__(self) -> StopSignal:
        _ENTERED.append(self)
        if threading.current_thread() is threading.main_thread():
            # The wakeup descriptor is written by the C handler, so a signal just before a select ends it, too.
            if self._writer >= 0:
                self._wakeup_before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
            for number in _stopping():
                self._before[number] = signal.signal(number, self._hear)
            if self._key and hasattr(signal, "SIGQUIT"):
                self._before[signal.SIGQUIT] = signal.signal(signal.SIGQUIT, self._press)
        return self

    def __exit__(self, *_: object) -> None:
        _ENTERED.remove(self)
        for number, handler in self._before.items():
            # None: it was set by code that is not Python's, and cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)
        self._before.clear()
        if self._wakeup_before is not None:
            signal.set_wakeup_fd(self._wakeup_before)
            self._wakeup_before = None
        self.close()

    def close(self) -> None:
        reader, writer, self._reader, self._writer = self._reader, self._writer, -1, -1
        for descriptor in (reader, writer):
            if descriptor >= 0:
                os.close(descriptor)

    def _hear(self, signum: int, _frame: FrameType | None) -> None:
        is_first = not self.requested
        self.request(signum)
        _discard_blocked_output()
        if is_first and self._on_first is not None:
            self._on_first()

    def _press(self, _signum: int, _frame: FrameType | None) -> None:
        now = self._clock()
        if not self.presses or now - self._pressed >= _ECHO:
            self.presses += 1
        self._pressed = now

    def _wake(self) -> None:
        # Full: it is readable already. Closed: nothing waits any more.
        with contextlib.suppress(OSError):
            os.write(self._writer, b"\0")


def _discard_blocked_output() -> None:
    """Nobody reads our output, a pager for example: a write that waits for its reader would never see the request.

    Python tries an interrupted write again, with the same descriptor.
    """
    if sys.platform == "win32":
        return
    for descriptor in (1, 2):
        with contextlib.suppress(OSError, ValueError):
            if not select.select((), (descriptor,), (), _READER)[1]:
                nothing = os.open(os.devnull, os.O_WRONLY)
                os.dup2(nothing, descriptor)
                os.close(nothing)


def _wakeup_pipe() -> tuple[int, int]:
    if sys.platform == "win32":  # a pipe cannot be waited for there
        return -1, -1
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    os.set_blocking(writer, False)
    return reader, writer


def _stopping() -> list[int]:
    numbers = [signal.SIGINT, signal.SIGTERM]
    # Under nohup SIGHUP is ignored, and is meant to be.
    if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    return list(numbers)
