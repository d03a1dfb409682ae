"""Seed 000's hooks in the real client: what a failing test run and a denied command leave behind."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from support.cli import ralph
from support.clients import CLIENT, Project, say, use, write

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(not CLIENT.exists(), reason="the real client is not installed in .venv/client"),
]
TEST = (
    "import unittest\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.fail('seven is not eight')\n"
)


def test_an_immediate_rollback_writes_the_failure_context_and_the_log_shows_denials(tmp_path: Path) -> None:
    project = Project(tmp_path, rollback="immediate", max_loops_per_task=1)
    shutil.rmtree(project.root / ".ralph/work")
    (project.root / ".ralph/PRD-1").mkdir()
    (project.root / ".ralph/PRD-1/plan.md").write_text("# Shop\n\n- [ ] US-001: Log in\n")
    (project.root / "test_it.py").write_text(TEST)
    project.commit()
    failing = use("Bash", command="python3 -m unittest -q")
    late = say("Oh.") | {"wait": 8}  # a scripted model is faster than any loop
    ran = project.run([use("Bash", command="git push origin main"), write(project, "s1.txt"), failing, late, say()])
    assert "the iteration is rolled back at once" in ran.out
    assert not (project.root / "s1.txt").exists()
    context = (project.root / ".ralph/failure-context.log").read_text()
    assert "US-001, iteration 1: tests failed" in context
    assert "$ python3 -m unittest -q" in context
    assert "seven is not eight" in context
    log = ralph("log", cwd=project.root, env=project.environment())
    assert "denied Bash git push origin main:" in log.out, log.out
