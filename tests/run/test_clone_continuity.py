"""A clone outlives a run: work of a killed one is rescued, its proofs are found, files that show it come back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.cli import ralph
from support.clients import Project
from support.processes import wait_for

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.defaults]
CLAIM = 'echo \'{"claim": "done"}\' > "$RALPH_REQUEST_FILE"'


AS_AGENT = "git -c user.name=agent -c user.email=agent@example.com"
COMMITS = f'test -n "$AGAIN" || {{ echo half > half.txt; git add half.txt; {AS_AGENT} commit -qm half; }}'
SLOW = [{"name": "slow", "command": "sleep 0.2; test ! -f half.txt || sleep 30"}]
LATER = 2.5
"""Seconds after which a move of a branch cannot be taken for one of the agent's last git command."""


def project_of(folder: Path, script: str, **config: Any) -> Project:
    agent = {"name": "command", "command": ["/bin/sh", "-ec", script], "env": ["AGAIN"]}
    return Project(folder, agent=agent, sandbox={"network": "none"}, **config)


def git(project: Project, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=project.root, env=project.env, capture_output=True, check=True)
    return done.stdout.decode()


def tip(project: Project) -> str:
    """Of the clone's branch."""
    return git(project, "for-each-ref", "--format=%(objectname)", "refs/heads/ralph/work/work").strip()


def kill_when_there(project: Project, name: str) -> None:
    """Start a run, and kill it when the agent has written this file."""
    kill_when(project, lambda: bool(list(project.state.glob(f"*/clones/*/*/{name}"))))


def kill_when(project: Project, is_time: Callable[[], bool]) -> None:
    command = [sys.executable, "-m", "ralph", "run", "--plain"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=project.root, env=project.env, stdout=quiet, stderr=quiet)
    wait_for(is_time, 60)
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_the_work_of_a_killed_run_is_rescued_from_the_clone(tmp_path: Path) -> None:
    project = project_of(
        tmp_path, f'test -n "$AGAIN" || {{ echo half > half.txt; sleep 60; }}; echo x > s1.txt; {CLAIM}'
    )
    kill_when_there(project, "half.txt")
    done = ralph("run", "--plain", "-n", "1", cwd=project.root, env=project.environment(AGAIN="1"))
    assert "undid iteration 1 (S-1), which was interrupted; the work is in refs/ralph/rescue/" in done.out, done.err
    [rescued] = git(project, "for-each-ref", "--format=%(refname)", "refs/ralph/rescue").split()
    assert git(project, "show", f"{rescued}:half.txt") == "half\n"
    assert "advanced by" in done.err
    assert (project.root / "s1.txt").exists()
    assert not (project.root / "half.txt").exists()


@pytest.fixture
def committed(tmp_path: Path) -> Project:
    """Killed while the loop checked what the agent had committed itself."""
    project = project_of(tmp_path, f"{COMMITS}; echo x > s1.txt; {CLAIM}", checks=SLOW)
    kill_when(project, lambda: tip(project) not in ("", git(project, "rev-parse", "main").strip()))
    time.sleep(LATER)
    return project


def test_a_commit_of_the_agent_is_undone_however_late_the_next_run_comes(committed: Project) -> None:
    done = ralph("run", "--plain", "-n", "1", cwd=committed.root, env=committed.environment(AGAIN="1"))
    assert "undid iteration 1 (S-1), which was interrupted; the work is in refs/ralph/rescue/" in done.out, done.err
    assert "changed since that iteration started" not in done.out
    assert (committed.root / "s1.txt").exists()
    assert "half.txt" not in git(committed, "log", "--format=", "--name-only", "main")


def test_commits_that_may_be_the_users_do_not_reach_the_checkout(committed: Project) -> None:
    before = git(committed, "rev-parse", "main")
    [clone] = committed.state.glob("*/clones/*/project")
    subprocess.run(["git", "commit", "--allow-empty", "-qm", "mine"], cwd=clone, env=committed.env, check=True)
    mine = tip(committed)
    done = ralph("run", "--plain", "-n", "1", cwd=committed.root, env=committed.environment(AGAIN="1"))
    assert "there are commits on top of the agent's that may be yours" in done.err
    assert "your checkout: it was left alone, because the clone may have commits that were not accepted" in done.err
    assert "report this as a bug" not in done.err
    assert git(committed, "rev-parse", "main") == before
    assert tip(committed) == mine


def test_a_story_that_was_proven_in_a_clone_is_proven_in_the_checkout(tmp_path: Path) -> None:
    project = project_of(tmp_path, f"echo x > s1.txt; {CLAIM}")
    done = ralph("run", "--plain", cwd=project.root, env=project.env)
    assert done.code == 0, done.out + done.err
    proof = ralph("proof", "S-1", cwd=project.root, env=project.env)
    assert (proof.code, "S-1 Story 1" in proof.out) == (0, True), proof.out
    named = ralph("runs", "--feature", "work", cwd=project.root, env=project.env)
    assert named.code == 0, named.err
    assert len(list(project.state.glob("*/runs/*/events.jsonl"))) == 1
    assert "work" in named.out, "a run in a clone is one of this plan"


@pytest.mark.parametrize("is_ignored", [False, True])
def test_logs_of_runs_come_back_also_where_git_ignores_them(tmp_path: Path, is_ignored: bool) -> None:
    project = project_of(tmp_path, f"echo $RALPH_STORY > $(date +%s%N).txt; {CLAIM}")
    (project.root / ".ralph/work/prd.json").unlink()
    (project.root / ".ralph/PRD-1").mkdir()
    stories = "".join(
        f"- [ ] US-00{n}: Story {n}\n  Verify: `ls | grep -c '[0-9].txt' | grep -q {n}`\n" for n in (1, 2)
    )
    (project.root / ".ralph/PRD-1/plan.md").write_text(f"# Shop\n\n{stories}")
    if is_ignored:
        (project.root / ".gitignore").write_text(".ralph/*.log\n.ralph/PRD-1/runs/\n")
    project.commit()
    for number in (1, 2):
        done = ralph("run", "--plain", "-n", "1", cwd=project.root, env=project.env)
        assert "everything inside its sandbox" in done.out, done.out + done.err
        log = (project.root / ".ralph/activity.log").read_text()
        assert all(f"US-00{n}" in log for n in range(1, number + 1)), log
        assert len(list((project.root / ".ralph/PRD-1/runs").glob("run-*.log"))) == number
    assert not os.path.lexists(project.root / ".ralph/current-story"), "markers of a run that is over"
