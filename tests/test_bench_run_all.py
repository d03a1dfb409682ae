"""bench/run_all.py fails on a regression, and its exact figures are as recorded."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench import run_all  # noqa: E402


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A table of two figures, of which the test measures what it likes."""
    path = tmp_path / "recorded.json"
    path.write_text(json.dumps({"quick": {"start": 10.0, "processes": 8}}))
    return path


def _measuring(monkeypatch: pytest.MonkeyPatch, **values: list[float]) -> None:
    figures = [run_all.Figure(name, "a floor", lambda *_, left=left: left.pop(0)) for name, left in values.items()]
    monkeypatch.setattr(run_all, "FIGURES", tuple(figures))


def test_a_figure_that_stays_above_the_recorded_one_fails(
    recorded: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _measuring(monkeypatch, start=[12.6, 13.0, 12.7], processes=[8])
    assert run_all.main(["--quick", "--recorded", str(recorded)]) == 1
    out = capsys.readouterr().out
    assert "by more than 25%: start\n" in out
    assert [line.endswith("WORSE") for line in out.splitlines() if "a floor" in line] == [True, False]


def test_one_that_is_slow_once_is_measured_again(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _measuring(monkeypatch, start=[20.0, 12.4], processes=[8])
    assert run_all.main(["--quick", "--recorded", str(recorded)]) == 0


def test_processes_are_compared_too(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _measuring(monkeypatch, start=[10.0], processes=[11, 11, 11])
    assert run_all.main(["--quick", "--recorded", str(recorded)]) == 1


def test_what_is_recorded_is_what_later_runs_are_compared_with(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _measuring(monkeypatch, start=[20.0], processes=[8])
    assert run_all.main(["--quick", "--record", "--recorded", str(recorded)]) == 0
    assert json.loads(recorded.read_text()) == {"quick": {"start": 20.0, "processes": 8}}


def test_every_figure_is_recorded_for_both_sizes() -> None:
    names = {figure.name for figure in run_all.FIGURES}
    assert {size: set(table) for size, table in json.loads(run_all.RECORDED.read_text()).items()} == {
        "quick": names,
        "full": names,
    }


def test_an_iteration_starts_as_many_git_processes_as_recorded(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_all.main(["--quick", "--only", "processes, iteration"]) == 0, capsys.readouterr().out
