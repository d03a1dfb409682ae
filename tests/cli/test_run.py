"""`ralph run` as it is called, with somebody at the terminal."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.proven import Proven
from support.workspaces import workspace

QUESTION = b"Run these commands? [y/N] "


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    workspace(root, "tasks.json")
    (root / ".ralph" / "config.yaml").write_text("checks: [{name: unit, command: touch ran}]\n")
    return root


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    ours, theirs = pty.openpty()
    yield ours, theirs
    os.close(ours)
    os.close(theirs)


def run_until_asked(work: Path, terminal: tuple[int, int]) -> tuple[subprocess.Popen[bytes], bytes]:
    ours, theirs = terminal
    process = subprocess.Popen(
        [sys.executable, "-m", "ralph", "run", "--once"], cwd=work, stdin=theirs, stdout=theirs, stderr=theirs
    )
    seen, end = b"", time.monotonic() + 60
    while QUESTION not in seen and time.monotonic() < end and process.poll() is None:
        if select.select([ours], [], [], 0.1)[0]:
            seen += os.read(ours, 10_000)
    return process, seen


def test_the_question_about_trust_stands_alone_on_the_terminal(work: Path, terminal: tuple[int, int]) -> None:
    process, seen = run_until_asked(work, terminal)
    assert seen.endswith(QUESTION)
    assert b"+ checks.unit: touch ran" in seen
    assert b"\x1b[2K" not in seen  # nothing draws over it
    os.write(terminal[0], b"n\n")
    assert process.wait(60) == 78
    assert not (work / "ran").exists()


@pytest.mark.parametrize(("sent", "codes"), [(signal.SIGINT, (130,)), (signal.SIGTERM, (143, -signal.SIGTERM))])
def test_a_signal_ends_the_question_about_trust(
    work: Path, terminal: tuple[int, int], sent: signal.Signals, codes: tuple[int, ...]
) -> None:
    process, seen = run_until_asked(work, terminal)
    assert seen.endswith(QUESTION)
    process.send_signal(sent)
    assert process.wait(60) in codes


def test_the_branch_of_a_plan_is_mentioned_only_when_it_matters(tmp_path: Path) -> None:
    made = Proven(tmp_path)
    plan = made.read(".ralph/shop/prd.json")

    def notes(branch: str) -> str:
        made.write(".ralph/shop/prd.json", plan.replace('"branchName": "main"', f'"branchName": "{branch}"'))
        made.git("commit", "-qam", f"plan for {branch}")
        done = made.run("-n", "1", US_001=[["claim"]])
        assert made.git("branch", "--show-current") == "main"
        return done.err

    assert "branch" not in notes("feature/shop"), "the name that `ralph init` chose"
    assert "working on main; `branch.auto_create: true` would create the plan's branch big/one" in notes("big/one")
    made.git("branch", "big/two")
    assert "working on main; the plan's branch big/two exists: `git switch big/two` to work there" in notes("big/two")
