"""The ledger file: lines appended by several runs, and their totals.

Each record is one write with a newline before and after it, so a record torn by a full disk or a kill damages no
other. Reservations are on disk before the session starts; if a settlement is lost, the reservation still counts, so
money is never forgotten.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from ralph.core.errors import LockHeld, SetupError
from ralph.core.ledger import Anew, Book, Day, Finished, Foretold, Iterated, Kept, Line, Reserve, Settle
from ralph.host.files import make_folder, open_regular, open_state, read_state, write_bytes
from ralph.host.locks import Lock, Owner

NAME = "spending.jsonl"
_PATIENCE = 20.0
"""Seconds to wait for another run that is reserving; that takes milliseconds."""
_LONG = 256 * 1024
"""Ledgers larger than this many bytes are not read from the beginning twice."""
_END = 300


@cache
def _decoder() -> msgspec.json.Decoder[Line]:
    return msgspec.json.Decoder(Reserve | Settle | Iterated | Foretold | Finished | Anew)


def local_day(t: float) -> Day:
    """The calendar day in local time. A day with a clock change is one day, whatever its length."""
    try:
        return time.localtime(t)[:3]
    except (OverflowError, ValueError, OSError):
        return (9999, 12, 31)


class Sums(Struct, frozen=True):
    """The totals of a ledger up to an offset."""

    offset: int
    end: bytes
    """The last bytes before the offset, to detect that the file was replaced."""
    damaged: int
    book: Kept


class Ledger:
    """`book` is up to date after `refresh`. Nothing is created or read before that or the first append."""

    def __init__(self, folder: Path, day_of: Callable[[float], Day] = local_day) -> None:
        self.path = folder / NAME
        self.book = Book(day_of)
        self.damaged = 0
        """Lines that could not be read: torn, or written by a newer Ralph."""
        self._offset = 0
        self._sums = folder / "spending.sums.json"
        self._encoder = msgspec.json.Encoder()

    def refresh(self) -> Book:
        """Read what was added since the last call."""
        try:
            with open_state(self.path) as stream:
                if not self._offset and stream.seek(0, os.SEEK_END) > _LONG:
                    self._take_up(stream)
                stream.seek(self._offset)
                data = stream.read()
        except FileNotFoundError:
            return self.book
        except OSError as error:
            raise self._failed("read", error) from None
        whole = data[: data.rfind(b"\n") + 1]
        self._offset += len(whole)
        decode = _decoder().decode
        for line in whole.splitlines():
            if not line:
                continue
            try:
                self.book.add(decode(line))
            except (msgspec.DecodeError, ValueError):
                self.damaged += 1
        if len(whole) > _LONG:
            self._put_away(whole[-_END:])
        return self.book

    def _take_up(self, stream: BinaryIO) -> None:
        """Start from saved totals. If they are damaged, the lines are read instead."""
        try:
            sums = msgspec.json.decode(read_state(self._sums), type=Sums)
            stream.seek(sums.offset - len(sums.end))
            if sums.end and stream.read(len(sums.end)) == sums.end:
                self.book.take_up(sums.book)
                self._offset, self.damaged = sums.offset, sums.damaged
        except (OSError, msgspec.DecodeError, ValueError):
            return

    def _put_away(self, end: bytes) -> None:
        sums = Sums(self._offset, end, self.damaged, self.book.keep())
        with contextlib.suppress(OSError):
            write_bytes(self._sums, self._encoder.encode(sums), mode=0o600, durable=False)

    def append(self, line: Line, *, durable: bool = False) -> None:
        data = b"\n" + self._encoder.encode(line) + b"\n"
        make_folder(self.path.parent, private=True)
        try:
            descriptor = open_regular(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            try:
                if os.write(descriptor, data) != len(data):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if durable:
                    os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise self._failed("written", error) from None

    def _failed(self, what: str, error: OSError) -> SetupError:
        return SetupError(
            f"the ledger {self.path} could not be {what}: {error.strerror}",
            hint="free disk space or repair the disk; budgets cannot be enforced without the ledger",
        )

    @contextlib.contextmanager
    def alone(self, run: str) -> Iterator[None]:
        """Hold the lock, so that no other run reserves at the same time."""
        lock = Lock(self.path.with_name("spending.lock"))
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                lock.acquire(Owner.here(run))
                break
            except LockHeld:
                if time.monotonic() > deadline:
                    raise
        with lock:
            yield
