"""`.ralph/sessions.log` of seed 000: one line for each iteration that did not finish its story."""

from __future__ import annotations

from pathlib import Path

from ralph.core.events import IterationEnded, Record
from ralph.core.verdict import Kind
from ralph.journal.sinks.account import Account
from ralph.journal.sinks.door import Door
from ralph.journal.sinks.sink import Sink
from ralph.journal.sinks.wording import story_name


class SessionsLog(Sink):
    def __init__(self, door: Door, path: Path) -> None:
        self._door = door
        self._path = path

    def __call__(self, record: Record, account: Account) -> None:
        event = record.event
        if not isinstance(event, IterationEnded) or event.completes or not event.story:
            return
        reason = "in-review" if event.kind is Kind.ACCEPTED else event.kind.value
        # Colons divide the fields, so an id cannot have one.
        story = story_name(event).replace(":", "-")
        self._door.append(self._path, f"incomplete:{story}:{int(record.t)}:{reason}\n")
