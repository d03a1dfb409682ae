"""Receive requests to an active run: by files from other terminals, by Ctrl-\\ in its own.

A thread polls a few times a second, so that requests are acknowledged at once even while an agent is running. The loop
acts on them at its next safe point; only `stop --now` is passed on right away, like Ctrl-C.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from ralph.core.control import Order, Verb, Wish
from ralph.core.errors import RalphError
from ralph.core.events import Asked
from ralph.host.process.signals import StopSignal
from ralph.workspace import inbox

FOLDER = "control"
KEY = "Ctrl-\\"
_SIGNALS = {signal.SIGINT: "Ctrl-C", getattr(signal, "SIGHUP", -1): "terminal closed"}
_TICK = 0.2
_BEAT = 10
"""Ticks between two signs of life."""


class Control:
    """Listens while used as a context manager. Calling it returns the requests so far."""

    def __init__(
        self, state: Path, run: str, stop: StopSignal, tell: Callable[[Asked], object], alive: Path | None = None
    ) -> None:
        """`alive`: a file whose time shows until when this process lived."""
        self._alive = os.open(alive, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600) if alive is not None else -1
        self._folder = state / FOLDER
        self._run = run
        self._stop = stop
        self._tell = tell
        self._wish = Wish()
        self._presses = 0
        self._is_stopping = False
        self._turn = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._listen, name="control", daemon=True)

    def __call__(self) -> Wish:
        with self._turn:
            for verb, by in self._news():
                self._obey(verb, by)
        return self._wish

    def __enter__(self) -> Control:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
        if self._alive >= 0:
            os.close(self._alive)

    def _listen(self) -> None:
        ticks = 0
        while not self._over.wait(_TICK):
            try:
                if self._alive >= 0 and ticks % _BEAT == 0:
                    os.pwrite(self._alive, b".", 0)
                ticks += 1
                self()
                self._acknowledge_signal()
            except (RalphError, OSError):  # a disk in trouble: the loop meets it too, and ends the run properly
                return

    def _acknowledge_signal(self) -> None:
        """What the loop is doing may have to finish first: the user sees at once that it is stopping."""
        if self._stop.requested and not self._is_stopping:
            self._is_stopping = True
            if not self._wish.now:
                self._tell(Asked(Verb.STOP_NOW, _SIGNALS.get(self._stop.signum or 0, "SIGTERM")))

    def _news(self) -> Iterator[tuple[Verb, str]]:
        presses, self._presses = self._presses, self._stop.presses
        if (self._presses - presses) % 2:
            yield (Verb.RESUME if self._wish.pause else Verb.PAUSE), KEY
        for path, order in inbox.look(self._folder, Order):
            with contextlib.suppress(FileNotFoundError):
                path.unlink()
            if order.run == self._run:  # one for a run that is over means nothing to us
                yield order.verb, f"ralph {order.verb.value.replace('-', ' --')}"

    def _obey(self, verb: Verb, by: str) -> None:
        wish = self._wish.after(verb)
        if wish != self._wish:
            self._wish = wish
            self._tell(Asked(verb, by))
        if verb is Verb.STOP_NOW:
            self._stop.request(signal.SIGINT)
