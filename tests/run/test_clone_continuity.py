"""A clone outlives a run: work of a killed one is rescued, its proofs are found, files that show it come back."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import ralph
from support.clients import Project
from support.processes import wait_for

pytestmark = [pytest.mark.needs("bwrap"), pytest.mark.defaults]
CLAIM = 'echo \'{"claim": "done"}\' > "$RALPH_REQUEST_FILE"'


def project_of(folder: Path, script: str) -> Project:
    agent = {"name": "command", "command": ["/bin/sh", "-ec", script], "env": ["AGAIN"]}
    return Project(folder, agent=agent, sandbox={"network": "none"})


def git(project: Project, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=project.root, env=project.env, capture_output=True, check=True)
    return done.stdout.decode()


def kill_when_there(project: Project, name: str) -> None:
    """Start a run, and kill it when the agent has written this file."""
    command = [sys.executable, "-m", "ralph", "run", "--plain"]
    quiet = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=project.root, env=project.env, stdout=quiet, stderr=quiet)
    wait_for(lambda: list(project.state.glob(f"*/clones/*/*/{name}")), 30)
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
