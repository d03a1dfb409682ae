"""`ralph explain circuit`: how near the breakers of a run are to tripping, and why one has."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph.cli.main import main
from ralph.core.events import AnyEvent, Record, RunEnded, StepEnded, StorySetAside
from ralph.core.moves import Reason
from ralph.core.rules import Limits, OnStuck
from ralph.core.verdict import Kind
from ralph.engine.steps import Position
from ralph.journal.records import Journal
from ralph.report.explain import circuits
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path
from support.decisions import NOW, ended, started

STOP = Limits(on_stuck=OnStuck.STOP)
NEXT = Limits(on_stuck=OnStuck.NEXT)
FAILED = ended(Kind.REJECTED, fingerprint="e", headline="check 'unit' failed")


def shown(tmp_path: Path, capsys: pytest.CaptureFixture[str], limits: Limits, *events: AnyEvent) -> str:
    (tmp_path / ".ralph").mkdir()
    state = {"RALPH_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    journal = Journal(journal_path(workspace_state(tmp_path, state), "20260101-000000-abcd"), lambda: NOW)
    for event in (started(run="20260101-000000-abcd", limits=limits), *events):
        journal.write(event)
    journal.close()
    assert main(["circuit", "-d", str(tmp_path)]) == 0
    return capsys.readouterr().out


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RALPH_STATE_HOME", str(tmp_path / "state"))


def test_a_run_at_work_shows_its_counters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(tmp_path, capsys, STOP, FAILED, FAILED)
    assert "not ended" in told
    assert "the run      closed, no progress 2/3, same error 2/5 — last: check 'unit' failed" in told
    assert "S0           closed, no progress 2/3, same error 2/5" in told
    assert "a story that trips stops the run" in told


def test_a_run_that_has_tripped_says_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ending = RunEnded(Reason.NO_PROGRESS, "3 iterations in a row without progress")
    told = shown(tmp_path, capsys, STOP, *[FAILED] * 3, ending)
    assert "ended: no-progress" in told
    assert "the run      open, no progress 3/3, same error 3/5 — 3 iterations in a row without progress" in told


def test_where_stories_are_set_aside_the_run_counts_those(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = shown(tmp_path, capsys, NEXT, *[FAILED] * 3, StorySetAside("S0", "", "stuck on it"))
    assert "the run      closed, stories set aside in a row 1/3, same error 3/5" in told
    assert "S0           open — stuck on it" in told


def test_a_step_whose_circuit_is_open_is_shown_until_it_has_run_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skipped = StepEnded(iteration=1, step="deploy", kind="command", ok=False, skipped="its circuit breaker is open")
    ran = StepEnded(iteration=2, step="lint", kind="command", ok=True)
    told = shown(
        tmp_path, capsys, NEXT, skipped, StepEnded(iteration=1, step="lint", kind="c", ok=False, skipped="x"), ran
    )
    assert "step deploy  open — its circuit breaker is open" in told
    assert "lint" not in told


def test_another_reason_to_end_leaves_the_circuit_closed() -> None:
    events: list[AnyEvent] = [started(limits=STOP), FAILED, RunEnded(Reason.ITERATION_CAP, "enough")]
    found = circuits(Record(n, NOW, event) for n, event in enumerate(events))
    assert found.whole.position is Position.CLOSED
    assert found.ended == "iteration-cap"
