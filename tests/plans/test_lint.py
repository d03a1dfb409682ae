"""What is unwise in a plan, and where it stands in the file."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ralph.core.plan import Plan, State, Story
from ralph.core.problems import Place, Problem, Severity
from ralph.core.review import Review, ReviewStatus
from ralph.plans.lint import Places, lint
from ralph.plans.registry import LAYOUTS, layout
from support.plans import sample

GOOD = Story(id="US-001", title="Export", criteria=("`export` writes a.csv",), description="One. Two. Three.", line=3)


def found(*stories: Story, has_checks: bool = True, **fields: Any) -> list[Problem]:
    plan = msgspec.structs.replace(Plan(name="p", stories=stories or (GOOD,)), **fields)
    return lint(plan, Places(plan, b"", "plan.md"), has_checks=has_checks)


def change(**fields: Any) -> Story:
    return msgspec.structs.replace(GOOD, **fields)


def codes(problems: list[Problem]) -> list[str]:
    return [problem.code for problem in problems]


def test_a_good_plan_has_no_problem() -> None:
    assert found() == []


@pytest.mark.parametrize("name", LAYOUTS.built_in())
def test_the_samples_are_good(name: str) -> None:
    plan = layout(name).parse(sample(name, 9), "f")
    assert lint(plan, Places(plan, sample(name, 9), "f"), has_checks=True) == []


@pytest.mark.parametrize(
    ("story", "code"),
    [
        (change(title=" "), "no-title"),
        (change(criteria=()), "no-criteria"),
        (change(criteria=("It works as expected",)), "vague-criterion"),
        (change(criteria=("x is 1",) * 9), "too-large"),
        (change(description="One. Two. Three. Four."), "too-large"),
        (change(description="and then " * 201), "too-large"),
        (change(criteria=("`a` prints " + "b " * 60,) * 8), "too-large"),
        (change(touches=("src/a.py", "/etc/hosts")), "bad-touches"),
        (change(touches=("../other/a.py",)), "bad-touches"),
        (change(touches=("src\\a.py",)), "bad-touches"),
    ],
)
def test_what_costs_iterations_is_a_warning(story: Story, code: str) -> None:
    [problem] = found(story)
    assert (problem.code, problem.severity, problem.story) == (code, Severity.WARNING, "US-001")
    assert problem.where == Place("plan.md", 3)
    assert problem.hint


def test_eight_criteria_and_three_sentences_are_not_too_many() -> None:
    assert found(change(criteria=("x is 1",) * 8, description="One. Two. Three")) == []


def test_a_done_story_is_left_alone() -> None:
    assert found(change(title="", criteria=("works fine",) * 20, state=State.DONE)) == []


@pytest.mark.parametrize("fields", [{"ref": "TASK-1"}, {"is_review_step": True}])
def test_criteria_may_be_elsewhere(fields: dict[str, Any]) -> None:
    assert found(change(criteria=(), **fields)) == []


def test_every_vague_criterion_is_named() -> None:
    problems = found(change(criteria=("Works fine", "`a` prints 1", "Looks good")))
    assert codes(problems) == ["vague-criterion"] * 2
    assert "'Looks good' cannot be checked" in problems[1].message


def test_odd_ids_and_texts_are_fit_for_a_terminal() -> None:
    nasty = change(id="a\x1b[2J b", criteria=("works well \x1b[31m" + "x" * 500,) * 9)
    for problem in found(nasty):
        assert (problem.message + problem.hint).isprintable()
        assert len(problem.message) < 250
    assert "'a b'" in found(nasty)[-1].hint


# --- checks ----------------------------------------------------------------------------------------------------------


def test_without_checks_only_a_review_can_prove_a_story() -> None:
    [problem] = found(has_checks=False)
    assert (problem.code, problem.severity) == ("no-checks", Severity.WARNING)
    assert "only a review can prove a story" in problem.message


def test_a_story_with_a_check_of_its_own_is_proven() -> None:
    proven, other = change(verify=("make",)), change(id="US-002")
    assert found(proven, has_checks=False) == []
    [problem] = found(proven, other, has_checks=False)
    assert "no check covers US-002" in problem.message


def test_checks_of_the_plan_are_enough() -> None:
    assert found(has_checks=False, verify=("make",)) == []


def test_a_reviewed_plan_tells_the_agent_what_to_run() -> None:
    [problem] = found(reviewed=True, has_checks=False)
    assert "the agent does not know what to run" in problem.message
    assert '"verifyCommands" of this plan' in problem.hint
    assert "`checks:` in .ralph/config.yaml" in problem.hint
    assert found(reviewed=True, has_checks=False, verify=("make",)) == []
    assert found(reviewed=True, has_checks=True) == [], "the prompt lists those"


# --- review fields ---------------------------------------------------------------------------------------------------

BROKEN = {
    "passes without approval": change(notes="Done.", state=State.DONE, review=Review(ReviewStatus.NEEDS_REVIEW)),
    "approved without passes": change(review=Review(ReviewStatus.APPROVED, 1)),
    "no feedback": change(review=Review(ReviewStatus.CHANGES_REQUESTED, 1)),
    "fewer than none": change(review=Review(ReviewStatus.NEEDS_REVIEW, -1)),
}


@pytest.mark.parametrize("story", BROKEN.values(), ids=BROKEN)
def test_review_fields_that_contradict_each_other_are_errors(story: Story) -> None:
    [problem] = found(story, reviewed=True, verify=("make",))
    assert (problem.code, problem.severity, problem.story) == ("review-fields", Severity.ERROR, "US-001")
    assert found(story) == []


def test_more_reviews_than_the_cap_are_told_and_no_error() -> None:
    """The cap was higher once, or a person let it go on."""
    [problem] = found(change(review=Review(ReviewStatus.NEEDS_REVIEW, 99)), reviewed=True, verify=("make",))
    assert (problem.code, problem.severity) == ("many-reviews", Severity.WARNING)


# --- where -----------------------------------------------------------------------------------------------------------


def lint_json(name: str, document: dict[str, Any], *, has_checks: bool = True) -> list[Problem]:
    source = json.dumps(document, indent=2).encode()
    plan = layout(name).parse(source, "f.json")
    return lint(plan, Places(plan, source, "f.json"), has_checks=has_checks)


def test_a_problem_in_json_has_a_line_and_a_path() -> None:
    story = {
        "id": "a", "title": "t", "acceptanceCriteria": ["`a` prints 1", "Works fine"], "priority": 1, "passes": False,
        "reviewStatus": None, "reviewCount": 9, "reviewFeedback": "",
    }  # fmt: skip
    document = {"project": "p", "branchName": "b", "description": "", "verifyCommands": [], "userStories": [story]}
    assert [str(problem.where) for problem in lint_json("tasks.json", document, has_checks=False)] == [
        "f.json:5:21 (verifyCommands)",
        "f.json:17:22 (userStories[0].reviewCount)",
        "f.json:12:9 (userStories[0].acceptanceCriteria[1])",
    ]


@pytest.mark.parametrize("key", ["acceptanceCriteria", "acceptance_criteria", "criteria"])
def test_the_path_is_spelled_as_the_file_spells_it(key: str) -> None:
    tasks = [{"id": n, "name": "t", "status": "todo", key: ["Works fine"]} for n in (1, 2)]
    problems = lint_json("steps", {"other": [1, 2], "tasks": tasks})
    assert [problem.where.path for problem in problems] == [f"tasks[0].{key}[0]", f"tasks[1].{key}[0]"]


def test_what_is_missing_is_where_it_should_be() -> None:
    [problem] = lint_json("steps", {"tasks": [{"id": 1, "name": "t", "status": "todo"}]})
    assert str(problem.where) == "f.json:3:5 (tasks[0])"


def test_a_byte_order_mark_does_not_shift_anything() -> None:
    source = b'\xef\xbb\xbf{"tasks": [{"id": 1, "name": "t", "status": "todo"}]}'
    plan = layout("steps").parse(source, "f")
    assert str(Places(plan, source, "f").story(0)) == "f:1:12 (tasks[0])"


@pytest.mark.parametrize("source", [b"", b"[]", b"{", b'{"tasks": 1}'])
def test_a_file_of_another_kind_still_has_a_place(source: bytes) -> None:
    plan = Plan(name="p", stories=(Story(id="x", title="t"),))
    assert str(Places(plan, source, "f").story(0, "title")) == "f (x)"
    assert str(Places(plan, source, "f").whole("verifyCommands")).startswith("f")


def test_a_problem_in_markdown_has_the_line_of_its_story() -> None:
    source = b"# P\n\n- [ ] US-001: One\n- [ ] US-002: Two\n"
    plan = layout("plan.md").parse(source, "plan.md")
    problems = lint(plan, Places(plan, source, "plan.md"), has_checks=True)
    assert [str(problem.where) for problem in problems] == ["plan.md:3", "plan.md:4"]


def test_a_story_done_in_a_run_without_reviews_is_only_a_warning() -> None:
    [problem] = found(change(state=State.DONE, notes="Done."), reviewed=True, verify=("make",))
    assert (problem.code, problem.severity) == ("unreviewed", Severity.WARNING)
