"""`ralph run --worktree` where the checks need files that git ignores."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.cli import Completed
from support.proven import Proven, write

TOOL = ".venv/bin/tests"
WORKS = [write("src/one.py", "ONE = 1\n"), "claim"]


@pytest.fixture
def made(tmp_path: Path) -> Proven:
    made = Proven(tmp_path, branch={"auto_create": True}, checks=[{"name": "tests", "command": TOOL}])
    made.write(".gitignore", ".venv/\n__pycache__/\n.ralph/*/progress.txt\n")
    made.git("commit", "-qam", "ignore")
    install(made.root)
    return made


def install(root: Path) -> None:
    tool = root / TOOL
    tool.parent.mkdir(parents=True)
    tool.write_text("#!/bin/sh\ntrue\n")
    tool.chmod(0o755)


def run_in_worktree(made: Proven) -> Completed:
    """It cannot start."""
    done = made.ask("run", "--plain", "--trust", "--worktree", "--agent-script", str(made.script(US_001=[WORKS])))
    assert done.code >= 64
    return done


def test_a_missing_ignored_file_is_named_with_the_worktree_and_the_way_on(made: Proven) -> None:
    done = run_in_worktree(made)
    [folder] = (made.state / "worktrees").iterdir()
    assert f"{TOOL} does not exist in the worktree {folder}; a worktree has no ignored files" in done.out
    assert "create the virtual environment" not in done.out
    assert f"continue there: `ralph run -d {folder}`" in done.err
    install(folder)
    again = made.run("-d", str(folder), US_001=[WORKS])
    assert again.code == 0, again.out + again.err
    assert "no agent has started" not in again.err
    assert "feat(US-001)" in made.git("log", "--format=%s", f"ralph/shop-{folder.name}")


def test_the_command_that_removes_an_unused_worktree_works(made: Proven) -> None:
    done = run_in_worktree(made)
    command = re.search(r"to remove the worktree: `git (worktree remove --force \S+); git (branch -D \S+)`", done.err)
    assert command, done.err
    for part in command.groups():
        made.git(*part.split())
    assert made.git("branch", "--list", "ralph/*") == ""
    assert not any((made.state / "worktrees").iterdir())


def test_a_worktree_whose_run_could_not_start_is_removed(made: Proven) -> None:
    """A file that git shows as changed right after the checkout."""
    (made.root / "lines.txt").write_bytes(b"one\r\n")
    made.git("add", "lines.txt")
    made.git("commit", "-qm", "lines")
    made.write(".gitattributes", "*.txt text\n")
    made.git("add", ".gitattributes")
    made.git("commit", "-qm", "attributes")
    done = run_in_worktree(made)
    assert "lines.txt" in done.err
    assert "removed the unused worktree and its branch ralph/shop-" in done.err
    assert made.git("branch", "--list", "ralph/*") == ""
    assert not any((made.state / "worktrees").iterdir())
