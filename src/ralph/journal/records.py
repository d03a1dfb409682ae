"""The journal file: records appended one line each, chained, and read strictly.

Each line ends with the digest of the line before it, so a changed, added or removed line shows, and so does a journal
that was cut: `events.head` beside it names the last record that had to survive. Lines of older versions have no digest
and stay readable. Only a last line that a crash has torn is tolerated.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from ralph import __version__
from ralph.core.errors import BadData, SetupError
from ralph.core.events import (
    SCHEMA,
    AnyEvent,
    IterationEnded,
    IterationStarted,
    Judged,
    Record,
    Recovered,
    RunEnded,
    RunStarted,
    Settling,
)
from ralph.core.problems import Place
from ralph.core.rules import UNRECORDED, VerdictRules
from ralph.core.text import plural
from ralph.host.files import make_folder, open_regular, open_state, read_state, sync_folder, write_bytes
from ralph.host.redaction import redact_struct

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes. A longer one was not written by a run."""
_PART = 1024 * 1024
_HEAD = 100
"""The number, the time and the kind of an event are within this many bytes of the beginning of its line."""
_SIZE = 12
_KEY = b',"prev":"'
_LENGTH = len(_KEY) + 2 * _SIZE + len(b'"}\n')
_DURABLE = (RunStarted, IterationStarted, Settling, IterationEnded, Recovered, RunEnded)
"""Events flushed to disk, with everything before them, to survive a power cut. A kill loses nothing that was written:
the agent may survive it, and its record exists. A power cut ends the agent too, so its record is not needed.
"""


class Head(Struct, frozen=True):
    seq: int
    digest: str


def digest(line: bytes) -> str:
    return hashlib.blake2b(line, digest_size=_SIZE).hexdigest()


def chained(record: bytes, before: str) -> bytes:
    """An encoded record as a line that names the digest of the line before it."""
    return record[:-1] + _KEY + before.encode() + b'"}\n'


def link(line: bytes) -> str:
    """The digest a line names; empty if it names none."""
    end = line[-_LENGTH:]
    return end[len(_KEY) : -3].decode("ascii", "replace") if end.startswith(_KEY) else ""


def last_line(path: Path) -> bytes:
    """The last complete line; empty if there is none."""
    try:
        with open_state(path) as stream:
            size = stream.seek(0, os.SEEK_END)
            span = 65536
            while True:
                stream.seek(max(size - span, 0))
                data = stream.read(span)
                lines = data[: data.rfind(b"\n") + 1].splitlines(keepends=True)
                if len(lines) > 1 or span >= min(size, LONGEST_LINE):
                    return lines[-1] if lines else b""
                span *= 8
    except OSError:
        return b""


def write_head(journal: Path, seq: int, line: bytes) -> None:
    """A head that cannot be written costs only the comparison."""
    with contextlib.suppress(OSError):
        write_bytes(_head(journal), msgspec.json.encode(Head(seq, digest(line))), mode=0o600, durable=False)


def read_head(journal: Path) -> Head | None:
    """None in older journals, or if it is damaged itself: a kill can leave it behind the journal, but not ahead."""
    try:
        return msgspec.json.decode(read_state(_head(journal)), type=Head)
    except (OSError, msgspec.DecodeError):
        return None


def _head(journal: Path) -> Path:
    return journal.with_suffix(".head")


_building = threading.Lock()


@cache
def _decoder() -> msgspec.json.Decoder[Record]:
    """Built on first use, because that takes a few milliseconds; by one thread at a time, or msgspec crashes."""
    with _building:
        return msgspec.json.Decoder(Record)


class _FlatEvent(msgspec.Struct):
    evidence: VerdictRules


class _FlatRules(msgspec.Struct):
    event: _FlatEvent


def _record(line: bytes) -> Record:
    """One record. Evidence of older versions has the rules among its own fields."""
    record = _decoder().decode(line)
    if not isinstance(record.event, Judged) or record.event.evidence.rules is not UNRECORDED:
        return record
    rules = msgspec.json.decode(line, type=_FlatRules).event.evidence
    change = msgspec.structs.replace
    return change(record, event=change(record.event, evidence=change(record.event.evidence, rules=rules)))


class Newer(BadData):
    """A newer version of Ralph wrote it. What it says must not be guessed."""


def read(path: Path) -> Iterator[Record]:
    """The records in order. A torn last line is skipped; damage anywhere else, or a broken chain, is an error."""
    for record, _ in _lines(path):
        yield record


def read_for_recovery(path: Path) -> list[Record]:
    """All records, compared with the head as well: only a journal that is whole is acted on."""
    head = read_head(path)
    records, is_whole = [], head is None
    for record, line in _lines(path):
        records.append(record)
        is_whole = is_whole or (head is not None and record.seq == head.seq and digest(line) == head.digest)
    if is_whole and records:
        return records
    what = "is empty"
    if records and head is not None:
        what = f"was cut or changed: it has {plural(len(records), 'record')}, and had at least {head.seq}"
    raise BadData(f"the journal {what}", where=Place(str(path)), hint="nothing in it is acted on")


def damage(path: Path) -> str:
    """Why the next run acts on nothing in the journal of a killed run; "" if the journal is whole."""
    try:
        read_for_recovery(path)
    except BadData as error:
        return error.message
    return ""


def _lines(path: Path) -> Iterator[tuple[Record, bytes]]:
    try:
        stream = open_state(path)
    except FileNotFoundError:
        raise BadData("journal not found", where=Place(str(path))) from None
    except OSError as error:
        raise BadData(f"the journal could not be read: {error.strerror}", where=Place(str(path))) from None
    is_chained = False
    before, version = b"", ""
    with stream:
        for number, line in enumerate(iter(partial(stream.readline, LONGEST_LINE), b""), 1):
            if len(line) == LONGEST_LINE:
                raise BadData(f"a line of more than {LONGEST_LINE:,} bytes", where=Place(str(path), number))
            if not line.endswith(b"\n"):
                return
            record = _decode(line, path, number, version)
            named = link(line)
            is_chained = is_chained or bool(named)
            if is_chained and named != digest(before):
                raise BadData(
                    "the journal was changed: this line does not continue the one before it",
                    where=Place(str(path), number),
                    hint="nothing in it is acted on",
                )
            if isinstance(record.event, RunStarted):
                version = record.event.version
            yield record, line
            before = line


def pick(path: Path, marks: Sequence[bytes]) -> Iterator[Record]:
    """The records that contain one of these words, skipping unreadable lines. For optional information."""
    try:
        stream = open_state(path)
    except OSError:
        return
    with stream:
        for line in iter(partial(stream.readline, LONGEST_LINE), b""):
            if any(mark in line for mark in marks):
                with contextlib.suppress(msgspec.DecodeError):
                    yield _record(line)


class _Version(msgspec.Struct):
    v: int = SCHEMA
    event: dict[str, object] = {}


def _decode(line: bytes, path: Path, number: int, version: str = "") -> Record:
    """`version`: the one that wrote the journal, as far as it is known."""
    try:
        record = _record(line)
        if (schema := record.v) <= SCHEMA:
            return record
    except msgspec.DecodeError as error:
        try:
            found = msgspec.json.decode(line, type=_Version)
        except msgspec.DecodeError:
            found = _Version()
        schema, version = found.v, str(found.event.get("version") or version)
        if schema <= SCHEMA and not is_newer(version):
            what = f"the journal is damaged: {error}"
            raise BadData(what, where=Place(str(path), number), hint="the lines before it are intact") from None
    by = f"schema {schema}" if schema > SCHEMA else f"version {version}"
    supported = SCHEMA if schema > SCHEMA else __version__
    raise Newer(
        f"the journal was written with {by} of Ralph; this is {supported}",
        where=Place(str(path), number),
        hint="use the newer version of Ralph that wrote it",
    )


def is_newer(version: str) -> bool:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in re.findall(r"\d+", text)[:3]]

    return numbers(version) > numbers(__version__)


def cut_torn_tail(path: Path) -> int:
    """Remove a torn last line before the journal of a killed run is continued. Returns the number of bytes removed."""
    with open_state(path, "r+b") as stream:
        size = stream.seek(0, os.SEEK_END)
        position = size
        while position > 0:
            start = max(0, position - 65536)
            stream.seek(start)
            at = stream.read(position - start).rfind(b"\n")
            if at >= 0:
                position = start + at + 1
                break
            position = start
        if position < size:
            stream.truncate(position)
    return size - position


class Follower:
    """Reads what was added to a journal on each call; for views in other processes.

    `skip`: a kind of event that is passed over, such as what agents said, which is most of a long journal.
    """

    def __init__(self, path: Path, skip: str = "") -> None:
        self._path = path
        self._skip = f'"event":{{"type":"{skip}"'.encode() if skip else b""
        self._offset = 0
        self._number = 0

    def news(self) -> list[Record]:
        return [record for _, record in self.placed()]

    def placed(self) -> Iterator[tuple[int, Record]]:
        """Each new record with the offset of its line, for `records_at`."""
        try:
            stream = open_state(self._path)
        except OSError:
            return
        with stream:
            for line in self._lines(stream):
                is_skipped = bool(self._skip) and line.find(self._skip, 0, _HEAD) >= 0
                record = None if is_skipped else _decode(line, self._path, self._number + 1)
                offset, self._number, self._offset = self._offset, self._number + 1, self._offset + len(line)
                if record is not None:
                    yield offset, record

    def _lines(self, stream: BinaryIO) -> Iterator[bytes]:
        """Those that are complete. A part at a time: a journal may be larger than the memory."""
        part = _PART
        while part <= LONGEST_LINE:
            try:
                stream.seek(self._offset)
                data = stream.read(part)
            except OSError:
                return
            if end := data.rfind(b"\n") + 1:
                yield from data[:end].splitlines(keepends=True)
                part = _PART
            elif len(data) < part:
                return
            else:
                part *= 8


def records_at(path: Path, offsets: Sequence[int]) -> list[Record]:
    """The records that begin at these offsets, in this order."""
    with open_state(path) as stream:
        records = []
        for offset in offsets:
            stream.seek(offset)
            records.append(_record(stream.readline(LONGEST_LINE)))
    return records


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
