"""Single keys from a terminal, without Enter and without an echo."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def single_keys(descriptor: int) -> Iterator[bool]:
    """False: another program has the terminal. Ctrl-C and the like stay signals."""
    if sys.platform == "win32" or not _is_in_front(descriptor):
        yield False
        return
    import termios

    before = termios.tcgetattr(descriptor)
    own = termios.tcgetattr(descriptor)
    own[3] &= ~(termios.ICANON | termios.ECHO)
    own[6][termios.VMIN], own[6][termios.VTIME] = 1, 0
    with _in_front(descriptor) as is_here:
        if is_here:
            termios.tcsetattr(descriptor, termios.TCSANOW, own)
    try:
        yield is_here
    finally:
        with _in_front(descriptor) as is_here:
            if is_here:  # else the shell has restored it already
                termios.tcsetattr(descriptor, termios.TCSANOW, before)


def read_keys(descriptor: int, seconds: float) -> bytes | None:
    """What is typed within this time. None: the terminal has single keys no more, after Ctrl-Z and `bg`, or `fg` in a
    shell that restores its own settings. Raises OSError if the terminal is gone."""
    if sys.platform == "win32":
        return None
    import termios

    is_ready = bool(select.select((descriptor,), (), (), seconds)[0])
    with _in_front(descriptor) as is_here:
        if not is_here or termios.tcgetattr(descriptor)[3] & termios.ICANON:
            return None
        if not is_ready:
            return b""
        if typed := os.read(descriptor, 1024):
            return typed
        raise OSError("the terminal is gone")


@contextlib.contextmanager
def _in_front(descriptor: int) -> Iterator[bool]:
    """Whether this process has the terminal. If it loses it meanwhile, it gets an error, and is not stopped."""
    blocked = (signal.SIGTTIN, signal.SIGTTOU)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, blocked)
    try:
        yield _is_in_front(descriptor)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _is_in_front(descriptor: int) -> bool:
    return os.tcgetpgrp(descriptor) == os.getpgrp()
