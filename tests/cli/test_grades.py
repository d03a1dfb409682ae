"""How well each story is proven, in every place where people look."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote

import pytest

from support.proven import Proven, write

pytestmark = pytest.mark.defaults
CHECK = (
    f"PYTHONPATH=src:$PYTHONPATH {quote(sys.executable)} -m pytest -q -p no:cacheprovider -p no:hypothesispytest tests"
)
OWN = [write("src/one.py", "ONE = 1\n"), "claim"]
TESTED = [
    write("src/two.py", "def two():\n    return 2\n"),
    write("tests/test_two.py", "from two import two\n\n\ndef test_two():\n    assert two() == 2\n"),
    "claim",
]
DOCUMENT = [write("README.md", "A shop.\n"), "claim"]
KEPT = "US-003: committed, but no test fails without the change and no review approved it"


def shop(folder: Path, **more: object) -> Proven:
    stories = [{"verify": ["test -f src/one.py"]}, {}, {}]
    return Proven(folder, stories=stories, checks=[{"name": "tests", "command": CHECK}], **more)


def test_grades_are_shown_wherever_stories_are(tmp_path: Path) -> None:
    made = shop(tmp_path)
    done = made.run(US_001=[OWN], US_002=[TESTED], US_003=[DOCUMENT])
    assert done.code == 1, "US-003 is unproven"
    assert "accepted US-001: done, proven by test -f src/one.py" in done.out
    assert "accepted US-002: done, witnessed by tests/test_two.py::test_two" in done.out
    assert "no check fails without this change: add a test that does" in done.out
    assert "  proof      1 proven, 1 witnessed\n" in done.out
    assert f"  unproven   {KEPT}" in done.out

    status = made.ask("status")
    assert "Proof: 1 proven, 1 witnessed" in status.out
    assert f"Unproven: {KEPT}" in status.out
    assert "Nothing is ready: unproven stories wait for a review, and reviews are off" in status.out
    told = made.ask("status", "--json").json
    assert told["grades"] == {"proven": 1, "witnessed": 1}
    assert (told["unproven"], [story["grade"] for story in told["stories"]]) == (
        ["US-003"],
        ["proven", "witnessed", "unproven"],
    )
    assert "Story 2  witnessed" in made.ask("task", "list").out
    assert "grade      witnessed: a test fails without the change" in made.ask("task", "show", "US-002").out

    proof = made.ask("proof", "US-002")
    assert (proof.code, "witness    tests/test_two.py::test_two" in proof.out) == (0, True)
    assert "where      in a clean checkout of the commit" in proof.out
    assert "old tests  passed with 1 file as at the story's start: tests/test_two.py" in proof.out
    told = made.ask("proof", "US-002", "--json").json
    assert (told["grade"], told["where"]) == ("witnessed", "checkout")
    assert (told["witnesses"], told["restored"]) == (["tests/test_two.py::test_two"], ["tests/test_two.py"])
    waiting = made.ask("proof", "US-003")
    assert (waiting.code, "grade      unproven" in waiting.out, "missing " in waiting.out) == (1, True, True)

    audit = made.ask("audit", "--json").json["stories"]
    assert [(story["grade"], story["standing"] == "unproven") for story in audit] == [
        ("proven", False),
        ("witnessed", False),
        ("unproven", True),
    ]

    assert f"{KEPT.replace(':', ' is')}" in made.ask("report").out
    assert "witnessed by tests/test_two.py::test_two" in made.ask("report").out
    assert "witnessed by tests/test_two.py::test_two" in made.ask("report", "--html", "-").out
    assert "1 proven, 1 witnessed; this run: in a clean checkout" in made.ask("report", "--markdown", "-").out
    told = made.ask("report", "--json").json
    assert (told["grades"], told["where"]) == ({"proven": 1, "witnessed": 1}, "checkout")
    assert [story["state"] for story in told["stories"]] == ["done", "done", "unproven"]
    assert f"  {KEPT}" in made.ask("explain").out


def test_a_proof_in_place_is_labelled_so(tmp_path: Path) -> None:
    made = shop(tmp_path, proof={"where": "in-place"})
    done = made.run("--story", "US-001", US_001=[OWN])
    assert "  proof      1 proven; this run: in the workspace (in-place), not in a clean checkout\n" in done.out
    assert "where      in the workspace (in-place)" in made.ask("proof", "US-001").out
    assert "proven, in place" in made.ask("audit").out
    assert "proven by test -f src/one.py, in place" in made.ask("report").out
    assert made.ask("task", "reopen", "US-001").code == 0
    assert made.ask("task", "show", "US-001", "--json").json["grade"] == "", "a reopened story has none"


def test_a_rejection_names_file_line_and_finding_everywhere(tmp_path: Path) -> None:
    made = shop(tmp_path)
    test = made.read("tests/test_shop.py").replace("== 4", "== 5")
    edit = [write("src/shop.py", "def double(x):\n    return x + x + 1\n"), write("tests/test_shop.py", test), "claim"]
    out = made.run("-n", "1", "--story", "US-002", US_002=[edit]).out
    finding = "the checks pass only with changed tests: tests/test_shop.py:5: "
    way_out = "do not change them; if the story cannot be done without that change, ask the user"
    views = [out, *(made.ask(*view).out for view in (["log"], ["explain"], ["report"], ["report", "--markdown", "-"]))]
    for shown in [*views, made.ask("prompt", "--story", "US-002").out]:
        assert finding in shown.replace("\\_", "_")
        assert way_out in shown


@pytest.mark.parametrize(
    ("settings", "story", "needs"),
    [
        ({}, "US-001", ""),
        ({}, "US-002", "Where a test can show the change, add or change one that fails without it and passes with it"),
        ({"tests": "must-fail-first"}, "US-002", "passes with it, or the work is rejected"),
        ({"proof": {"minimum": "unproven"}}, "US-002", ""),
    ],
)
def test_a_prompt_says_what_proof_needs(tmp_path: Path, settings: dict[str, object], story: str, needs: str) -> None:
    prompt = shop(tmp_path, **settings).ask("prompt", "--story", story).out
    assert (needs or "Do not change what existing tests expect, unless the story asks for it") in prompt
    assert ("passes with it" in prompt) == bool(needs)
    assert "when a test and the story contradict each other. Asking loses nothing." in prompt
