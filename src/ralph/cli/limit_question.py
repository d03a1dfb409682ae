"""Questions of a run to the user at the terminal, each with a time limit: the user may be away."""

from __future__ import annotations

import contextlib
import os
import selectors
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager

from ralph.cli.output import note
from ralph.cli.words import until_when
from ralph.core.text import one_line
from ralph.host.process.signals import StopSignal

SECONDS = 30.0
_BASELINE_SECONDS = 300.0
_LOOK = 0.2
_AT_LIMIT = {"w": "wait", "wait": "wait", "e": "exit", "exit": "exit"}
_AT_BASELINE = {
    "c": "continue", "continue": "continue", "n": "no-worse", "no-worse": "no-worse", "s": "stop", "stop": "stop",
}  # fmt: skip


class _Question:
    """`quiet` returns a context in which no live view draws over the question."""

    def __init__(self, stop: StopSignal, quiet: Callable[[], AbstractContextManager[object]]) -> None:
        self._stop = stop
        self._quiet = quiet

    def _answer(
        self, answers: Mapping[str, str], help_text: str, seconds: float, is_enough: Callable[[], bool] = lambda: False
    ) -> str:
        """One of `answers`; "nobody" after the time limit; empty if another request to the run arrives first."""
        deadline = time.monotonic() + seconds
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
                    elif answer := answers.get(typed.decode("utf-8", "replace").strip().lower()):
                        return answer
                    else:
                        note(help_text)
        return "nobody"


class LimitQuestion(_Question):
    """At a usage limit: wait or exit? Without an answer `on_limit` decides."""

    def __init__(
        self, stop: StopSignal, quiet: Callable[[], AbstractContextManager[object]], *, exits: bool = False
    ) -> None:
        super().__init__(stop, quiet)
        self._silence = f"without an answer within {SECONDS:.0f} s it {'exits' if exits else 'waits'}"

    def __call__(self, why: str, until: float, is_enough: Callable[[], bool]) -> str:
        with self._quiet():
            note(f"{one_line(why)}, until {until_when(until, time.time())}.", "yellow")
            note(f"Wait, or exit? [w/e], then Enter; {self._silence}.", "bold")
            return self._answer(_AT_LIMIT, "w waits, e exits", SECONDS, is_enough)


class BaselineQuestion(_Question):
    """A check fails before any work: continue or stop? Without an answer the run stops."""

    def __call__(self, why: str) -> str:
        with self._quiet():
            note(f"{one_line(why)}. With `baseline: strict` every story is rejected until it passes.", "yellow")
            note("Continue (c), do not reject stories for it (n, `baseline: no-worse`), or stop (s)?", "bold")
            return self._answer(_AT_BASELINE, "type c, n or s, then Enter", _BASELINE_SECONDS)
