"""Append to a journal: one line per event, one write per line, flushed to disk where it matters."""

from __future__ import annotations

import contextlib
import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from ralph.core.errors import SetupError
from ralph.core.events import (
    AnyEvent,
    IterationEnded,
    IterationStarted,
    Record,
    Recovered,
    RunEnded,
    RunStarted,
    Settling,
)
from ralph.host.files import make_folder, open_regular, sync_folder
from ralph.host.redaction import redact_struct
from ralph.journal.chain import chained, digest, last_line, write_head

_DURABLE = (RunStarted, IterationStarted, Settling, IterationEnded, Recovered, RunEnded)
"""Events flushed to disk, with everything before them, to survive a power cut. A kill loses nothing that was written:
the agent may survive it, and its record exists. A power cut ends the agent too, so its record is not needed.
"""

Listener = Callable[[Record], None]


class JournalFailed(SetupError):
    """What cannot be recorded must not be done: the run ends, and the next one finishes or rolls back the rest."""

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(
            f"the journal {path} could not be written: {error.strerror}",
            hint="free disk space or repair the disk, then continue with `ralph run`",
        )


class Journal:
    """The journal of one run. Listeners (views, sinks) are called after a line is written.

    A listener that fails to write, because its terminal is gone or its pipe is closed, is not called again: a view must
    not end a run. Any thread may write: control requests are answered while an agent runs.
    """

    def __init__(self, path: Path, clock: Callable[[], float], seq: int = 0) -> None:
        make_folder(path.parent, private=True)
        self.path = path
        self._clock = clock
        self._seq = seq
        self._is_over = False
        self._turn = threading.RLock()
        self._encoder = msgspec.json.Encoder()
        self._before = digest(last_line(path))
        self._listeners: list[Listener] = []
        try:
            self._descriptor = open_regular(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        except OSError as error:
            raise JournalFailed(path, error) from error
        sync_folder(path.parent)

    def listen(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def write(self, event: AnyEvent) -> Record:
        with self._turn:
            return self._write(redact_struct(event))

    def write_unless_over(self, event: AnyEvent) -> None:
        """For another thread: the run may end in this very moment, and the record of its end is the last one."""
        with self._turn:
            if not self._is_over:
                self.write(event)

    def _write(self, event: AnyEvent) -> Record:
        record = Record(self._seq + 1, round(self._clock(), 3), event)
        try:
            line = chained(self._encoder.encode(record), self._before)
            self._append(line)
            self._seq, self._before = self._seq + 1, digest(line)
            self._is_over = isinstance(event, RunEnded)
            if isinstance(event, _DURABLE):
                os.fsync(self._descriptor)
                write_head(self.path, self._seq, line)
        except OSError as error:
            raise JournalFailed(self.path, error) from error
        for listener in tuple(self._listeners):
            try:
                listener(record)
            except OSError:
                self._listeners.remove(listener)
        return record

    def _append(self, line: bytes) -> None:
        """Write all of the line or none of it: a disk that fills up must not tear the record."""
        size = os.fstat(self._descriptor).st_size
        try:
            written = os.write(self._descriptor, line)
            if written != len(line):
                written += os.write(self._descriptor, line[written:])
            if written != len(line):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            with contextlib.suppress(OSError):  # what stays is a torn last line, and those are known
                os.ftruncate(self._descriptor, size)
            raise

    def close(self) -> None:
        os.close(self._descriptor)
