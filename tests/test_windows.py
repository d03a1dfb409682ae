"""On Windows what needs no process control works, and the rest says so. Windows is only pretended here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ralph.state.names import FILES
from ralph.state.places import state_home
from support.proven import Proven, write
from support.workspaces import workspace

ROOT = Path(__file__).resolve().parent.parent
RESERVED = {"con", "prn", "aux", "nul", *(f"{name}{number}" for name in ("com", "lpt") for number in range(1, 10))}
ILLEGAL = re.compile(r'[<>:"|?*\\\x00-\x1f]|[ .]$')

SCRIPT = Path(__file__).parent / "support" / "pretend_windows.py"


def on_windows(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


def test_every_module_can_be_imported(tmp_path: Path) -> None:
    done = on_windows("import", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_plan_can_be_started_read_changed_and_put_away(tmp_path: Path) -> None:
    for line in (
        "init demo",
        "status",
        "task add Second --criterion seen",
        "task done US-001 --note seen",
        "check",
        "config set timeout 5m",
        "config show --origin",
        "trust -y",
        "paths",
        "run --dry-run --agent command --agent-command true",
        "archive --no-commit",
        "archive list",
    ):
        done = on_windows("ralph", *line.split(), cwd=tmp_path)
        assert done.returncode == 0, f"{line}: {done.stderr}"


@pytest.mark.parametrize("command", [("run", "--trust"), ("verify", "--trust")], ids=str)
def test_what_starts_processes_says_that_it_cannot(command: tuple[str, ...], tmp_path: Path) -> None:
    root = tmp_path / "work"
    workspace(root, "tasks.json")
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / ".ralph" / "config.yaml").write_text("checks: [{name: unit, command: touch ran}]\n")
    done = on_windows("ralph", *command, cwd=root)
    assert done.returncode == 78
    assert "on Windows" in done.stderr
    assert "hint: " in done.stderr
    assert not (root / "ran").exists()


# --- the rules for paths ---------------------------------------------------------------------------------------------


def illegal(path: str) -> bool:
    """Whether Windows could not have a file of this name."""
    parts = path.split("/")
    return any(ILLEGAL.search(part) or part.partition(".")[0].lower() in RESERVED for part in parts)


def test_the_rules_are_those_of_windows() -> None:
    assert [name for name in ("a/b.c", "a b", ".x", "console") if illegal(name)] == []
    assert all(illegal(name) for name in ("a:b", "a/nul", "a/COM1.txt", "x.", "x /y", 'a"b', "a\\b", "what?"))


def test_windows_can_check_out_every_file_of_the_repository() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = [name for name in listed.stdout.split("\0") if name]
    assert [name for name in names if illegal(name)] == []
    counts = Counter(name.lower() for name in names)
    assert [name for name in names if counts[name.lower()] > 1] == []


def test_what_a_run_writes_has_names_that_windows_can_have(tmp_path: Path) -> None:
    """The run is one of Linux: on Windows there is none, but plans, state and reports are copied there and read."""
    made = Proven(tmp_path, stories=[{"verify": ["test -f src/one.py"]}])
    assert made.run(US_001=[[write("src/one.py", "ONE = 1\n"), "claim"]]).code == 0
    state = state_home(os.environ)
    written = [path.relative_to(state).as_posix() for path in state.rglob("*") if ".git/" not in f"{path}/"]
    written += [path.relative_to(made.root).as_posix() for path in (made.root / ".ralph").rglob("*")]
    assert len(written) > 20
    assert [name for name in (*written, *(file.path.rstrip("/…") for file in FILES)) if illegal(name)] == []
