"""`ralph run --parallel N`: what a dry run shows, and what is refused before anything starts."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from ralph.workspace.settings_check import machine_room
from support.cli import ralph, ralph_here

STORIES = [
    {"id": "US-001", "title": "Log in", "touches": ["src/login.py"], "priority": 1},
    {"id": "US-002", "title": "Fix src/login.py", "priority": 2},
    {"id": "US-003", "title": "Export", "priority": 3},
]


@pytest.fixture
def project(tmp_path: Path, git_identity: None) -> Path:
    folder = tmp_path / "project" / ".ralph" / "shop"
    folder.mkdir(parents=True)
    usual = {"description": "", "acceptanceCriteria": ["It is there"], "passes": False}
    plan = {"feature": "shop", "branchName": "b", "description": "", "createdAt": "2026-01-15T10:00:00Z"}
    (folder / "prd.json").write_text(json.dumps(plan | {"userStories": [usual | story for story in STORIES]}))
    root = tmp_path / "project"
    (root / "script.yaml").write_text("stories: {US-001: [{implement: [say: Nothing yet.]}]}\n")
    (root / ".ralph" / "config.yaml").write_text(
        "agent: {name: scripted, script: script.yaml}\nproof: {minimum: unproven}\n"
    )
    git(root, "init", "-q", "-b", "main")
    return root


def git(root: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=root, check=True)


def commit(root: Path) -> None:
    git(root, "add", "-A")
    git(root, "commit", "-qm", "start")


def test_a_dry_run_shows_what_would_start_together(project: Path) -> None:
    done = ralph_here("run", "--dry-run", "--parallel", "4", cwd=project)
    assert done.code == 0, done.err
    first, held = done.out.splitlines()[:2]
    assert first == "workers    4; start together: US-001, US-003"
    assert held == "held       US-002: US-001 probably changes src/login.py too"
    assert "story      US-001 Log in" in done.out
    assert "workers" not in ralph_here("run", "--dry-run", "--parallel", "4", "--once", cwd=project).out


@pytest.mark.parametrize(("number", "why"), [("0", "at least 1"), ("x", "at least 1"), ("300", "at most 256")])
def test_a_wrong_number_is_refused(project: Path, number: str, why: str) -> None:
    done = ralph_here("run", "--dry-run", "--parallel", number, cwd=project)
    assert done.code == 64
    assert "argument --parallel: expected a whole number" in done.err
    assert why in done.err


def test_workers_need_clones(project: Path) -> None:
    done = ralph_here("run", "--dry-run", "--parallel", "2", "--workspace", "in-place", cwd=project)
    assert done.code == 64
    assert "2 workers need a clone each, but workspace is in-place" in done.err


def test_more_workers_than_the_machine_has_room_for_are_a_warning(project: Path) -> None:
    room = machine_room().workers
    if room < 255:
        many = ralph_here("run", "--dry-run", "--parallel", str(room + 1), cwd=project)
        assert many.code == 0
        assert f"{room + 1} workers are too many for " in many.err
        assert f"use at most {room}" in many.err
    assert "too many" not in ralph_here("run", "--dry-run", "--parallel", str(min(room, 256)), cwd=project).err


def test_a_worktree_is_refused(project: Path) -> None:
    commit(project)
    done = ralph("run", "--trust", "--parallel", "2", "--worktree", cwd=project)
    assert done.code == 64
    assert "--worktree and 2 workers exclude each other" in done.err


def test_a_repository_that_cannot_be_cloned_is_refused(project: Path) -> None:
    empty = ralph("run", "--trust", "--parallel", "2", cwd=project)
    assert empty.code == 78
    assert "workers need a clone each, and none can be made: there is no commit yet" in empty.err
    (project / ".gitmodules").write_text("")
    commit(project)
    done = ralph("run", "--trust", "--parallel", "2", cwd=project)
    assert done.code == 78
    assert "none can be made: the repository has submodules" in done.err
    assert "use --parallel 1" in done.err


def test_one_iteration_uses_no_workers(project: Path) -> None:
    commit(project)
    done = ralph("run", "--trust", "--parallel", "2", "--once", "--json", cwd=project)
    assert "--once runs one iteration: it uses no workers" in done.err
    events = [json.loads(line)["event"]["type"] for line in done.out.splitlines()]
    assert "WorkerStarted" not in events
    assert events.count("IterationEnded") == 1
