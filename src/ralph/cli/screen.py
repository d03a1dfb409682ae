"""Lines at the bottom of a terminal that are drawn again and again, below the lines that stay."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from typing import TextIO

from ralph.cli import output
from ralph.views.panel import Row

_INTERVAL = 0.15
"""Seconds between two redraws: well under half a second."""
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_MOST_KEPT = 50
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"


class Screen:
    """Draws what `render(columns, rows)` returns, in a separate thread. Use as a context manager.

    A closed terminal is no longer written to; the run continues.
    """

    def __init__(self, render: Callable[[int, int], list[Row]], stream: TextIO | None = None) -> None:
        self._render = render
        self._stream = stream or sys.stdout
        self._turn = threading.RLock()
        self._drawn: list[int] = []
        """The width of each line on the screen."""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_gone = False
        self._kept: list[str] | None = None
        """Lines to be printed when the terminal comes back; None: it is here."""

    def __enter__(self) -> Screen:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._over.clear()
        output.divert(self.print)
        self._write(_HIDE)
        self._thread = threading.Thread(target=self._keep_drawing, name="screen", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        output.divert(None)
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._turn:
            self._write(self._erased() + _SHOW)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nothing is drawn while the user is asked a question."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    @contextlib.contextmanager
    def lent(self) -> Iterator[None]:
        """Another program has the terminal. What is printed meanwhile comes after it."""
        self.stop()
        with self._turn:
            kept: list[str] = []
            self._kept = kept
        output.divert(self.print)
        try:
            yield
        finally:
            with self._turn:
                self._kept = None
            if len(kept) > _MOST_KEPT:
                self.print(f"… {len(kept) - _MOST_KEPT} earlier lines: `ralph log` shows them")
            for text in kept[-_MOST_KEPT:]:
                self.print(text)
            self.start()

    def print(self, text: str) -> None:
        """Print a line that stays, above the redrawn ones."""
        with self._turn:
            if self._kept is not None:
                self._kept.append(text)
                return
            self._write(self._erased() + output.folded(text, self._stream).replace("\n", "\r\n") + "\r\n")
            if self._thread is not None:
                self._draw()

    def _keep_drawing(self) -> None:
        while not self._over.wait(_INTERVAL):
            with self._turn:
                self._draw()

    def _draw(self) -> None:
        if self._is_gone:
            return
        columns, rows = size(self._stream)
        # The cursor stays in the first column: the `^C` that a terminal echoes must not wrap.
        lines = self._render(columns, rows)[: max(rows - 1, 1)]
        text = self._erased(columns) + _NO_WRAP + "\r\n".join(line for line, _ in lines) + "\r" + _WRAP
        self._drawn = [min(width, columns) for _, width in lines]
        self._write(text)

    def _erased(self, columns: int = 0) -> str:
        """Move to the start of the first line and clear the rest. A terminal that was made narrower has wrapped the
        lines that are now too long."""
        if not self._drawn:
            return ""
        columns = columns or size(self._stream)[0]
        rows = sum(max(-(-width // columns), 1) for width in self._drawn)
        self._drawn = []
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\x1b[J"

    def _write(self, text: str) -> None:
        if self._is_gone or not text:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._is_gone = True


def size(stream: TextIO) -> tuple[int, int]:
    """The current columns and rows of the terminal."""
    try:
        found = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return 80, 24
    return found.columns or 80, found.lines or 24
