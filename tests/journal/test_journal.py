from __future__ import annotations

import os
import re
import stat
from pathlib import Path

import msgspec
import pytest

from ralph.core.errors import BadData, UsageError
from ralph.core.events import Judged, Noted, Record, RunEnded, RunStarted
from ralph.core.moves import Reason
from ralph.core.proof import Grade, Tamper
from ralph.core.review import OnCap
from ralph.core.rules import VerdictRules
from ralph.journal.records import Follower, Journal, JournalFailed, Newer, cut_torn_tail, read, read_for_recovery
from ralph.state.runs import find_run, journal_path, list_runs, new_run_id


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "events.jsonl"


def write(path: Path, *texts: str) -> None:
    journal = Journal(path, clock=lambda: 12.3456)
    for text in texts:
        journal.write(Noted(text))
    journal.close()


def test_what_is_written_is_read_back_in_order(path: Path) -> None:
    write(path, "one", "two")
    assert list(read(path)) == [Record(1, 12.346, Noted("one")), Record(2, 12.346, Noted("two"))]


def test_a_torn_last_line_is_left_out_and_can_be_cut(path: Path) -> None:
    write(path, "one", "two")
    whole = path.read_bytes()
    for length in range(whole.index(b"\n") + 2, len(whole)):
        path.write_bytes(whole[:length])
        assert [r.event for r in read(path)] == [Noted("one")]
    assert cut_torn_tail(path) > 0
    assert path.read_bytes() == whole[: whole.index(b"\n") + 1]


def test_damage_before_the_last_line_is_an_error_that_names_the_line(path: Path) -> None:
    write(path, "one", "two", "three")
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0] + b'{"torn\n' + lines[2])
    with pytest.raises(BadData, match=r"events.jsonl:2: the journal is damaged"):
        list(read(path))


def test_a_newer_schema_is_refused(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"seq":1,"t":1,"event":{"type":"Noted","text":"x"},"v":99}\n')
    with pytest.raises(BadData, match="schema 99"):
        list(read(path))


def test_a_write_that_fails_in_the_middle_leaves_no_half_line(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(path, clock=lambda: 0.0)
    journal.write(Noted("one"))
    real_write = os.write

    def full_disk(descriptor: int, data: bytes) -> int:
        real_write(descriptor, data[:10])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full_disk)
        with pytest.raises(JournalFailed, match="No space"):
            journal.write(Noted("two"))
    journal.write(Noted("three"))
    journal.close()
    assert [(r.seq, r.event) for r in read(path)] == [(1, Noted("one")), (2, Noted("three"))]


def test_a_view_whose_terminal_is_gone_does_not_end_the_run(path: Path) -> None:
    journal = Journal(path, clock=lambda: 0.0)
    told: list[int] = []

    def view(record: Record) -> None:
        told.append(record.seq)
        raise OSError(5, "Input/output error")

    journal.listen(view)
    journal.listen(lambda record: told.append(-record.seq))
    journal.write(Noted("one"))
    journal.write(Noted("two"))
    journal.close()
    assert told == [1, -1, -2]


def test_listeners_are_told_after_the_line_is_on_disk(path: Path) -> None:
    journal = Journal(path, clock=lambda: 0.0)
    seen: list[bytes] = []
    journal.listen(lambda record: seen.append(path.read_bytes()))
    journal.write(RunStarted(run="r", workspace="w", layout="l", plan="p", pid=1))
    journal.close()
    assert len(seen) == 1
    assert seen[0].endswith(b"\n")


def test_a_follower_gets_each_record_once(path: Path) -> None:
    follower = Follower(path)
    assert follower.news() == []
    journal = Journal(path, clock=lambda: 0.0)
    journal.write(Noted("one"))
    assert [r.event for r in follower.news()] == [Noted("one")]
    with path.open("ab") as stream:
        stream.write(b'{"half')
    assert follower.news() == []
    journal.close()


def test_runs_are_found_by_the_beginning_of_their_id(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no runs yet"):
        find_run(list_runs(tmp_path))
    for run in ("20260101-000000-aaaa", "20260102-000000-bbbb"):
        write(journal_path(tmp_path, run), "x")
    assert find_run(list_runs(tmp_path)) == "20260102-000000-bbbb"
    assert find_run(list_runs(tmp_path), "20260101") == "20260101-000000-aaaa"
    with pytest.raises(UsageError, match="2 runs start with"):
        find_run(list_runs(tmp_path), "2026")
    with pytest.raises(UsageError, match="no run matches"):
        find_run(list_runs(tmp_path), "../../etc")
    assert list_runs(tmp_path)[0] < new_run_id(4e9)


def test_the_journal_is_private(path: Path) -> None:
    write(path, "x")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_runs_of_the_same_second_are_in_the_order_they_began() -> None:
    ids = [new_run_id(1_794_770_000 + n / 400) for n in range(400)]
    assert ids == sorted(ids)
    assert all(re.fullmatch(r"\d{8}-\d{6}-[0-9a-f]{4}", each) for each in ids)


# The chain.


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def durable(path: Path, count: int) -> None:
    journal = Journal(path, clock=lambda: 1.0)
    for number in range(count):
        journal.write(Noted(f"{number}"))
    journal.write(RunEnded(Reason.COMPLETE))
    journal.close()


@pytest.mark.parametrize("how", ["changed", "removed", "added", "swapped"])
def test_a_changed_line_is_noticed(path: Path, how: str) -> None:
    durable(path, 4)
    lines = lines_of(path)
    match how:
        case "changed":
            lines[1] = lines[1].replace(b'"1"', b'"forged"')
        case "removed":
            del lines[1]
        case "added":
            lines.insert(2, b'{"seq":3,"t":1.0,"event":{"type":"Noted","text":"forged"},"v":1}\n')
        case "swapped":
            lines[1], lines[2] = lines[2], lines[1]
    path.write_bytes(b"".join(lines))
    with pytest.raises(BadData, match="does not continue the one before it"):
        list(read(path))


def test_a_cut_or_forged_end_is_noticed_by_recovery(path: Path) -> None:
    durable(path, 4)
    whole = lines_of(path)
    assert len(read_for_recovery(path)) == 5
    path.write_bytes(b"".join(whole[:3]))
    assert len(list(read(path))) == 3
    with pytest.raises(BadData, match="was cut or changed: it has 3 records, and had at least 5"):
        read_for_recovery(path)
    path.write_bytes(b"".join([*whole[:-1], whole[-1].replace(b"complete", b"stopped!")]))
    with pytest.raises(BadData):
        read_for_recovery(path)
    for empty in (b"", b"\0" * 8192):
        path.write_bytes(empty)
        with pytest.raises(BadData, match="is empty"):
            read_for_recovery(path)


def test_a_journal_without_a_chain_is_readable_and_continues_with_one(path: Path) -> None:
    path.parent.mkdir()
    path.write_bytes(b'{"seq":1,"t":1,"event":{"type":"Noted","text":"old"},"v":1}\n')
    journal = Journal(path, clock=lambda: 2.0, seq=1)
    journal.write(RunEnded(Reason.COMPLETE))
    journal.close()
    assert [record.seq for record in read_for_recovery(path)] == [1, 2]
    lines = lines_of(path)
    path.write_bytes(lines[0].replace(b"old", b"new") + lines[1])
    with pytest.raises(BadData, match=r"events.jsonl:2: the journal was changed"):
        list(read(path))


@pytest.mark.parametrize(
    "line",
    [
        b'{"seq":2,"t":1,"event":{"type":"Noted","text":"x"},"v":99}\n',
        b'{"seq":2,"t":1,"event":{"type":"OfTomorrow","text":"x"},"v":2}\n',
        b'{"seq":2,"t":1,"event":{"type":"OfTomorrow","text":"x"},"v":1}\n',
    ],
)
def test_a_journal_of_a_newer_version_is_named_as_such(path: Path, line: bytes) -> None:
    started = RunStarted(run="r", workspace="/w", layout="feature", plan="/w/p", pid=1, version="99.0")
    path.parent.mkdir()
    path.write_bytes(msgspec.json.encode(Record(1, 1.0, started)) + b"\n" + line)
    with pytest.raises(Newer, match="written with"):
        list(read(path))


@pytest.mark.parametrize("kind", ["fifo", "folder", "device"])
def test_what_is_no_file_is_refused_at_once(path: Path, kind: str) -> None:
    path.parent.mkdir()
    match kind:
        case "fifo":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "device":
            if os.geteuid() != 0:
                pytest.skip("only root can make one")
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))  # never the system's own
    with pytest.raises(BadData, match="not a regular file"):
        list(read(path))
    with pytest.raises(JournalFailed, match="not a regular file"):
        Journal(path, clock=lambda: 1.0)
    assert Follower(path).news() == []


def test_evidence_of_an_older_version_has_the_rules_among_its_own_fields(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(
        b'{"seq":1,"t":1,"event":{"type":"Judged","iteration":1,"evidence":{"mode":"implement","story":null,'
        b'"ended":{"how":"exited","code":0},"outcome":{},"minimum":"witnessed","may_review":true,"tamper":"reject",'
        b'"reviewers":["quality"],"review":true,"review_cap":2,"on_cap":"human","claim_is_implied":true},'
        b'"verdict":{"kind":"accepted"}},"v":1}\n'
    )
    (record,) = read(path)
    assert isinstance(record.event, Judged)
    assert record.event.evidence.rules == VerdictRules(
        minimum=Grade.WITNESSED,
        may_review=True,
        tamper=Tamper.REJECT,
        reviewers=("quality",),
        review=True,
        review_cap=2,
        on_cap=OnCap.HUMAN,
        claim_is_implied=True,
    )
    written = msgspec.json.encode(record)
    path.write_bytes(written + b"\n")
    assert list(read(path)) == [record]
