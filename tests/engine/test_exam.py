"""The exam through real runs: what fails becomes a story, what passes stays as a regression test."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from ralph.core.events import Noted
from ralph.core.plan import Plan
from ralph.plans.registry import layout
from support.accepted import APPROVES, CHECK, CODE, IMPLEMENTS, RIGHT, Accepted, write

pytestmark = pytest.mark.usefixtures("git_identity")
LAYOUTS = ("feature", "plan.md", "tasks.json")
FAILS = "tests/test_exam_words.py"
PASSES = "tests/test_exam_numbers.py"
FAILING_TEST = 'import shop\n\n\ndef test_word_of_three():\n    assert shop.triple(shop.double("a")) == "aaaaaa!"\n'
PASSING_TEST = "import shop\n\n\ndef test_six_times():\n    assert shop.triple(shop.double(4)) == 24\n"
FIXED = CODE + '\n\ndef triple(x):\n    return 3 * x + "!" if isinstance(x, str) else 3 * x\n'
EXAMINES = [write(FAILS, FAILING_TEST), write(PASSES, PASSING_TEST), "claim"]
FINDS_NOTHING = [write("tests/test_exam_more.py", PASSING_TEST.replace("six", "other")), "claim"]
FIXES = [write("shop.py", FIXED), "claim"]


def script(made: Accepted, *rounds: list[Any], fix: list[Any] = FIXES) -> dict[str, Any]:
    first = plan_of(made).stories[0].id
    anybody = [{"exam": each, "implement": fix, "review": APPROVES} for each in rounds]
    return {"script": {first: [{"implement": IMPLEMENTS, "review": APPROVES}], "*": anybody}}


def plan_of(made: Accepted) -> Plan:
    return layout(made.ref.layout).parse(made.ref.path.read_bytes(), str(made.ref.path))


def notes(made: Accepted) -> list[str]:
    return [event.text for event in made.events() if isinstance(event, Noted)]


@pytest.mark.defaults
@pytest.mark.parametrize("name", LAYOUTS)
def test_a_failing_test_becomes_a_story_and_the_next_round_ends_the_exam(tmp_path: Path, name: str) -> None:
    made = Accepted(tmp_path, name)
    done = made.run("--exam", **script(made, EXAMINES, FINDS_NOTHING))
    assert done.code == 0, done.err + done.out
    modes = [mode for mode, kind in made.outcomes() if mode != "review" and kind == "accepted"]
    assert modes == ["implement", "exam", "implement", "exam"], made.outcomes()
    assert "Exam: make test_word_of_three pass" in [event.title for event in made.ended() if event.completes]
    assert made.git("show", f"HEAD:{FAILS}") == FAILING_TEST.rstrip()
    assert made.git("show", f"HEAD:{PASSES}") == PASSING_TEST.rstrip()
    assert "test: write end-to-end tests" in made.log()
    assert "the exam found 1 failing test, added as" in done.out
    assert "the exam found no failure: 1 new test passes" in done.out
    assert "exam       the exam found 1 failing test" in made.ask("report").out
    assert "the exam found 1 failing test" in made.ask("log").out
    assert "0 differ" in made.ask("replay").out


@pytest.mark.defaults
@pytest.mark.parametrize("name", ["feature", "plan.md"])
def test_exam_stories_are_proven_by_their_test_which_is_protected(tmp_path: Path, name: str) -> None:
    made = Accepted(tmp_path, name)
    cheats = [write(FAILS, "def test_word_of_three():\n    pass\n"), write("shop.py", FIXED + "\n"), "claim"]
    done = made.run("--exam", **script(made, EXAMINES, FINDS_NOTHING, fix=cheats))
    assert done.code == 0, done.err + done.out
    story = next(event for event in made.ended() if event.title.startswith("Exam: make test_word_of_three pass"))
    assert (story.kind.value, story.grade) == ("accepted", "proven")
    assert any("restored" in notice and FAILS in notice for notice in story.notices), story.notices
    assert made.git("show", f"HEAD:{FAILS}") == FAILING_TEST.rstrip()
    shown = made.ask("task", "show", story.story).out
    assert "assert 'aaaaaa' == 'aaaaaa!'" in shown, "what failed is its description"
    assert CHECK.removesuffix(" tests") + f" {FAILS}" in shown.replace("\n", " "), "its check runs this test only"
    proof = made.ask("proof", story.story).out
    assert f"{FAILS}::test_word_of_three" in proof, proof


def test_the_exam_ends_after_its_rounds_and_is_not_repeated_by_the_next_run(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "plan.md", exam_rounds=1)
    scripted = script(made, EXAMINES)
    assert made.run("--exam", **scripted).code == 0
    assert [mode for mode, _ in made.outcomes()] == ["implement", "exam", "implement"]
    assert made.run("--exam", **scripted).code == 0
    assert made.outcomes() == []


def test_without_the_option_there_is_no_exam(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "plan.md")
    assert made.run(**script(made, EXAMINES)).code == 0
    assert [mode for mode, _ in made.outcomes()] == ["implement"]


def test_a_changed_plan_gets_a_new_exam(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "plan.md", exam="end-of-run", exam_rounds=1)
    assert made.run(**script(made, FINDS_NOTHING)).code == 0
    assert made.outcomes()[-1] == ("exam", "accepted")
    made.ref.path.write_text(made.ref.path.read_text().replace("names the columns", "names all columns"))
    made.git("commit", "-qam", "edit")
    assert made.run(**script(made, EXAMINES)).code == 0
    assert made.outcomes()[0][0] == "exam"


@pytest.mark.defaults
def test_by_hand_one_round_adds_the_stories_and_the_next_run_works_on_them(tmp_path: Path) -> None:
    """In one layout: how stories are added to the others is tested with `--exam` above."""
    made = Accepted(tmp_path, "plan.md")
    scripted = script(made, EXAMINES, FINDS_NOTHING)
    early = made.ask("exam", "--plain", "--trust")
    assert early.code == 64
    assert "1 story not done yet" in early.err
    assert made.run(**scripted).code == 0
    by_hand = ("exam", "--plain", "--trust", "--agent-script", str(made.folder / "script.yaml"))
    assert "Exam: write end-to-end tests" in made.ask(*by_hand, "--dry-run").out
    done = made.ask(*by_hand)
    assert done.code == 1, done.out + done.err
    assert made.outcomes() == [("exam", "accepted")]
    assert "stopped: exam — new tests fail; added" in done.out
    assert "`ralph run` works on the new stories" in done.out
    assert "0 differ" in made.ask("replay").out
    assert made.run(**script(made, EXAMINES, FINDS_NOTHING)).code == 0
    assert {event.grade for event in made.ended() if event.completes} == {"proven"}
    passed = made.ask(*by_hand)
    assert passed.code == 0, passed.out + passed.err
    assert made.outcomes() == [("exam", "accepted")]


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (["claim"], "no new test file was written"),
        ([write("tests/test_exam.py", "def test_x(:\n    pass\n")], "error of its own"),
        ([write("tests/test_exam.py", "import pytest\n\n\ndef test_x():\n    pytest.skip()\n")], "skipped"),
        ([write("lib/test_exam.py", "def test_x():\n    assert 0\n")], "does not run lib/test_exam.py"),
        ([*EXAMINES[:-1], {"crash": {"code": 3}}], "exit code 3"),
    ],
)
def test_a_round_without_a_result_is_undone_said_and_counted(tmp_path: Path, wrong: list[Any], why: str) -> None:
    made = Accepted(tmp_path, "plan.md", exam="end-of-run")
    done = made.run(**script(made, wrong))
    assert done.code == 0
    assert [mode for mode, _ in made.outcomes()] == ["implement", "exam", "exam"]
    assert why in made.ended()[1].headline
    row = next(line for line in done.out.splitlines() if line.startswith("  exam "))
    assert row.startswith("  exam       round 1: no result, ")
    assert why in row
    assert "add one" not in row, "that is for the session"
    assert any("the exam has no result" in note and why in note for note in notes(made)), notes(made)
    assert not made.git("status", "--porcelain", "--", "tests", "lib")
    assert len(plan_of(made).stories) == 1
    assert made.ask("exam", "--plain", "--trust", "--agent-script", str(made.folder / "script.yaml")).code == 1


def test_two_failing_files_become_two_stories_that_do_not_reject_each_other(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "plan.md", exam="end-of-run")
    other = "tests/test_exam_missing.py"
    both = [*EXAMINES[:-1], write(other, "from shop import quad\n\n\ndef test_quad():\n    assert quad(2) == 8\n")]
    quad = FIXED + "\n\ndef quad(x):\n    return 4 * x\n"
    only_quad = quad.replace(FIXED, RIGHT)
    scripted = script(made, both, FINDS_NOTHING)
    scripted["script"] |= {
        "US-002": [{"implement": [write("shop.py", only_quad), "claim"]}],
        "US-003": [{"implement": [write("shop.py", quad), "claim"]}],
    }
    done = made.run(**scripted)
    assert done.code == 0, done.out
    assert [(event.story, event.title, event.kind.value) for event in made.ended() if event.completes][1:] == [
        ("US-002", "Exam: make tests/test_exam_missing.py pass", "accepted"),
        ("US-003", "Exam: make test_word_of_three pass", "accepted"),
    ]


def test_a_commit_hook_that_refuses_the_tests_leaves_nothing_behind(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "plan.md", exam="end-of-run", exam_rounds=1)
    hook = made.root / ".git/hooks/pre-commit"
    hook.write_text("#!/bin/sh\n! git diff --cached --name-only | grep -q exam\n")
    hook.chmod(0o755)
    made.run(**script(made, EXAMINES))
    assert made.outcomes()[-1] == ("exam", "rejected")
    assert "pre-commit hook" in made.ended()[-1].headline
    assert not (made.root / FAILS).exists()
    assert len(plan_of(made).stories) == 1


def test_the_prompt_has_the_requirements_and_the_interface_and_no_history(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "plan.md")
    made.write("README.md", "# Shop\n\nCall `shop.triple`.\n")
    made.write("lib/cart.ts", "export function total(items: Item[]): number {\n  return secret(items)\n}\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "history_of_the_code")
    assert made.run("--exam", **script(made, EXAMINES, FINDS_NOTHING)).code == 0
    made.ask("learn", "a learning of the implementer")
    (page := next(iter(made.root.glob(".ralph/*/prd.md")), made.root / ".ralph/PRD-1/prd.md")).write_text(
        "# Shop\n\n<!-- Who is it\nfor? -->\n\nThe owner sees `<!-- prices -->` in the page.\n"
    )
    prompt = made.ask("prompt", "--mode", "exam").out
    assert "The owner sees `<!-- prices -->` in the page." in prompt
    assert "Who is it" not in prompt
    page.write_text("# Shop\n\n## Goals\n\n<!-- What is it for? -->\n")
    assert "## Goals" not in made.ask("prompt", "--mode", "exam").out, "nothing but the template"
    for part in ("### US-001", "The first line of the file names the columns", "Call `shop.triple`.", "def triple(x)"):
        assert part in prompt
    assert "export function total(items: Item[]): number" in prompt
    for part in ("secret(items)", "history_of_the_code", "a learning of the implementer", "Exam: make", "return 3"):
        assert part not in prompt


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_runner_that_names_no_files_still_tells_which_file_fails(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "plan.md", checks=["node --test"], exam="end-of-run")
    head = "const test = require('node:test'); const assert = require('node:assert'); const s = require('../shop');\n"

    def tests(name: str, value: int, expected: int) -> dict[str, Any]:
        text = f"{head}test('{name}', () => assert.strictEqual(s.triple({value}), {expected}));\n"
        return write(f"test/{name}.test.js", text)

    def code(result: str) -> dict[str, Any]:
        return write("shop.js", f"exports.triple = (x) => {result};\n")

    exams = [[tests("exam_large", 10, 0), tests("exam_small", 1, 3)], [tests("exam_again", 3, 9)]]
    anybody = [{"exam": each, "implement": [code("(x > 9 ? 0 : x * 3)"), "claim"]} for each in exams]
    first = [{"implement": [code("x * 3"), tests("own", 2, 6), "claim"]}]
    done = made.run(script={"US-001": first, "*": anybody})
    assert done.code == 0, done.out
    assert "the exam found 1 failing test, added as US-002; 1 new test passes" in done.out
    assert plan_of(made).stories[1].title == "Exam: make exam_large pass"
    assert plan_of(made).stories[1].verify == ("node --test test/exam_large.test.js",)


def test_a_cap_on_iterations_also_holds_for_the_exam(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "plan.md", exam="end-of-run")
    done = made.run("-n", "1", **script(made, FINDS_NOTHING))
    assert done.code == 1, done.out
    assert [mode for mode, _ in made.outcomes()] == ["implement"]
    assert made.run("-n", "1", **script(made, FINDS_NOTHING)).code == 0
    assert made.outcomes() == [("exam", "accepted")]


def test_the_next_run_asks_for_trust_in_the_new_check(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "plan.md")
    made.run(**script(made, EXAMINES))
    made.ask("exam", "--plain", "--trust", "--agent-script", str(made.folder / "script.yaml"))
    refused = made.ask("run", "--plain", "--agent-script", str(made.folder / "script.yaml"))
    assert refused.code >= 64
    assert FAILS in refused.err


def test_a_killed_exam_is_undone_and_repeated(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "plan.md", exam="end-of-run", exam_rounds=1)
    begun = made.start(**script(made, [*EXAMINES[:-1], {"run": "sleep 60"}]))
    deadline = time.monotonic() + 60
    while not (made.root / PASSES).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    begun.kill()
    begun.wait()
    done = made.run(**script(made, EXAMINES))
    assert done.code == 0, done.out
    assert made.outcomes() == [("exam", "accepted"), ("implement", "accepted")]
    assert [story.id for story in plan_of(made).stories] == ["US-001", "US-002"]


def test_without_a_check_there_is_no_exam_and_it_is_said(tmp_path: Path) -> None:
    made = Accepted(tmp_path, "feature", checks=[])
    made.run("--exam", **script(made, EXAMINES))
    assert [mode for mode, _ in made.outcomes()] == ["implement"]
    assert "no exam: no check would run its tests" in notes(made)
    refused = made.ask("exam", "--plain", "--trust")
    assert refused.code >= 64
    assert "no check is configured that could run the tests of an exam" in refused.err
