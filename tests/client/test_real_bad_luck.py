"""The real client at default settings: bad luck does not end the night, and work that no check proves is not lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.clients import CLIENT, Project, claim, say, use, write

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(not CLIENT.exists(), reason="the real client is not installed in .venv/client"),
]
TEST = "import unittest, s1\n\nclass T(unittest.TestCase):\n    def test_it(self):\n        self.assertEqual(s1.x, 8)\n"


def test_three_different_failures_and_then_success(tmp_path: Path) -> None:
    project = Project(tmp_path, checks=[{"name": "words", "command": "! grep -s Error note.txt"}])
    turns = []
    for word in ("cannot parse", "undefined name", "assertion failed"):
        turns += [write(project, "note.txt", f"Error: {word}\n"), claim(project), say()]
    ran = project.run([*turns, write(project, "s1.txt"), write(project, "note.txt"), claim(project), say()])
    assert ran.verdicts() == [*[("S-1", "rejected")] * 3, ("S-1", "accepted")], ran.out
    assert (ran.code, ran.done()) == (0, [True])
    assert ran.of("RunStarted")[0]["max_iterations"] == 10, "one story: five attempts, and a review of each"
    assert "1 story × about 2 iterations = about 2" in ran.out, "a story with a check of its own needs no review"
    assert ran.of("IterationEnded")[-1]["grade"] == "proven"


def test_without_checks_the_sessions_own_failing_tests_speak_and_its_work_is_kept(tmp_path: Path) -> None:
    project = Project(tmp_path, own=False)
    path = str(project.root / "s1.py")
    tests = use("Bash", command="python3 -m unittest -q")
    first = [write(project, "test_it.py", TEST), write(project, "s1.py", "x = 7\n"), tests, claim(project), say()]
    second = [use("Read", file_path=path), write(project, "s1.py", "x = 8  # was 7\n"), tests, claim(project), say()]
    approved = use("StructuredOutput", review={"verdict": "approved"})
    ran = project.run([*first, *second, approved])
    assert ran.verdicts() == [("S-1", "partial"), ("S-1", "accepted"), ("S-1", "accepted")], ran.out
    last = ran.of("IterationEnded")[-1]
    assert (ran.code, last["mode"], last["grade"]) == (0, "review", "reviewed"), "no check proves it"
    assert ran.of("IterationEnded")[0]["headline"] == "the last test run of the session failed: python3 -m unittest -q"
    subjects = subprocess.run(
        ["git", "log", "--format=%s"], cwd=project.root, env=project.environment(), capture_output=True, check=True
    ).stdout.decode()
    assert "wip(S-1): Story 1" in subjects
    assert "the last test run of the session failed" in ran.told(), "the next session is told"
