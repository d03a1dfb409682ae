"""A run with what macOS has: no /proc, no bubblewrap, no way to adopt orphans. macOS is only pretended here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ralph.core.exit_codes import ExitCode
from support.proven import Proven, shell, write

SCRIPT = Path(__file__).parent / "support" / "pretend_macos.py"

pytestmark = pytest.mark.needs("ps")


def on_macos(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    environment = {**os.environ, **env}
    return subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )


def test_processes_are_not_looked_up_in_proc() -> None:
    code = "import sys, pretend_macos; sys.addaudithook(pretend_macos.no_proc); open('/proc/stat')"
    env = {**os.environ, "PYTHONPATH": str(SCRIPT.parent)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert "FileNotFoundError" in done.stderr


@pytest.mark.slow
def test_a_run_works_and_ends_what_its_agent_left(tmp_path: Path) -> None:
    made = Proven(tmp_path, stories=[{"verify": ["test -f src/one.py"]}, {"title": "Two"}])
    left = shell("sleep 300 & echo $! >../left")
    made.script(US_001=[[left, write("src/one.py", "ONE = 1\n"), "claim"]], US_002=[["claim"], ["claim"]])
    done = on_macos(
        *("run", "--plain", "--trust", "--agent-script", str(tmp_path / "script.yaml"), "--max-loops-per-task", "2"),
        cwd=made.root,
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "accepted US-001" in done.stdout
    assert "rejected US-002: no files changed" in done.stdout
    assert done.returncode == ExitCode.FAILED_STORIES
    pid = (tmp_path / "left").read_text().strip()
    state = subprocess.run(["ps", "-o", "stat=", "-p", pid], capture_output=True, text=True, check=False).stdout
    assert state.strip()[:1] in ("", "Z")  # a zombie is there until the first process of the machine looks
    for line in ("status", "report", "doctor --json"):
        shown = on_macos(*line.split(), cwd=made.root)
        assert "Traceback" not in shown.stderr
        assert shown.stdout
