"""Appending to a journal: one line an event, one write a line, flushed to the disk at the points that matter."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import msgspec

from ralph.core.events import (
    AgentStarted,
    AnyEvent,
    Committed,
    IterationEnded,
    IterationStarted,
    Judged,
    Record,
    Recovered,
    RescueSaved,
    RunEnded,
    RunStarted,
    Settling,
)
from ralph.host.files import make_folder, sync_folder

_DURABLE = (
    RunStarted,
    IterationStarted,
    AgentStarted,
    Judged,
    Settling,
    RescueSaved,
    Committed,
    IterationEnded,
    Recovered,
    RunEnded,
)

Listener = Callable[[Record], None]


class Journal:
    """One run's record. Listeners (views, sinks) are told after a line is written."""

    def __init__(self, path: Path, clock: Callable[[], float], seq: int = 0) -> None:
        make_folder(path.parent, private=True)
        self.path = path
        self._clock = clock
        self._seq = seq
        self._encoder = msgspec.json.Encoder()
        self._listeners: list[Listener] = []
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
        self._descriptor = os.open(path, flags, 0o600)
        sync_folder(path.parent)

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def write(self, event: AnyEvent) -> Record:
        record = Record(self._seq + 1, round(self._clock(), 3), event)
        self._append(self._encoder.encode(record) + b"\n")
        self._seq += 1
        if isinstance(event, _DURABLE):
            os.fsync(self._descriptor)
        for listener in self._listeners:
            listener(record)
        return record

    def _append(self, line: bytes) -> None:
        """All of the line or nothing of it: a disk that fills up in the middle must not tear the record."""
        size = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, line)
            if written != len(line):
                written += os.write(self._descriptor, line[written:])
            if written != len(line):
                raise OSError(28, "no space left for a line of the journal")
        except OSError:
            os.ftruncate(self._descriptor, size)
            raise

    def close(self) -> None:
        os.close(self._descriptor)
