"""The ledger of a workspace: what its sessions cost, across all runs and worktrees, and the totals.

It holds nothing that the journals do not, in a form that is cheap to read at each start. Each record is one write with
a newline before and after it, so a record torn by a full disk or a kill damages no other. Reservations are on disk
before the session starts; if a settlement is lost, the reservation still counts, so money is never forgotten.
"""

from __future__ import annotations

import contextlib
import errno
import os
import time
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from ralph.core.errors import LockHeld, SetupError
from ralph.core.money import NOTHING, Amount, Basis, Extent, Need
from ralph.host.files import make_folder, open_regular, open_state, read_state, write_bytes
from ralph.host.locks import Lock, Owner
from ralph.state.names import LEDGER, LEDGER_LOCK, LEDGER_SUMS

_MOST_STORIES = 200
"""Number of finished stories kept: older ones predict little."""
_MOST_RUNS = 100
_MOST_SETTLED = 1000

Day = tuple[int, int, int]


class Reserve(Struct, frozen=True, gc=False, tag="reserve", kw_only=True):
    """A reservation for a session. It counts until it is settled."""

    id: str
    t: float
    run: str
    plan: str
    story: str = ""
    micros: int | None = None
    """None: only tokens are limited."""
    tokens: int = 0
    pid: int = 0
    start: str = ""
    host: str = ""
    journal: str = ""


class Settle(Struct, frozen=True, gc=False, tag="settle", kw_only=True):
    """The cost of a session."""

    id: str
    t: float
    run: str
    plan: str
    story: str = ""
    basis: Basis = Basis.REPORTED
    micros: int | None = None
    tokens: int = 0
    extent: Extent = Extent.UNKNOWN


class Iterated(Struct, frozen=True, gc=False, tag="iteration", kw_only=True):
    t: float
    run: str
    plan: str
    story: str
    seconds: float = 0
    over: bool = False
    """The story is finished, or given up."""


class Foretold(Struct, frozen=True, tag="forecast", kw_only=True):
    """The forecast at the start of a run: figures for the 50% and the 90% case."""

    t: float
    run: str
    iterations: tuple[float, float]
    seconds: tuple[float, float]
    usd: tuple[float, float] | None = None


class Finished(Struct, frozen=True, tag="finished", kw_only=True):
    """A run that finished its plan, and what that took."""

    t: float
    run: str
    iterations: int
    seconds: float
    micros: int | None = None


class Reset(Struct, frozen=True, tag="anew"):  # the word in ledgers of earlier versions
    """From here on, the budgets of the workspace and its stories count from zero; or that of one story."""

    t: float
    plan: str = ""
    story: str = ""


Line = Reserve | Settle | Iterated | Foretold | Finished | Reset


class Sample(Struct, frozen=True, gc=False):
    """What one story took, from its first iteration to its end."""

    iterations: int
    seconds: float
    micros: int | None
    tokens: int = 0


class Held(Struct, frozen=True):
    """A forecast that can be compared with the result."""

    foretold: Foretold
    finished: Finished


class Kept(Struct, frozen=True):
    """The totals in a form that can be saved, so that a long ledger need not be read from its beginning each time."""

    days: tuple[tuple[Day, Amount], ...]
    open: tuple[Reserve, ...]
    settled: tuple[str, ...]
    begun: tuple[tuple[str, str, Sample], ...]
    foretold: tuple[Foretold, ...]
    ever: Amount
    stories: tuple[tuple[str, str, Amount], ...]
    costliest: int
    largest: int
    samples: tuple[Sample, ...]
    held: tuple[Held, ...]
    needs: tuple[tuple[str, str, Need], ...] = ()


class Book:
    """The totals of the lines, updated as they arrive. `day_of` returns the calendar day of a timestamp."""

    def __init__(self, day_of: Callable[[float], Day]) -> None:
        self._day_of = day_of
        self._days: dict[Day, Amount] = {}
        self._open: dict[str, Reserve] = {}
        self._settled: dict[str, None] = {}
        self._begun: dict[tuple[str, str], Sample] = {}
        self._foretold: dict[str, Foretold] = {}
        self.ever = NOTHING
        self.stories: dict[tuple[str, str], Amount] = {}
        """Plan and story → cost since the last reset."""
        self.needs: dict[tuple[str, str], Need] = {}
        self.costliest = 0
        self.largest = 0
        """Tokens of one session."""
        self.samples: deque[Sample] = deque(maxlen=_MOST_STORIES)
        self.held: deque[Held] = deque(maxlen=_MOST_RUNS)

    def add(self, line: Line) -> None:
        match line:
            case Reserve():
                if line.id not in self._settled:
                    self._open[line.id] = line
            case Settle():
                self._settle(line)
            case Iterated():
                self._iterated(line)
            case Foretold():
                self._foretold[line.run] = line
            case Finished():
                foretold = self._foretold.pop(line.run, None)
                if foretold is not None:
                    self.held.append(Held(foretold, line))
            case Reset(plan=plan, story=story) if story:
                self.stories.pop((plan, story), None)
            case Reset():
                self.ever, self.stories = NOTHING, {}

    def _settle(self, line: Settle) -> None:
        if line.id in self._settled:  # the run that was killed, and the one that closed it
            return
        self._settled[line.id] = None
        self._open.pop(line.id, None)
        amount = Amount(line.micros or 0, line.tokens, int(line.micros is None))
        day = self._day_of(line.t)
        self._days[day] = self._days.get(day, NOTHING) + amount
        self.ever += amount
        if not line.story:
            return
        key = line.plan, line.story
        self.stories[key] = self.stories.get(key, NOTHING) + amount
        self.needs[key] = self.needs.get(key, Need()).after(amount, line.extent)
        if line.basis is not Basis.RESERVED:
            self.costliest, self.largest = max(self.costliest, amount.micros), max(self.largest, amount.tokens)
        before = self._begun.get(key, Sample(0, 0, 0))
        known = None if line.micros is None or before.micros is None else before.micros + line.micros
        self._begun[key] = Sample(before.iterations, before.seconds, known, before.tokens + line.tokens)

    def _iterated(self, line: Iterated) -> None:
        if not line.story:
            return
        key = line.plan, line.story
        before = self._begun.pop(key, Sample(0, 0, None))
        now = Sample(before.iterations + 1, before.seconds + max(line.seconds, 0), before.micros, before.tokens)
        if line.over:
            self.samples.append(now)
        else:
            self._begun[key] = now

    @property
    def open(self) -> tuple[Reserve, ...]:
        """Reserved and never settled."""
        return tuple(self._open.values())

    def since(self, day: Day) -> Amount:
        """Spent on this day. Later days count too: they come from a clock that was set back."""
        spent = NOTHING
        for other, amount in self._days.items():
            if other >= day:
                spent += amount
        return spent

    def of_plan(self, plan: str) -> dict[str, Amount]:
        return {story: amount for (of, story), amount in self.stories.items() if of == plan}

    def needs_of(self, plan: str) -> dict[str, Need]:
        return {story: need for (of, story), need in self.needs.items() if of == plan and need != Need()}

    def keep(self) -> Kept:
        """Keep only the latest settled names: two runs may close the same dead session, but not years apart."""
        return Kept(
            days=tuple(self._days.items()),
            open=self.open,
            settled=tuple(self._settled)[-_MOST_SETTLED:],
            begun=tuple((*key, sample) for key, sample in self._begun.items()),
            foretold=tuple(self._foretold.values())[-_MOST_RUNS:],
            ever=self.ever,
            stories=tuple((*key, amount) for key, amount in self.stories.items()),
            costliest=self.costliest,
            largest=self.largest,
            samples=tuple(self.samples),
            held=tuple(self.held),
            needs=tuple((*key, need) for key, need in self.needs.items()),
        )

    def take_up(self, kept: Kept) -> None:
        """Continue from saved totals."""
        self._days = dict(kept.days)
        self._open = {line.id: line for line in kept.open}
        self._settled = dict.fromkeys(kept.settled)
        self._begun = {(plan, story): sample for plan, story, sample in kept.begun}
        self._foretold = {line.run: line for line in kept.foretold}
        self.ever, self.costliest, self.largest = kept.ever, kept.costliest, kept.largest
        self.stories = {(plan, story): amount for plan, story, amount in kept.stories}
        self.needs = {(plan, story): need for plan, story, need in kept.needs}
        self.samples.extend(kept.samples)
        self.held.extend(kept.held)


_PATIENCE = 20.0
"""Seconds to wait for another run that is reserving; that takes milliseconds."""
_LONG = 256 * 1024
"""Ledgers larger than this many bytes are not read from the beginning twice."""
_END = 300


@cache
def _decoder() -> msgspec.json.Decoder[Line]:
    return msgspec.json.Decoder(Reserve | Settle | Iterated | Foretold | Finished | Reset)


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
        self.path = folder / LEDGER
        self.book = Book(day_of)
        self.damaged = 0
        """Lines that could not be read: torn, or written by a newer Ralph."""
        self._offset = 0
        self._sums = folder / LEDGER_SUMS
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
        lock = Lock(self.path.with_name(LEDGER_LOCK))
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
