"""`u` in a live view: `ralph ui` takes the terminal and gives it back. The run goes on meanwhile.

Nothing of `ralph ui` is imported here: it is a process of its own.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

from ralph.cli.screen import Screen
from ralph.core.errors import RalphError
from ralph.host.process.programs import run_here
from ralph.host.process.signals import is_stopping
from ralph.host.terminal_keys import read_keys, single_keys

_TICK = 0.2
_KEY = b"u"


class UiKey:
    """`journal`: of the run that is shown; None before it has started."""

    def __init__(self, screen: Screen, journal: Callable[[], Path | None]) -> None:
        self.is_offered = sys.stdin.isatty() and find_spec("textual") is not None
        self._screen, self._journal = screen, journal
        self._over = threading.Event()
        self._turn = threading.Lock()
        """Held by the thread while it reads or `ralph ui` runs, and by a question to the user."""
        self._asked = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if sys.stdin.isatty():
            self._thread = threading.Thread(target=self._watch, name="keys", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Waits until the user has left `ralph ui`, unless the process is to end."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """The user is asked a question on the terminal. `ralph ui` is closed for it."""
        self._asked.set()
        try:
            with self._turn:
                yield
        finally:
            self._asked.clear()

    def _watch(self) -> None:
        with contextlib.suppress(OSError, ValueError):  # the terminal is gone
            while not self._over.is_set():
                if self._asked.is_set():
                    self._over.wait(_TICK)
                    continue
                with self._turn:
                    if self._is_pressed() and (journal := self._journal()) is not None:
                        self._open(journal)

    def _is_pressed(self) -> bool:
        """Wait for the key. False: something else is to be done first."""
        descriptor = sys.stdin.fileno()
        with single_keys(descriptor) as is_ours:
            if not is_ours:
                self._over.wait(_TICK)
                return False
            while not self._over.is_set() and not self._asked.is_set():
                if (typed := read_keys(descriptor, _TICK)) is None:
                    return False
                if _KEY in typed:
                    return True
        return False

    def _open(self, journal: Path) -> None:
        if not self.is_offered:
            self._screen.print("`ralph ui` needs textual: pip install 'ralph-loop-engine[tui]'")
            return
        with self._screen.lent():
            try:
                run_here([sys.executable, "-m", "ralph", "ui", str(journal)], os.environ, is_over=self._is_needed)
            except (OSError, RalphError) as error:
                self._screen.print(f"could not start `ralph ui`: {error}")

    def _is_needed(self) -> bool:
        """The terminal is, here."""
        return self._asked.is_set() or is_stopping()
