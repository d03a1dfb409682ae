"""At a usage limit, on a terminal: wait or exit? Whoever does not answer is not there, and the run waits."""

from __future__ import annotations

import contextlib
import os
import selectors
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager

from ralph.cli.output import note
from ralph.cli.words import until_when
from ralph.core.text import one_line
from ralph.host.signals import StopSignal

SECONDS = 30.0
_LOOK = 0.2
_ANSWERS = {"w": "wait", "wait": "wait", "e": "exit", "exit": "exit"}


class LimitQuestion:
    """`quiet` gives a context in which no live view draws over the question."""

    def __init__(self, stop: StopSignal, quiet: Callable[[], AbstractContextManager[object]]) -> None:
        self._stop = stop
        self._quiet = quiet

    def __call__(self, why: str, until: float, is_enough: Callable[[], bool]) -> str:
        """Nothing: somebody wants something else of the run."""
        with self._quiet():
            note(f"{one_line(why)}, until {until_when(until, time.time())}.", "yellow")
            note(f"Wait, or exit? [w/e], then Enter; without an answer within {SECONDS:.0f} s it waits.", "bold")
            return self._answer(time.monotonic() + SECONDS, is_enough)

    def _answer(self, deadline: float, is_enough: Callable[[], bool]) -> str:
        with selectors.DefaultSelector() as selector, contextlib.suppress(OSError, ValueError):
            selector.register(sys.stdin, selectors.EVENT_READ, data=True)
            selector.register(self._stop.fileno(), selectors.EVENT_READ)
            while not self._stop.requested and (left := deadline - time.monotonic()) > 0:
                if is_enough():
                    return ""
                for key, _ in selector.select(min(left, _LOOK)):
                    if not key.data:
                        self._stop.drain()
                    elif not (typed := os.read(sys.stdin.fileno(), 4096)):
                        return "nobody"
                    elif answer := _ANSWERS.get(typed.decode("utf-8", "replace").strip().lower()):
                        return answer
                    else:
                        note("w waits, e exits")
        return "nobody"
