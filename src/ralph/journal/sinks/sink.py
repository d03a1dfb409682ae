"""A sink writes one file, or a few related ones, from the records. `Sinks` combines a run's sinks into one listener.

Between the checkpoint and the end of an iteration, a sink writes only markers for the agent, and those are removed
before the tree is inspected. Everything else waits until the iteration is final: written earlier, it would be
committed with the story or rolled back with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ralph.core.events import Record
from ralph.core.text import one_line
from ralph.journal.sinks.account import Account
from ralph.journal.sinks.door import Door


class Sink:
    def __call__(self, record: Record, account: Account) -> None:
        """Called with each record, after the account has seen it."""
        raise NotImplementedError

    def tidy(self) -> None:
        """Remove what must not outlive the agent."""


class Sinks:
    """A listener for a journal. It never raises: errors are collected in `failures`."""

    def __init__(self, door: Door, sinks: Sequence[Sink]) -> None:
        self._door = door
        self._sinks = tuple(sinks)
        self._account = Account()

    @property
    def failures(self) -> tuple[str, ...]:
        return self._door.failures

    def __call__(self, record: Record) -> None:
        self._account.add(record)
        for sink in self._sinks:
            try:
                sink(record, self._account)
            except Exception as error:  # noqa: BLE001 - a file for people must not end a run
                self._door.note(type(sink).__name__, one_line(f"{type(error).__name__}: {error}", 200))

    def catch_up(self, records: Sequence[Record]) -> None:
        """Replay the records of a killed run.

        A record on disk means that the sinks had handled the one before it. Only the last record may have been missed:
        it is sent again, and entries already in a file are not written twice.
        """
        self._door.is_muted = True
        for record in records[:-1]:
            self(record)
        self._door.is_muted = False
        self._door.is_retelling = True
        for record in records[-1:]:
            self(record)
        self._door.is_retelling = False
        self.close()
        self._door.sweep()

    def close(self) -> None:
        for sink in self._sinks:
            sink.tidy()
