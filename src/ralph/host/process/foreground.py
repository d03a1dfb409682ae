"""A process in the foreground, for the user: with the standard streams of this one, or in a terminal that is relayed.

The terminal of the user never gets into an enclosure: what is inside could change its settings, and could not have it
as its own, because it is ours. So there is another one between them, and bytes, size and the end are passed on.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

from ralph.host.process.enclosure import Enclosure, Start
from ralph.host.process.start import why_not_started

_CHUNK = 65536
_GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""


def is_terminal() -> bool:
    return all(os.isatty(descriptor) for descriptor in (0, 1, 2))


def run_here(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], enclosure: Enclosure) -> tuple[int, str]:
    """Run a command to its end: its exit code, as a shell reports it, and what its enclosure reports about the end."""
    sys.stdout.flush()
    sys.stderr.flush()
    return _relayed(argv, cwd, env, enclosure) if is_terminal() else _inherited(argv, cwd, env, enclosure)


def _inherited(argv: Sequence[str], cwd: Path, env: Mapping[str, str], enclosure: Enclosure) -> tuple[int, str]:
    def make(start: Start) -> Popen[bytes]:
        return Popen(list(start.argv), cwd=start.cwd, env=dict(start.env), start_new_session=True)

    process = _start(argv, Start(tuple(argv), cwd, env), enclosure, make)
    return _finish(process, enclosure, process.wait)


def _relayed(argv: Sequence[str], cwd: Path, env: Mapping[str, str], enclosure: Enclosure) -> tuple[int, str]:
    import termios

    ours, theirs = os.openpty()
    termios.tcsetwinsize(theirs, termios.tcgetwinsize(0))
    termios.tcsetattr(theirs, termios.TCSANOW, termios.tcgetattr(0))

    def make(start: Start) -> Popen[bytes]:
        argv, env = list(start.argv), dict(start.env)
        return Popen(argv, stdin=theirs, stdout=theirs, stderr=theirs, cwd=start.cwd, env=env, start_new_session=True)

    try:
        process = _start(argv, Start(tuple(argv), cwd, env, is_terminal=True), enclosure, make)
        os.close(theirs)
        with _raw_terminal(), _follow_size(ours):
            return _finish(process, enclosure, lambda: _relay_until_closed(ours, process))
    finally:
        os.close(ours)


def _start(
    argv: Sequence[str], wanted: Start, enclosure: Enclosure, make: Callable[[Start], Popen[bytes]]
) -> Popen[bytes]:
    try:
        return enclosure.start(wanted, make)
    except (OSError, ValueError) as error:
        raise why_not_started(argv, wanted.cwd, wanted.env, error) from None


def _finish(process: Popen[bytes], enclosure: Enclosure, wait: Callable[[], object]) -> tuple[int, str]:
    with _ended_by_signals(process) as received:
        try:
            wait()
        finally:
            if process.poll() is None:
                _end(process)
            process.wait()
            problem = enclosure.end(process)
    if received:
        raise SystemExit(128 + received[0])
    code = process.returncode
    return (128 - code if code < 0 else code), problem


@contextmanager
def _ended_by_signals(process: Popen[bytes]) -> Iterator[list[int]]:
    """A signal that would end this process ends the command, and then this one.

    The handler raises nothing: an exception in the middle of `Popen.poll` would leave its lock taken for ever.
    """
    received: list[int] = []

    def stop(number: int, _frame: object) -> None:
        received.append(number)
        _end(process)

    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        yield received
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(process: Popen[bytes]) -> None:
    """SIGTERM first: what stands between us and the command may have to clean up."""

    def send(number: int) -> None:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)

    send(signal.SIGTERM)
    later = threading.Timer(_GRACE, send, (signal.SIGKILL,))
    later.daemon = True
    later.start()


def _relay_until_closed(ours: int, process: Popen[bytes]) -> None:
    try:
        _relay(ours, process)
    except OSError as error:
        if error.errno != errno.EIO:  # the user's terminal is gone
            raise


def _relay(ours: int, process: Popen[bytes]) -> None:
    """Until the terminal is closed by all that have it, or the command has ended and said its last."""
    sources = [0, ours]
    while True:
        ready = select.select(sources, (), (), 0.2)[0]
        if ours in ready:
            try:
                data = os.read(ours, _CHUNK)
            except OSError:  # closed at the other end
                data = b""
            if not data:
                process.wait()
                return
            _write(1, data)
        elif process.poll() is not None:
            return
        if 0 in ready:
            data = os.read(0, _CHUNK)
            if data:
                _write(ours, data)
            else:
                sources.remove(0)


def _write(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


@contextmanager
def _raw_terminal() -> Iterator[None]:
    """Keys go to the other terminal as they are: it is the one that makes a signal of Ctrl-C."""
    import termios
    import tty

    before = termios.tcgetattr(0)
    tty.setraw(0, termios.TCSADRAIN)  # what was typed already is kept
    try:
        yield
    finally:
        with contextlib.suppress(OSError, termios.error):  # its window may be closed
            termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextmanager
def _follow_size(ours: int) -> Iterator[None]:
    import termios

    def resize(_number: int, _frame: object) -> None:
        with contextlib.suppress(OSError, termios.error):
            termios.tcsetwinsize(ours, termios.tcgetwinsize(0))

    before = signal.signal(signal.SIGWINCH, resize)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


@contextmanager
def stoppable() -> Iterator[None]:
    """A signal that would end this process leaves by way of all that has to be cleaned up."""

    def stop(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
