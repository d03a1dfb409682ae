from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.host.process.raw_log import RawLog


def kept(log: RawLog) -> bytes:
    return b"".join(part.read_bytes() for part in log.parts())


def test_output_within_the_cap_is_one_file_and_whole(tmp_path: Path) -> None:
    with RawLog(tmp_path / "agent.log", cap=1000) as log:
        log.write(b"one\n")
        log.write(b"\xff\0two")
    assert kept(log) == b"one\n\xff\0two"
    assert [p.name for p in log.parts()] == ["agent.log"]
    assert log.lost == ""


@given(sizes=st.lists(st.integers(0, 700), max_size=30))
def test_the_beginning_and_the_end_are_kept_within_the_cap(
    sizes: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = os.urandom(sum(sizes))
    with RawLog(tmp_path_factory.mktemp("raw") / "x.log", cap=1000) as log:
        at = 0
        for size in sizes:
            log.write(data[at : at + size])
            at += size
    assert log.total == len(data)
    head, *tails = [part.read_bytes() for part in log.parts()]
    assert head == data[:500]
    tail = b"".join(tails)
    assert data[500:].endswith(tail)
    assert len(head) + len(tail) <= 1000
    assert len(tail) >= min(250, len(data) - len(head))


def test_a_new_log_does_not_continue_the_tail_of_an_older_one_of_that_name(tmp_path: Path) -> None:
    with RawLog(tmp_path / "x.log", cap=100) as log:
        log.write(b"o" * 1000)
    with RawLog(tmp_path / "x.log", cap=100) as log:
        log.write(b"new")
    assert kept(log) == b"new"


def test_raw_output_is_for_its_owner_only(tmp_path: Path) -> None:
    with RawLog(tmp_path / "x.log", cap=10) as log:
        log.write(b"s" * 100)
    assert {stat.S_IMODE(part.stat().st_mode) for part in log.parts()} == {0o600}


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
def test_a_full_disk_is_noted_once_and_disturbs_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.log").symlink_to("/dev/full")
    with RawLog(tmp_path / "x.log") as log:
        log.write(b"first\n")
        note = log.lost
        log.write(b"second")
    assert "No space left on device" in note
    assert "x.log" in note
    assert log.lost == note
    assert log.total == 12


def test_trouble_with_rotating_is_noted_and_the_beginning_stays(tmp_path: Path) -> None:
    with RawLog(tmp_path / "x.log", cap=100) as log:
        (tmp_path / "x.tail.1.log").mkdir()
        log.write(b"a" * 50)
        assert log.lost == ""
        log.write(b"b" * 26)
        log.write(b"c" * 100)
    assert "directory" in log.lost.lower()
    assert (tmp_path / "x.log").read_bytes() == b"a" * 50


def test_a_folder_that_is_missing_or_removed_is_noted(tmp_path: Path) -> None:
    with RawLog(tmp_path / "none" / "x.log") as log:
        log.write(b"text")
    assert "No such file" in log.lost
