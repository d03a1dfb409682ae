"""The chain of a journal: each line ends with the digest of the line before it.

A changed, added or removed line shows, and so does a journal that was cut: `events.head` beside it names the last
record that had to survive. Lines of older versions have no digest and stay readable.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.host.files import open_state, read_state, write_bytes

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes. A longer one was not written by a run."""
_SIZE = 12
_KEY = b',"prev":"'
_LENGTH = len(_KEY) + 2 * _SIZE + len(b'"}\n')


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
