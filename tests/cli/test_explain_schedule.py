"""`ralph explain schedule`: which stories would start together, and what the last run with several workers decided."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ralph.core.events import AnyEvent, Held, Running, Scheduled
from ralph.core.moves import Reason, Stop, Work
from ralph.core.plan import Mode
from ralph.core.verdict import Kind
from ralph.journal.records import Journal
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path
from support.cli import ralph_here
from support.decisions import NOW, ended, started

STORIES = [
    {"id": "US-001", "title": "Log in", "touches": ["src/login.py"], "priority": 1},
    {"id": "US-002", "title": "Fix src/login.py", "priority": 2},
    {"id": "US-003", "title": "Export", "description": "In `src/export/`.", "priority": 3},
    {"id": "US-004", "title": "Faster", "priority": 4},
    {"id": "US-005", "title": "Later", "dependsOn": ["US-001"], "priority": 5},
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / ".ralph" / "shop"
    folder.mkdir(parents=True)
    usual = {"description": "", "acceptanceCriteria": ["It is there"], "passes": False}
    plan = {"feature": "shop", "branchName": "b", "description": "", "createdAt": "2026-01-15T10:00:00Z"}
    document = plan | {"userStories": [usual | story for story in STORIES]}
    (folder / "prd.json").write_text(json.dumps(document))
    return tmp_path / "project"


def test_what_would_start_together_and_what_is_held(root: Path) -> None:
    done = ralph_here("explain", "schedule", cwd=root)
    assert done.code == 0, done.err
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines == [
        "4 workers: 3 stories would start together",
        "start US-001 Log in",
        "changes src/login.py",
        "start US-003 Export",
        "changes src/export",
        "start US-004 Faster",
        "changes (unknown: beside any other story)",
        "held US-002 US-001 probably changes src/login.py too",
        "later US-005 after US-001",
    ]


def test_ready_stories_without_a_worker_are_listed(root: Path) -> None:
    done = ralph_here("explain", "schedule", "--parallel", "1", cwd=root)
    lines = [" ".join(line.split()) for line in done.out.splitlines()]
    assert lines[1:] == [
        "start US-001 Log in",
        "changes src/login.py",
        "next US-002 when a worker is free",
        "next US-003 when a worker is free",
        "next US-004 when a worker is free",
        "later US-005 after US-001",
    ]
    found = ralph_here("explain", "schedule", "--json", "--parallel", "2", cwd=root).json
    assert found["ready"] == ["US-004"]
    assert [held["story"] for held in found["scheduled"]["held"]] == ["US-002"]


def test_the_workers_come_from_the_option_or_the_setting(root: Path) -> None:
    assert ralph_here("explain", "schedule", "--parallel", "1", cwd=root).out.startswith(
        "1 worker: 1 story would start\n"
    )
    (root / ".ralph" / "config.yaml").write_text("parallel: 2\n")
    found = ralph_here("explain", "schedule", "--json", cwd=root).json
    assert found["workers"] == 2
    assert [work["story"] for work in found["scheduled"]["start"]] == ["US-001", "US-003"]
    assert found["areas"]["US-002"] == ["src/login.py"]
    assert found["waiting"] == {"US-005": ["US-001"]}
    wrong = ralph_here("explain", "schedule", "--parallel", "0", cwd=root)
    assert (wrong.code, "--parallel" in wrong.err) == (64, True)


def test_files_of_earlier_attempts_count_and_the_last_decision_is_shown(root: Path) -> None:
    running = (Running(1, "US-001", Mode.IMPLEMENT, is_queued=True), Running(2, "US-003", Mode.FIX))
    last = Scheduled(
        start=(Work("US-004", Mode.IMPLEMENT),),
        held=(Held("US-002", "US-001 probably changes src/login.py too"),),
        move=Stop(Reason.TIME_CAP, "the limit is 1 h"),
        running=running,
        free=2,
    )
    events: list[AnyEvent] = [
        Scheduled(start=(Work("US-001", Mode.IMPLEMENT),)),
        ended(Kind.REJECTED, "US-004", files=("src/login.py",)),
        last,
    ]
    name = "20260101-000000-abcd"
    journal = Journal(journal_path(workspace_state(root, os.environ), name), lambda: NOW)
    for event in (started(run=name), *events):
        journal.write(event)
    journal.close()
    found = ralph_here("explain", "schedule", cwd=root)
    assert "held   US-004  US-001 probably changes src/login.py too" in found.out
    assert f"Last decision of run {name}, at " in found.out
    after = found.out.partition("Last decision")[2].splitlines()[1:]
    assert after == [
        "  running  US-001 (iteration 1, in the merge queue)",
        "  running  US-003 (iteration 2, fix)",
        "  started  US-004 (implement)",
        "  held     US-002: US-001 probably changes src/login.py too",
        "  then     stop (time-cap): the limit is 1 h",
    ]
    assert ralph_here("explain", "schedule", "--json", cwd=root).json["last"]["run"] == name
