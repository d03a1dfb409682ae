"""The real client at default settings, in a project whose stories have no checks of their own: what counts as done."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from support.clients import CLIENT, Project, claim, say, use, write

pytestmark = [
    pytest.mark.client,
    pytest.mark.skipif(not CLIENT.exists(), reason="the real client is not installed in .venv/client"),
]
OLD = "import unittest\n\n\nclass Old(unittest.TestCase):\n    def test_old(self):\n        self.assertTrue(True)\n"
CODE = "from pathlib import Path\n\n\ndef is_there():\n    return Path('s1.txt').exists()\n"
TEST = (
    "import unittest\n\nimport s1\n\n\nclass S1(unittest.TestCase):\n"
    "    def test_s1_is_there(self):\n        self.assertTrue(s1.is_there())\n"
)
APPROVED = use("StructuredOutput", review={"verdict": "approved"})


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path, own=False, checks=[{"name": "tests", "command": "python3 -B -m unittest -v"}])
    (made.root / "test_old.py").write_text(OLD)
    made.commit()
    return made


def work(project: Project) -> list[dict[str, Any]]:
    files = {"s1.txt": "x\n", "s1.py": CODE, "test_s1.py": TEST}
    return [write(project, name, text) for name, text in files.items()]


def test_a_test_that_fails_without_the_change_is_enough(project: Project) -> None:
    ran = project.run([*work(project), claim(project), say()])
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    [ended] = ran.of("IterationEnded")
    assert (ended["mode"], ended["grade"]) == ("implement", "witnessed")
    assert "test_s1_is_there" in ended["headline"]
    [judged] = ran.of("Judged")
    assert judged["evidence"]["proof"]["where"] == "checkout"


def test_a_reviewer_decides_about_work_that_no_check_is_about(project: Project) -> None:
    lacks = {"text": "s1.txt is not there", "place": "old.txt:1", "severity": "high", "criterion": "s1.txt is there"}
    turns = [
        *(use("Bash", command="echo more >> old.txt"), claim(project), say()),
        use("StructuredOutput", review={"verdict": "changes_requested", "findings": [lacks]}),
        *(*work(project), use("StructuredOutput", claim="done", fixes=[{"id": "F1", "fate": "fixed"}])),
        APPROVED,
    ]
    ran = project.run(turns)
    assert (ran.code, ran.done()) == (0, [True]), ran.out
    ended = [(event["mode"], event["grade"]) for event in ran.of("IterationEnded")]
    assert ended == [("implement", "unproven"), ("review", ""), ("fix", "witnessed"), ("review", "witnessed")]
    assert "No check is about this story" in ran.told()


def test_without_reviews_such_work_is_kept_and_waits_for_one(project: Project) -> None:
    ran = project.run([write(project, "s1.txt"), claim(project), say()], "--skip-review")
    assert (ran.code, ran.done()) == (1, [False]), ran.out
    assert "no check fails without this change" in ran.out
    files = ["git", "ls-files", "s1.txt"]
    assert subprocess.run(files, cwd=project.root, capture_output=True, check=True).stdout == b"s1.txt\n"
    again = project.run([APPROVED])
    assert (again.code, again.done()) == (0, [True]), again.out
    assert again.of("IterationEnded")[-1]["grade"] == "reviewed"
    shown = subprocess.run(
        [sys.executable, "-m", "ralph", "proof", "S-1"],
        cwd=project.root,
        env=project.env,
        capture_output=True,
        check=False,
    )
    assert shown.returncode == 0, shown.stderr.decode()
