"""The progress log of a plan: a header, then one entry per final iteration. The layout defines the wording."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ralph.core.events import IterationEnded, Record, RunStarted
from ralph.journal.sinks.account import Account
from ralph.journal.sinks.door import Door
from ralph.journal.sinks.learnings import only_news
from ralph.journal.sinks.sink import Sink
from ralph.journal.sinks.wording import iso

Header = Callable[[str, str], str]
"""The plan's name and the time of the first run → the start of the file."""
Entry = Callable[[IterationEnded, str, Account], str]
"""The iteration, its time and the account → text that starts with an empty line, or nothing.

Its learnings are complete lines already.
"""


class Progress(Sink):
    def __init__(self, door: Door, path: Path, name: str, header: Header, entry: Entry) -> None:
        self._door = door
        self._path = path
        self._name = name
        self._header = header
        self._entry = entry

    def __call__(self, record: Record, account: Account) -> None:
        event = record.event
        if isinstance(event, RunStarted):
            self._add("", account)
        elif isinstance(event, IterationEnded):
            event = only_news(event, record.t, lambda: self._door.read(self._path))
            if entry := self._entry(event, iso(record.t), account):
                self._add(entry, account)

    def _add(self, entry: str, account: Account) -> None:
        self._door.append(self._path, entry, header=self._header(self._name, iso(account.run.started_at)))
