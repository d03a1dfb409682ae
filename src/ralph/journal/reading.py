"""Read a journal: strictly, except for a last line torn by a crash."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from functools import cache, partial
from pathlib import Path

import msgspec

from ralph import __version__
from ralph.core.errors import BadData
from ralph.core.events import SCHEMA, Record, RunStarted
from ralph.core.problems import Place
from ralph.core.text import plural
from ralph.host.files import open_state
from ralph.journal.chain import LONGEST_LINE, digest, link, read_head


@cache
def _decoder() -> msgspec.json.Decoder[Record]:
    """Built on first use, because that takes a few milliseconds."""
    return msgspec.json.Decoder(Record)


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
                    yield _decoder().decode(line)


class _Version(msgspec.Struct):
    v: int = SCHEMA
    event: dict[str, object] = {}


def _decode(line: bytes, path: Path, number: int, version: str = "") -> Record:
    """`version`: the one that wrote the journal, as far as it is known."""
    place = Place(str(path), number)
    try:
        record = _decoder().decode(line)
        schema = record.v
    except msgspec.DecodeError as error:
        try:
            found = msgspec.json.decode(line, type=_Version)
        except msgspec.DecodeError:
            found = _Version()
        schema, version = found.v, str(found.event.get("version") or version)
        if schema <= SCHEMA and not is_newer(version):
            what = f"the journal is damaged: {error}"
            raise BadData(what, where=place, hint="the lines before it are intact") from None
        record = None
    if record is not None and schema <= SCHEMA:
        return record
    by = f"schema {schema}" if schema > SCHEMA else f"version {version}"
    supported = SCHEMA if schema > SCHEMA else __version__
    raise Newer(
        f"the journal was written with {by} of Ralph; this is {supported}",
        where=place,
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
    """Reads what was added to a journal on each call; for views in other processes."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0
        self._number = 0

    def news(self) -> list[Record]:
        try:
            with open_state(self._path) as stream:
                stream.seek(self._offset)
                data = stream.read(LONGEST_LINE)
        except OSError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        records = []
        for line in whole.splitlines(keepends=True):
            self._number += 1
            records.append(_decode(line, self._path, self._number))
        return records
