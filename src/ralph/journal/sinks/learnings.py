"""Learnings of agents, written once an iteration is final: to a separate file, or to the progress log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from ralph.core.events import IterationEnded, Record
from ralph.core.learning import Learning, learned, news, written
from ralph.core.memory_text import in_log, in_notes
from ralph.journal.sinks.account import Account
from ralph.journal.sinks.door import Door
from ralph.journal.sinks.sink import Sink
from ralph.journal.sinks.wording import iso

HEADER = "# Learnings\n\n"


def learned_in(event: IterationEnded, at: float) -> list[Learning]:
    """Learnings from an attempt that was not accepted are marked permanently."""
    kept = event.kind.keeps_work
    return [learned(text, day=iso(at), story=event.story, commit=event.commit, accepted=kept) for text in event.learned]


def only_news(event: IterationEnded, at: float, known: Callable[[], str]) -> IterationEnded:
    """The iteration with its learnings as lines for a progress log, leaving out those already in it."""
    if not event.learned:
        return event
    new = news(learned_in(event, at), in_log(known()))
    return msgspec.structs.replace(event, learned=tuple(map(written, new)))


def listed(learnings: Sequence[Learning]) -> str:
    return "".join(f"- {written(learning)}\n" for learning in learnings)


class Learnings(Sink):
    """`learnings.md`: one line per learning, without duplicates."""

    def __init__(self, door: Door, path: Path) -> None:
        self._door = door
        self._path = path

    def __call__(self, record: Record, account: Account) -> None:
        event = record.event
        if not isinstance(event, IterationEnded) or not event.learned:
            return
        if new := news(learned_in(event, record.t), in_notes(self._door.read(self._path))):
            self._door.append(self._path, listed(new), header=HEADER)
