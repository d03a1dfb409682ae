"""What a user tells an active run: requests, by files from other terminals or by Ctrl-\\, and notes for its agents.

A thread polls a few times a second, so that requests are acknowledged at once even while an agent is running. The loop
acts on them at its next safe point; only `stop --now` is passed on right away, like Ctrl-C.

A note goes into the next prompt and is kept until an agent has worked with it. A session without a result (a limit, a
broken connection, Ctrl-C) or a killed run does not use up a note. Nor does a review use up a note for every story.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType

from ralph.core.control import Note, Order, Verb, Wish
from ralph.core.errors import RalphError
from ralph.core.events import Asked, Guided, IterationEnded, Record
from ralph.core.plan import Mode
from ralph.core.verdict import Kind
from ralph.host.process.signals import StopSignal
from ralph.state import inbox
from ralph.state.names import NOTES, ORDERS

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
        self._folder = state / ORDERS
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


_CAME_TO_NOTHING = frozenset({Kind.LIMIT, Kind.TRANSPORT, Kind.INTERRUPTED, Kind.MISCONFIGURED, Kind.RETURNED})


def leave(state: Path, note: Note) -> Path:
    return inbox.put(state / NOTES, note)


def notes_for(state: Path, story: str) -> tuple[tuple[Path, Note], ...]:
    """The notes for the next prompt of this story, oldest first. They are not removed."""
    return tuple(found for found in inbox.look(state / NOTES, Note) if found[1].is_for(story))


def carry_over(state: Path, to: Path) -> None:
    """Move waiting notes to the workspace where a plan is worked on instead."""
    for path, note in inbox.look(state / NOTES, Note):
        leave(to, note)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


class Guidance:
    """The notes of one run's plan: handed out to iterations, recorded, and removed once used."""

    def __init__(self, state: Path, tell: Callable[[Guided], object]) -> None:
        self._state = state
        self._tell = tell
        self._handed: dict[Path, tuple[int, bool]] = {}
        """Note → its iteration, and whether it is for every story."""

    def __call__(self, iteration: int, story: str) -> tuple[str, ...]:
        found = notes_for(self._state, story)
        for path, note in found:
            if self._handed.get(path, (0,))[0] != iteration:  # a step that is tried again gets it again
                self._handed[path] = (iteration, not note.story)
                self._tell(Guided(iteration, note.text, note.story))
        return tuple(note.text for _, note in found)

    def listen(self, record: Record) -> None:
        event = record.event
        if not isinstance(event, IterationEnded) or event.kind in _CAME_TO_NOTHING:
            return
        for path, (iteration, is_general) in list(self._handed.items()):
            if iteration == event.iteration:
                del self._handed[path]
                if is_general and event.mode is Mode.REVIEW:  # it is for the agent that writes the code
                    continue
                with contextlib.suppress(OSError):
                    path.unlink()
