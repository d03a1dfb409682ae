"""Waits: one record at each end, and neither a sleeping laptop nor a clock that is set back makes them longer."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ralph.core.events import WaitEnded, WaitStarted
from ralph.engine.wait import wait
from ralph.host.process.signals import StopSignal
from ralph.journal.records import Journal, read

NOW = 1_800_000_000.0


def waited(tmp_path: Path, clock: Callable[[], float], seconds: float, **more: Callable[[], bool]) -> float:
    """How long it really took."""
    journal = Journal(tmp_path / "events.jsonl", clock)
    begun = time.monotonic()
    with StopSignal() as stop:
        assert not wait(journal, stop, clock, NOW + seconds, "the usage limit", **more)
    journal.close()
    assert [record.event for record in read(journal.path)] == [
        WaitStarted(NOW + seconds, "the usage limit"),
        WaitEnded(),
    ]
    return time.monotonic() - begun


def stepping(after: float) -> Callable[[], float]:
    """A clock that is right when it is first looked at twice, and then is off by so many seconds."""
    begun, looks = time.monotonic(), [0]

    def clock() -> float:
        looks[0] += 1
        return NOW + time.monotonic() - begun + (after if looks[0] > 2 else 0)

    return clock


@pytest.mark.parametrize("off", [8 * 3600, 400 * 86400])
def test_a_laptop_that_slept_over_the_end_goes_on_at_once(tmp_path: Path, off: float) -> None:
    assert waited(tmp_path, stepping(off), 3600) < 5


@pytest.mark.parametrize("off", [-60, -400 * 86400])
def test_a_clock_that_is_set_back_keeps_nobody_longer_than_was_meant(tmp_path: Path, off: float) -> None:
    assert 0.2 <= waited(tmp_path, stepping(off), 0.2) < 10


def test_somebody_who_wants_something_else_ends_it(tmp_path: Path) -> None:
    assert waited(tmp_path, stepping(0), 3600, is_enough=lambda: True) < 5


def test_a_request_to_stop_ends_it(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "events.jsonl", time.time)
    with StopSignal() as stop:
        stop.request()
        assert wait(journal, stop, time.time, time.time() + 3600, "the usage limit")
    journal.close()
