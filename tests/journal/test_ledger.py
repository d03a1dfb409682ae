"""The ledger's file: two writers, torn lines, a full disk, and days as the calendar has them."""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralph.core.errors import LockHeld, SetupError
from ralph.core.money import Amount
from ralph.host.locks import Lock, Owner
from ralph.journal import ledger as module
from ralph.journal.ledger import Ledger, Settle, local_day

HOUR = 3600.0


def settle(name: str, micros: int = 7, t: float = 0) -> Settle:
    return Settle(id=name, t=t, run="r", plan="p", micros=micros, tokens=1)


WRITER = """
import sys
from pathlib import Path
from ralph.journal.ledger import Reserve, Settle
from ralph.journal.ledger import Ledger

ledger = Ledger(Path(sys.argv[1]))
name, limit = sys.argv[2], 50 * 1000
for n in range(40):
    with ledger.alone(name):
        book = ledger.refresh()
        left = limit - book.ever.micros - sum(line.micros or 0 for line in book.open)
        if left < 1000:
            break
        ledger.append(Reserve(id=f"{name}/{n}", t=0, run=name, plan="p", micros=1000), durable=True)
    ledger.append(Settle(id=f"{name}/{n}", t=0, run=name, plan="p", micros=1000))
"""


def test_two_runs_never_set_aside_more_than_there_is(tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, str(tmp_path)]
    writers = [subprocess.Popen([*command, name]) for name in ("a", "b")]
    assert [writer.wait(60) for writer in writers] == [0, 0]
    ledger = Ledger(tmp_path)
    book = ledger.refresh()
    assert (book.ever.micros, book.open, ledger.damaged) == (50_000, (), 0)


def test_only_what_is_new_is_read(tmp_path: Path) -> None:
    writer, reader = Ledger(tmp_path), Ledger(tmp_path)
    assert reader.refresh().ever == Amount()
    writer.append(settle("a"))
    assert reader.refresh().ever.micros == 7
    writer.append(settle("b"))
    assert reader.refresh().ever.micros == 14
    assert reader.refresh().ever.micros == 14


@pytest.mark.parametrize("cut", [1, 5, 20, 60])
def test_a_torn_line_costs_only_itself(tmp_path: Path, cut: int) -> None:
    ledger = Ledger(tmp_path)
    ledger.append(settle("a"))
    ledger.append(settle("b", 1000))
    ledger.path.write_bytes(ledger.path.read_bytes()[:-cut])
    ledger.append(settle("c"))
    again = Ledger(tmp_path)
    assert again.refresh().ever.micros in ((14,) if cut > 1 else (14, 1014))
    assert again.damaged == (cut > 1)


def test_a_line_that_is_being_written_is_read_later(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.append(settle("a"))
    whole = ledger.path.read_bytes()
    ledger.path.write_bytes(whole + whole[:30])
    reader = Ledger(tmp_path)
    assert reader.refresh().ever.micros == 7
    ledger.path.write_bytes(whole + whole.replace(b'"a"', b'"b"'))
    assert reader.refresh().ever.micros == 14
    assert reader.damaged == 0


def test_a_full_disk_is_told_before_anything_is_spent(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.append(settle("a"))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (ledger.path.stat().st_size + 10, before[1]))
    try:
        with pytest.raises(SetupError, match="could not be written"):
            ledger.append(settle("b"), durable=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    ledger.append(settle("c"))
    assert Ledger(tmp_path).refresh().ever.micros == 14


def test_a_lock_that_is_never_given_back_ends_the_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    taken = Lock(tmp_path / "spending.lock").held_by(Owner.here("other"))
    with taken, pytest.raises(LockHeld), Ledger(tmp_path).alone("me"):
        pytest.fail("it was let in")


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(("month", "day", "hours"), [(3, 29, 23), (10, 25, 25), (6, 1, 24)])
def test_a_day_is_one_day_of_the_calendar_however_long_it_is(month: int, day: int, hours: int) -> None:
    midnight = time.mktime((2026, month, day, 0, 0, 0, 0, 0, -1))
    days = {local_day(midnight + hour * HOUR) for hour in range(hours)}
    assert days == {(2026, month, day)}
    assert local_day(midnight - 1) < (2026, month, day) < local_day(midnight + hours * HOUR)


def test_a_time_that_is_none_is_a_day_to_come() -> None:
    assert local_day(1e30) == local_day(float("inf")) == (9999, 12, 31)


def test_a_long_ledger_is_read_from_its_beginning_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONG", 2000)
    writer = Ledger(tmp_path)
    for n in range(50):
        writer.append(settle(str(n)))
    assert Ledger(tmp_path).refresh().ever.micros == 350
    writer.append(settle("more"))
    reader = Ledger(tmp_path)
    start = writer.path.read_bytes()
    writer.path.write_bytes(start.replace(b'"micros":7', b'"micros":9', 10))  # nobody reads these again
    assert reader.refresh().ever.micros == 357
    writer.path.write_bytes(b"\n" + start)  # another ledger: the sums are not those of this one
    assert Ledger(tmp_path).refresh().ever.micros == 357
    (tmp_path / "spending.sums.json").write_bytes(b"{}")
    assert Ledger(tmp_path).refresh().ever.micros == 357
