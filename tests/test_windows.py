"""On Windows what needs no process control works, and the rest says so. Windows is only pretended here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.workspaces import workspace

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
