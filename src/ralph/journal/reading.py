"""Read a journal: strictly, except for a last line torn by a crash."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import msgspec

from ralph.core.errors import BadData
from ralph.core.events import SCHEMA, Record
from ralph.core.problems import Place


@cache
def _decoder() -> msgspec.json.Decoder[Record]:
    """Built on first use, because that takes a few milliseconds."""
    return msgspec.json.Decoder(Record)


def read(path: Path) -> Iterator[Record]:
    """The records in order. A torn last line is skipped; damage anywhere else is an error."""
    try:
        stream = path.open("rb")
    except FileNotFoundError:
        raise BadData("journal not found", where=Place(str(path))) from None
    with stream:
        for number, line in enumerate(stream, 1):
            if not line.endswith(b"\n"):
                return
            yield _decode(line, path, number)


def pick(path: Path, marks: Sequence[bytes]) -> Iterator[Record]:
    """The records that contain one of these words, skipping unreadable lines. For optional information."""
    try:
        stream = path.open("rb")
    except OSError:
        return
    with stream:
        for line in stream:
            if any(mark in line for mark in marks):
                with contextlib.suppress(msgspec.DecodeError):
                    yield _decoder().decode(line)


def _decode(line: bytes, path: Path, number: int) -> Record:
    try:
        record = _decoder().decode(line)
    except msgspec.DecodeError as error:
        place = Place(str(path), number)
        raise BadData(f"the journal is damaged: {error}", where=place, hint="the lines before it are intact") from None
    if record.v > SCHEMA:
        raise BadData(
            f"the journal has schema {record.v}; this version of Ralph supports {SCHEMA}",
            where=Place(str(path), number),
            hint="use the newer version of Ralph that wrote it",
        )
    return record


def cut_torn_tail(path: Path) -> int:
    """Remove a torn last line before the journal of a killed run is continued. Returns the number of bytes removed."""
    with path.open("r+b") as stream:
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
            with self._path.open("rb") as stream:
                stream.seek(self._offset)
                data = stream.read()
        except FileNotFoundError:
            return []
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        records = []
        for line in whole.splitlines(keepends=True):
            self._number += 1
            records.append(_decode(line, self._path, self._number))
        return records
