"""Orders in their folder: in order, whole, for one run; and the thread that hears them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ralph.core.control import Order, Verb, Wish
from ralph.core.events import Asked
from ralph.host.process.signals import StopSignal
from ralph.state import inbox
from ralph.workspace.control import Control
from support.processes import wait_for

RUN = "20260115-093000-ab12"


def order(folder: Path, verb: Verb, run: str = RUN) -> Path:
    return inbox.put(folder / "control", Order(verb=verb, run=run, at=time.time()))


@pytest.fixture
def told() -> list[Asked]:
    return []


@pytest.fixture
def control(tmp_path: Path, told: list[Asked]) -> Control:
    return Control(tmp_path, RUN, StopSignal(), told.append)


def test_orders_are_taken_in_the_order_they_were_given(tmp_path: Path, control: Control, told: list[Asked]) -> None:
    for verb in (Verb.PAUSE, Verb.RESUME, Verb.PAUSE, Verb.STOP):
        order(tmp_path, verb)
    assert control() == Wish(pause=True, stop=True)
    assert [asked.verb for asked in told] == ["pause", "resume", "pause", "stop"]
    assert inbox.names(tmp_path / "control") == []
    assert control() == Wish(pause=True, stop=True)
    assert len(told) == 4


def test_an_order_for_another_run_is_thrown_away(tmp_path: Path, control: Control, told: list[Asked]) -> None:
    order(tmp_path, Verb.STOP_NOW, "20260101-000000-0000")
    assert control() == Wish()
    assert (told, inbox.names(tmp_path / "control")) == ([], [])


def test_what_a_killed_writer_left_is_not_read(tmp_path: Path, control: Control, told: list[Asked]) -> None:
    whole = order(tmp_path, Verb.PAUSE)
    whole.rename(whole.with_name(f".{whole.name}.1234abcd.tmp"))
    assert control() == Wish()


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"verb": "fly", "run": "r", "at": 1}', b"\xff\x00"])
def test_a_damaged_order_is_kept_aside_and_the_next_one_taken(
    content: bytes, tmp_path: Path, control: Control, told: list[Asked]
) -> None:
    order(tmp_path, Verb.RESUME).write_bytes(content)
    order(tmp_path, Verb.PAUSE)
    assert control() == Wish(pause=True)
    (aside,) = (tmp_path / "control").iterdir()
    assert ".corrupt-" in aside.name
    assert control() == Wish(pause=True)


def test_the_thread_hears_while_nobody_asks(tmp_path: Path, told: list[Asked]) -> None:
    stop = StopSignal()
    with Control(tmp_path, RUN, stop, told.append):
        order(tmp_path, Verb.STOP_NOW)
        assert stop.wait(10)
    assert stop.exit_code == 130
    assert told == [Asked(Verb.STOP_NOW, "ralph stop --now")]
    stop.close()


def test_the_key_pauses_and_lets_go_on(control: Control, told: list[Asked]) -> None:
    stop = control._stop
    for expected in (True, False, True):
        stop.presses += 1
        assert control().pause is expected
    stop.presses += 2
    assert control().pause is True, "twice between two looks is as if nothing was"
    assert [asked.by for asked in told] == ["Ctrl-\\"] * 3


def test_a_disk_in_trouble_does_not_bring_the_thread_down_with_a_traceback(tmp_path: Path) -> None:
    tried: list[Asked] = []

    def fail(event: Asked) -> None:
        tried.append(event)
        raise OSError(28, "No space left on device")

    with Control(tmp_path, RUN, StopSignal(), fail) as control:
        order(tmp_path, Verb.PAUSE)
        wait_for(lambda: tried)
        wait_for(lambda: not control._thread.is_alive())
