from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ralph.core.events import Record, WaitEnded, WaitStarted
from ralph.core.moves import Reason
from ralph.core.plan import State
from ralph.core.verdict import Kind
from ralph.journal.sinks.sink import Sinks
from ralph.journal.sinks.state_files import Aggregate, RunStateFile
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from support.told_runs import RUN, START, ToldRun, seen


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


@pytest.fixture
def run(root: Path, tmp_path: Path) -> ToldRun:
    files = WorkspaceFiles(root)
    sinks = Sinks(files, [RunStateFile(files, root / "run_state.json"), Aggregate(files, root / "aggregate.json")])
    return ToldRun(tmp_path / "state" / "events.jsonl", sinks)


def state(root: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((root / "run_state.json").read_bytes())
    return told


def test_the_state_follows_the_run(run: ToldRun, root: Path) -> None:
    run.start(seen("t1"), seen("t2", State.DONE))
    first = state(root)
    assert (first["run_id"], first["status"], first["loop_count"], first["current_task"]) == (RUN, "running", 0, None)
    run.begin(1, "t1")
    working = state(root)
    assert working["current_task"] == {"id": "t1", "title": "title of t1", "mode": "implement"}
    assert (working["status"], working["loop_count"]) == ("running", 1)
    run.judge(1, Kind.REJECTED)
    run.end(1, Kind.REJECTED, story="t1")
    after = state(root)
    assert (after["current_task"], after["loop_count"], after["last_step"]) == (None, 1, "agent")
    assert after["errors"] == [
        {"at": after["updated_at"], "loop": 1, "task": "t1", "error": "check 'tests' failed with exit code 1"}
    ]
    run.say(WaitStarted(START, "limit"))
    assert state(root)["status"] == "waiting"
    run.say(WaitEnded())
    run.iterate(2, story="t1")
    run.stop()
    assert state(root) == {
        "run_id": RUN,
        "pid": 4242,
        "status": "completed",
        "reason": "complete",
        "detail": None,
        "loop_count": 2,
        "current_task": None,
        "last_step": "agent",
        "tasks": {"total": 2, "done": 2, "failed": 0, "blocked": 0},
        "started_at": "2023-11-14T22:13:20Z",
        "updated_at": "2023-11-14T22:13:44Z",
        "errors": after["errors"],
    }


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        (Reason.COMPLETE, "completed"),
        (Reason.ITERATION_CAP, "stopped"),
        (Reason.INTERRUPTED, "interrupted"),
        (Reason.TERMINATED, "interrupted"),
    ],
)
def test_a_run_ends_in_one_of_three_ways(reason: Reason, status: str, run: ToldRun, root: Path) -> None:
    run.start(seen())
    run.stop(reason, "why\nindeed")
    told = state(root)
    assert (told["status"], told["reason"], told["detail"]) == (status, reason.value, "why indeed")


def test_the_state_is_not_written_while_an_iteration_is_open(run: ToldRun, root: Path) -> None:
    """The tree has been recorded by then; a file that changes after it would be part of the story."""
    changed: list[str] = []
    last = b""

    def look(record: Record) -> None:
        nonlocal last
        now = (root / "run_state.json").read_bytes()
        if now != last:
            changed.append(type(record.event).__name__)
        last = now

    run.journal.listen(look)
    run.start(seen())
    run.iterate(1)
    run.stop()
    assert changed == ["RunStarted", "Decided", "IterationEnded", "RunEnded"]


def test_only_the_last_errors_are_kept(run: ToldRun, root: Path) -> None:
    run.start(seen())
    for number in range(1, 24):
        run.iterate(number, Kind.CRASHED)
    assert [error["loop"] for error in state(root)["errors"]] == list(range(4, 24))


def test_a_limit_is_no_error(run: ToldRun, root: Path) -> None:
    run.start(seen())
    run.iterate(1, Kind.LIMIT)
    assert state(root)["errors"] == []


def test_the_aggregate_adds_up_when_the_run_has_ended(run: ToldRun, root: Path) -> None:
    run.start(seen("t1"), seen("t2"), seen("t3"))
    run.iterate(1, story="t1")
    run.iterate(2, Kind.REJECTED, story="t2", story_state=State.FAILED)
    assert not (root / "aggregate.json").exists()
    run.stop(Reason.FAILED_STORIES, "t2 is failed")
    assert json.loads((root / "aggregate.json").read_bytes()) == {
        "version": "1.2.3",
        "run_id": RUN,
        "agent": "claude",
        "model": "sonnet-4",
        "tokens": {"input": 200, "output": 40, "cache_read": 6, "cache_write": 8, "total": 254},
        "cost_usd": 0.5,
        "started_at": "2023-11-14T22:13:20Z",
        "ended_at": "2023-11-14T22:13:43Z",
        "elapsed_seconds": 23.0,
        "agent_seconds": 122.0,
        "calls": 2,
        "loops": 2,
        "tasks": {"total": 3, "done": 1, "failed": 1, "blocked": 0},
        "reason": "failed-stories",
        "detail": "t2 is failed",
    }


def test_a_run_without_an_agent_has_an_aggregate_without_a_cost(run: ToldRun, root: Path) -> None:
    run.start(seen("t1", State.DONE))
    run.stop()
    told = json.loads((root / "aggregate.json").read_bytes())
    assert (told["cost_usd"], told["calls"], told["model"], told["tasks"]["done"]) == (None, 0, "sonnet", 1)


def test_a_hostile_title_is_one_clean_line(run: ToldRun, root: Path) -> None:
    run.start(seen())
    run.begin(1, "t\x1b[31m1\n2")
    assert state(root)["current_task"]["id"] == "t1 2"
