from __future__ import annotations

import time
from pathlib import Path

import pytest

from ralph.host.clocks import WriteTimes


def test_the_clock_of_a_local_disk_agrees(tmp_path: Path) -> None:
    assert WriteTimes().are_comparable(tmp_path)


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_file_server_whose_clock_differs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + seconds)
    assert not WriteTimes().are_comparable(tmp_path)


def test_a_clock_that_was_set_back_since_the_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 60)
    times = WriteTimes()
    monkeypatch.undo()
    assert not times.are_comparable(tmp_path)
    times.start()
    assert times.are_comparable(tmp_path)


def test_a_full_disk_says_nothing_about_the_clock(tmp_path: Path) -> None:
    assert WriteTimes().are_comparable(tmp_path / "missing")
