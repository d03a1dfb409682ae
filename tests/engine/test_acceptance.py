"""Acceptance tests by another session, through real runs: they fail first, are protected, and decide."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from ralph.core.events import Noted
from support.accepted import (
    ACCEPTANCE,
    APPROVES,
    CHEATS,
    IMPLEMENTS,
    TRIPLE_TEST,
    WRITES_TESTS,
    Accepted,
    write,
)

pytestmark = pytest.mark.usefixtures("git_identity")
LAYOUTS = ("feature", "plan.md", "tasks.json")


@pytest.mark.defaults
@pytest.mark.parametrize("name", LAYOUTS)
def test_visible_tests_are_committed_before_the_implementation_and_prove_it(tmp_path: Path, name: str) -> None:
    made = Accepted(tmp_path, name)
    done = made.run("--acceptance", "visible", acceptance=[WRITES_TESTS], implement=[IMPLEMENTS], review=[APPROVES])
    assert done.code == 0, done.err + done.out
    assert made.outcomes()[:2] == [("acceptance", "accepted"), ("implement", "accepted")]
    tests, work = made.log()[1:3]
    assert tests.startswith("test(")
    assert work.startswith("feat(")
    assert ACCEPTANCE in made.git("show", "--name-only", "--format=", ":/^test")
    assert {event.grade for event in made.ended() if event.grade} == {"proven"}


@pytest.mark.defaults
@pytest.mark.parametrize("name", LAYOUTS)
def test_hidden_tests_are_nowhere_in_the_repository_until_the_story_is_done(tmp_path: Path, name: str) -> None:
    made = Accepted(tmp_path, name)
    script = {"acceptance": [WRITES_TESTS], "implement": [[*IMPLEMENTS[:-1]]], "review": [APPROVES]}
    made.run("--acceptance", "hidden", "--max-iterations", "1", **script)
    assert made.outcomes() == [("acceptance", "accepted")]
    assert not (made.root / ACCEPTANCE).exists()
    assert b"secret_expectation" not in made.all_of_git()
    script["implement"] = [IMPLEMENTS]
    done = made.run("--acceptance", "hidden", **script)
    assert done.code == 0, done.err + done.out
    assert made.outcomes()[0] == ("implement", "accepted"), "written once, over runs"
    assert (made.root / ACCEPTANCE).read_text() == TRIPLE_TEST
    assert made.git("show", f"HEAD:{ACCEPTANCE}") == TRIPLE_TEST.rstrip()
    assert {event.grade for event in made.ended() if event.grade} == {"proven"}
    assert not made.git("status", "--porcelain", "--", ".", ":!.ralph", ":!ralph")


@pytest.mark.defaults
def test_a_special_cased_implementation_is_caught_and_told_why_without_the_code(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature")
    done = made.run("--acceptance", "hidden", acceptance=[WRITES_TESTS], implement=[CHEATS, IMPLEMENTS])
    assert done.code == 0, done.err + done.out
    assert made.outcomes() == [("acceptance", "accepted"), ("implement", "rejected"), ("implement", "accepted")]
    feedback = made.ended()[1].feedback
    assert f"{ACCEPTANCE}::test_triple[5]" in feedback
    assert "assert 0 == 15" in feedback
    assert "secret_expectation" not in feedback
    assert "number * 3" not in feedback
    rescued = made.git("for-each-ref", "--format=%(refname)", "refs/ralph/rescue")
    assert rescued
    for ref in rescued.splitlines():
        assert "acceptance" not in made.git("ls-tree", "-r", "--name-only", ref)


def test_without_acceptance_tests_the_same_implementation_is_done(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature")
    assert made.run(acceptance=[WRITES_TESTS], implement=[CHEATS]).code == 0
    assert made.outcomes() == [("implement", "accepted")]


ALREADY = "from shop import double\n\n\ndef test_zero():\n    assert double(0) == 0\n"


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ([write(ACCEPTANCE, ALREADY), "claim"], "already passes"),
        ([write(ACCEPTANCE, "def test_x(:\n    pass\n"), "claim"], "error of its own"),
        ([write(ACCEPTANCE, "import pytest\n\n\ndef test_x():\n    pytest.skip()\n"), "claim"], "skipped"),
        ([write("lib/test_elsewhere.py", "def test_x():\n    assert 0\n"), "claim"], "does not fail with"),
        ([write("shop.py", "def triple(x):\n    return 3 * x\n"), "claim"], "no new test file"),
        (["claim"], "no new test file"),
    ],
)
def test_tests_that_prove_nothing_are_refused_with_a_reason(tmp_path: Path, wrong: list[object], why: str) -> None:
    made = Accepted(tmp_path, "feature")
    made.run("--acceptance", "hidden", "--max-iterations", "1", acceptance=[wrong], implement=[IMPLEMENTS])
    assert made.outcomes() == [("acceptance", "rejected")]
    assert why in made.ended()[0].feedback
    assert not made.git("status", "--porcelain", "--", "shop.py", "tests", "lib")


def test_a_story_continues_without_them_after_two_sessions_and_it_is_said(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature")
    wrong = [write(ACCEPTANCE, ALREADY), "claim"]
    assert made.run("--acceptance", "visible", acceptance=[wrong], implement=[IMPLEMENTS]).code == 0
    assert made.outcomes() == [("acceptance", "rejected")] * 2 + [("implement", "accepted")]
    notes = [event.text for event in made.events() if isinstance(event, Noted)]
    assert any("continues without acceptance tests: already passes" in note for note in notes), notes
    assert "already passes" in made.ended()[0].feedback
    assert not made.ended()[1].feedback, "it is not for the session that implements the story"


def test_the_second_session_is_told_why_the_first_was_refused(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature")
    wrong = [write(ACCEPTANCE, ALREADY), "claim"]
    right = [{"run": "printenv RALPH_ATTEMPT > /dev/null"}, *WRITES_TESTS]
    made.run("--acceptance", "visible", acceptance=[wrong, right], implement=[IMPLEMENTS])
    assert made.outcomes() == [("acceptance", "rejected"), ("acceptance", "accepted"), ("implement", "accepted")]


def test_source_files_of_the_test_author_are_restored(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature")
    helps = [write("shop.py", "def triple(x):\n    return 3 * x\n"), write("tests/test_shop.py", ""), *WRITES_TESTS]
    made.run("--acceptance", "visible", "--max-iterations", "1", acceptance=[helps], implement=[IMPLEMENTS])
    assert made.outcomes() == [("acceptance", "accepted")]
    assert made.git("show", "--name-only", "--format=", ":/^test").splitlines() == [ACCEPTANCE]
    assert "triple" not in (made.root / "shop.py").read_text()
    assert any("restored" in notice for notice in made.ended()[0].notices)


def test_a_commit_hook_that_refuses_visible_tests_is_obeyed(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature")
    hook = made.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n! git diff --cached --name-only | grep -q acceptance_triple\n")
    hook.chmod(0o755)
    made.run("--acceptance", "visible", "--max-iterations", "1", acceptance=[WRITES_TESTS], implement=[IMPLEMENTS])
    assert made.outcomes() == [("acceptance", "rejected")]
    assert "pre-commit hook" in made.ended()[0].headline
    assert not (made.root / ACCEPTANCE).exists()


def test_visible_tests_are_restored_when_the_implementation_edits_them(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature")
    edits = [write(ACCEPTANCE, "def test_triple():\n    pass\n"), *CHEATS]
    made.run("--acceptance", "visible", acceptance=[WRITES_TESTS], implement=[edits, IMPLEMENTS])
    assert made.outcomes() == [("acceptance", "accepted"), ("implement", "rejected"), ("implement", "accepted")]
    assert f"restored protected files: {ACCEPTANCE}" in made.ended()[1].feedback
    assert made.git("show", f"HEAD:{ACCEPTANCE}") == TRIPLE_TEST.rstrip()


def test_tests_of_a_story_that_is_still_open_do_not_reject_another_one(tmp_path: Path) -> None:
    """The first story has failing tests in the repository; a second run works on another story."""
    made = Accepted(tmp_path, "plan.md", 4)
    first, second = "US-003", "US-004"
    quad = write("tests/test_acceptance_quad.py", "import shop\n\n\ndef test_quad():\n    assert shop.quad(3) == 12\n")
    script = {
        first: [{"acceptance": WRITES_TESTS, "implement": [{"ask": "Which one?"}]}],
        second: [
            {
                "acceptance": [quad, "claim"],
                "implement": [
                    write("shop.py", "def double(x):\n    return 2 * x\n\n\ndef quad(x):\n    return 4 * x\n")
                ],
            }
        ],
    }
    made.run("--acceptance", "visible", script=script)
    assert [(event.story, event.mode.value, event.kind.value) for event in made.ended()] == [
        (first, "acceptance", "accepted"),
        (first, "implement", "blocked"),
        (second, "acceptance", "accepted"),
        (second, "implement", "accepted"),
    ]


def test_an_edited_story_gets_new_tests_and_a_retried_one_keeps_them(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature")
    script = {"acceptance": [WRITES_TESTS], "implement": [CHEATS]}
    made.run("--acceptance", "hidden", "--max-iterations", "2", **script)
    assert made.outcomes() == [("acceptance", "accepted"), ("implement", "rejected")]
    made.ask("retry", "--all")
    made.run("--acceptance", "hidden", "--max-iterations", "1", **script)
    assert made.outcomes() == [("implement", "rejected")]
    text = made.ref.path.read_text()
    made.ref.path.write_text(text.replace("names the columns", "is empty").replace('"attempts": 2', '"attempts": 0'))
    made.ask("retry", "--all")
    made.run("--acceptance", "hidden", "--max-iterations", "1", **script)
    assert made.outcomes() == [("acceptance", "accepted")]


@pytest.mark.defaults
def test_a_run_with_hidden_tests_can_be_replayed_verified_and_shown(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature")
    plan = made.run("--acceptance", "hidden", "--dry-run", acceptance=[WRITES_TESTS], implement=[IMPLEMENTS])
    assert "mode       acceptance" in plan.out
    assert "Write acceptance tests for US-001" in plan.out
    assert made.run("--acceptance", "hidden", acceptance=[WRITES_TESTS], implement=[CHEATS, IMPLEMENTS]).code == 0
    replayed = made.ask("replay")
    assert replayed.code == 0
    assert "3 verdicts, 0 differ" in replayed.out
    assert made.ask("audit").code == 0
    shown = made.ask("log").out
    assert "wrote 3 acceptance tests that fail now" in shown
    assert "secret_expectation" not in shown


def test_without_a_check_no_session_is_spent_and_the_run_says_why(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature", checks=[])
    made.run("--acceptance", "visible", acceptance=[WRITES_TESTS], implement=[IMPLEMENTS])
    assert made.outcomes() == [("implement", "accepted")]
    notes = [event.text for event in made.events() if isinstance(event, Noted)]
    assert "no acceptance tests are written: no check would run them" in notes


def test_a_reviewer_is_told_about_them(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "tasks.json")
    saves = [{"run": "cat > ../prompt.txt"}, *APPROVES]
    script = {"acceptance": [WRITES_TESTS], "implement": [IMPLEMENTS], "review": [saves]}
    made.run("--acceptance", "hidden", "--max-iterations", "2", **script)
    assert made.outcomes() == [("acceptance", "accepted"), ("implement", "accepted")]
    assert not (made.root / ACCEPTANCE).exists(), "a reviewed story is not done yet"
    prompt = made.ask("prompt", "--mode", "review").out
    assert "## Acceptance tests" in prompt
    assert "could not see them" in prompt
    assert f"{ACCEPTANCE}::test_triple[5]" in prompt
    made.run("--acceptance", "hidden", **script)
    assert made.outcomes() == [("review", "accepted")]
    assert made.git("show", f"HEAD:{ACCEPTANCE}") == TRIPLE_TEST.rstrip()


def test_tests_of_a_killed_session_are_in_no_rescue_ref(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature", acceptance="hidden")
    begun = made.start(acceptance=[[WRITES_TESTS[0], {"run": "sleep 60"}]], implement=[IMPLEMENTS])
    deadline = time.monotonic() + 60
    while not (made.root / ACCEPTANCE).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    begun.kill()
    begun.wait()
    assert (made.root / ACCEPTANCE).exists()
    made.run("--max-iterations", "1", acceptance=[WRITES_TESTS], implement=[IMPLEMENTS])
    assert made.outcomes() == [("acceptance", "accepted")]
    assert not (made.root / ACCEPTANCE).exists()
    assert b"secret_expectation" not in made.all_of_git()
