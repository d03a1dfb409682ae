"""Runs on a local Ray cluster, in a network and a process namespace of their own, by the command that users type."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import ralph_here
from support.workspaces import workspace

ROOT = Path(__file__).resolve().parents[2]

pytestmark = [pytest.mark.defaults, pytest.mark.usefixtures("git_identity")]


def bench(*args: str, timeout: float = 200) -> str:
    """`bench/cluster.py` exits with 1 if a story is missing or there twice, a secret is in a journal, or a process is
    left."""
    argv = [sys.executable, str(ROOT / "bench" / "cluster.py"), *args]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing wrong" in done.stdout
    return done.stdout


@pytest.mark.slow
@pytest.mark.needs("ray", "unshare")
def test_a_killed_and_a_frozen_node_lose_nothing() -> None:
    out = bench("--stories", "10", "--nodes", "3", "--slots", "2", "--seconds", "1")
    assert "killed node-1" in out
    assert "froze node-2" in out
    assert "10 of 10 stories, 0 more than once" in out


@pytest.mark.slow
@pytest.mark.needs("ray", "unshare")
def test_a_killed_run_goes_on_where_it_was() -> None:
    out = bench("--stories", "6", "--nodes", "1", "--slots", "3", "--kill", "0", "--freeze", "0", "--kill-driver")
    assert "6 of 6 stories, 0 more than once" in out


@pytest.mark.slow
@pytest.mark.needs("ray", "unshare")
def test_stop_ends_the_agents_on_all_nodes() -> None:
    out = bench("--stories", "4", "--nodes", "2", "--slots", "1", "--seconds", "60", "--stop")
    assert "no agent left" in out


@pytest.mark.parametrize(
    ("on", "code", "words"),
    [
        ("slurm", 64, "not a kind of cluster"),
        ("ray", 64, "this machine has no Ray cluster"),
        ("ray://127.0.0.1:1", 78, "there is no token"),
    ],
)
@pytest.mark.needs("ray")
def test_a_run_without_a_cluster_is_refused_before_anything_starts(
    on: str, code: int, words: str, tmp_path: Path
) -> None:
    workspace(tmp_path, "tasks.json", 2)
    for command in (("git", "init", "-q"), ("git", "add", "-A"), ("git", "commit", "-q", "-m", "start")):
        subprocess.run(command, cwd=tmp_path, check=True)
    done = ralph_here("run", "--on", on, "--trust", "--agent", "scripted", cwd=tmp_path)
    assert done.code == code, done.err
    assert words in done.err
