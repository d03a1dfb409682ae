"""Whether the checks pass only because tests were weakened: found out by running them with the tests as they were."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from ralph.app.worktree import GitWorkTree
from ralph.core.evidence import CheckResult
from ralph.core.plan import Story
from ralph.core.suspicion import Suspicion
from ralph.host.repo import identify
from support.repositories import listing

STORY = Story(id="US-001", title="Double a number", criteria=("double(2) is 4",))
TEST = "from code_ import double\n\n\ndef test_double():\n    assert double(2) == 4\n\n\ntest_double()\n"
RIGHT, WRONG = "def double(x):\n    return x * 2\n", "def double(x):\n    return x\n"
CHECK = "python3 test_double.py\n"
pytestmark = pytest.mark.usefixtures("git_identity")


class Workshop:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.root.mkdir()
        self.write(test_double=TEST, code_="double = None\n", test_other="def test_other():\n    assert 1 + 1 == 2\n")
        (self.root / "check.sh").write_text(CHECK)
        for command in ("init -q -b main", "add -A", "commit -qm start"):
            self.git(*command.split())
        self.tree = GitWorkTree(identify(self.root), folder / "index", {})
        self.checkpoint = self.tree.checkpoint()
        self.runs = 0

    def write(self, **files: str) -> None:
        for name, text in files.items():
            (self.root / f"{name}.py").write_text(text)

    def git(self, *args: str) -> str:
        return subprocess.run(["git", *args], cwd=self.root, check=True, capture_output=True, text=True).stdout

    def run_checks(self) -> tuple[CheckResult, ...]:
        self.runs += 1
        script = (self.root / "check.sh").read_text().replace("python3", f"{sys.executable} -S -B")
        done = subprocess.run(["sh", "-c", script], cwd=self.root, capture_output=True, check=False)
        return (CheckResult(name="tests", command="sh check.sh", passed=done.returncode == 0, code=done.returncode),)

    def doubts(self, story: Story = STORY, *, weigh: bool = True) -> list[Suspicion]:
        self.inspected = self.tree.inspect(self.checkpoint)
        before = listing(self.root)
        found = self.tree.suspicions(
            self.checkpoint, self.inspected.tree, story, ["sh check.sh"], (), self.run_checks, weigh=weigh
        )
        assert listing(self.root) == before, "what the agent left is there again"
        return [doubt for doubt in found if doubt.is_grave]


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


WEAKENED = {
    "asserts nothing": ("test_double.py", "assert True\n"),
    "expects what comes out": ("test_double.py", TEST.replace("== 4", "== 2")),
    "runs no test": ("check.sh", "exit 0\n"),
    "swallows failures": (
        "test_double.py",
        TEST.replace("\ntest_", "\ntry:\n    test_") + "except AssertionError:\n    pass\n",
    ),
}


@pytest.mark.parametrize("way", WEAKENED)
def test_a_weakened_test_decides_when_the_work_fails_without_it(workshop: Workshop, way: str) -> None:
    name, text = WEAKENED[way]
    workshop.write(code_=WRONG)
    (workshop.root / name).write_text(text)
    assert any(doubt.is_decisive for doubt in workshop.doubts())


def test_a_new_file_that_hides_failures_is_taken_away_for_the_second_opinion(workshop: Workshop) -> None:
    workshop.write(code_=WRONG, sitecustomize="import sys\nsys.exit(0)\n")
    (workshop.root / "check.sh").write_text("exit 0\n")
    assert any(doubt.is_decisive for doubt in workshop.doubts())


def test_a_weakened_test_decides_nothing_when_the_work_passes_without_it(workshop: Workshop) -> None:
    workshop.write(code_=RIGHT, test_double="assert True\n")
    doubts = workshop.doubts()
    assert doubts
    assert not any(doubt.is_decisive for doubt in doubts)


def test_an_expectation_that_the_story_asks_for_is_told_and_no_more(workshop: Workshop) -> None:
    workshop.write(code_="def double(x):\n    return x * 2 + 1\n", test_double=TEST.replace("== 4", "== 5"))
    asked = Story(id="US-002", title="Change double to add one", criteria=("double(2) now returns 5 instead of 4",))
    assert workshop.doubts(asked) == []
    assert workshop.runs == 1
    assert workshop.doubts(Story(id="US-002", title="Something else"))


def test_a_test_that_had_to_be_rewritten_for_a_new_name_is_left_to_a_review(workshop: Workshop) -> None:
    workshop.write(code_=RIGHT.replace("double", "twice"), test_double=TEST.replace("double", "twice"))
    doubts = workshop.doubts(Story(id="US-004", title="Call it twice"))
    assert doubts
    assert not any(doubt.is_decisive for doubt in doubts)


def test_without_a_review_nothing_is_weighed(workshop: Workshop) -> None:
    workshop.write(code_=WRONG, test_double="assert True\n")
    assert workshop.doubts(weigh=False)
    assert workshop.runs == 0


def test_a_deleted_test_is_not_committed_again_after_a_second_opinion(workshop: Workshop) -> None:
    workshop.write(code_=RIGHT)
    (workshop.root / "test_other.py").unlink()
    asked = Story(id="US-003", title="Remove test_other", criteria=("Delete test_other.py.", "double(2) is 4"))
    workshop.doubts(asked)
    assert workshop.runs == 1
    plan = [workshop.root / "check.sh"]  # what the loop commits along is added to the tree that was inspected
    made = workshop.tree.commit(workshop.checkpoint, workshop.inspected.tree, plan, "done", {})
    assert made is not None
    assert workshop.git("status", "--short") == ""
    assert "test_other.py" not in workshop.git("ls-tree", "-r", "--name-only", "HEAD")
