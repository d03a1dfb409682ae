"""What an agent is told, in each layout."""

from __future__ import annotations

import msgspec
import pytest

from ralph.core.errors import BadData
from ralph.core.learning import Learning
from ralph.core.plan import Mode, Review, ReviewStatus, Story
from ralph.prompts.building import LIBRARY, Briefing, bounded, build, system_context

STORY = Story(
    id="US-003",
    title="Log in & out",
    description="People log in.",
    criteria=("POST /login answers 200", "a wrong password answers 401"),
    verify=("pytest tests/test_login.py",),
)


def briefing(layout: str = "tasks.json", **fields: object) -> Briefing:
    basic = {
        "layout": layout,
        "mode": Mode.IMPLEMENT,
        "story": STORY,
        "iteration": 4,
        "max_iterations": 20,
        "attempt": 1,
        "plan_path": ".ralph/x/plan",
        "progress_path": ".ralph/x/progress",
        "prd_path": ".ralph/x/prd.md",
        "name": "7",
        "checks": ("pytest -q",),
    }
    return Briefing(**(basic | fields))  # type: ignore[arg-type]


@pytest.mark.parametrize("layout", sorted(LIBRARY))
@pytest.mark.parametrize("mode", list(Mode))
def test_every_layout_names_the_story_the_checks_and_the_way_to_answer(layout: str, mode: Mode) -> None:
    prompt = build(briefing(layout, mode=mode))
    told = prompt.text + prompt.system
    assert "US-003" in told
    assert "POST /login answers 200" in told
    assert "`pytest -q`" in told
    assert "RALPH_REQUEST_FILE" in told
    assert "{{" not in told


def test_the_seeds_variables_are_filled_in_and_special_characters_stay() -> None:
    names = ("STORY_ID", "STORY_TITLE", "PLAN_PATH", "PROGRESS_PATH", "PRD_NUMBER", "RALPH_ITERATION")
    template = "|".join(f"{{{{{name}}}}}" for name in names) + "/{{RALPH_MAX_ITERATIONS}}"
    prompt = build(briefing("plan.md", template=template, template_name="mine.md"))
    assert prompt.text.startswith("US-003|Log in & out|.ralph/x/plan|.ralph/x/progress|7|4/20\n")


def test_an_unknown_variable_is_an_error_with_line_and_column() -> None:
    with pytest.raises(BadData, match=r"mine.md:2:7: there is no variable STORYID") as caught:
        build(briefing(template="hello\nabc {{STORYID}}", template_name="mine.md"))
    assert "STORY_ID" in caught.value.hint


def test_the_users_own_template_wins() -> None:
    assert build(briefing(template="Do it.")).text.startswith("Do it.\n")


def test_the_story_block_of_the_plan_is_given_as_it_is() -> None:
    text = build(briefing("plan.md", story_block="### US-003 Log in\n\nExactly these words.")).text
    assert "Exactly these words." in text
    assert "Acceptance criteria:" not in text


def test_feature_files_are_attached_first() -> None:
    prompt = build(briefing("feature", attachments=(".ralph/f/prd.json", ".ralph/f/progress.txt", ".ralph/f/specs/")))
    assert prompt.text.startswith("@.ralph/f/prd.json\n@.ralph/f/progress.txt\n@.ralph/f/specs/\n\n")


def test_the_steps_layout_gets_a_bounded_system_context() -> None:
    long = msgspec.structs.replace(STORY, description="word " * 2000)
    learnings = tuple(Learning(text=f"fact {n} about logging in", date="2026-01-01") for n in range(200))
    memory = {"learnings": learnings, "learnings_tokens": 1500, "learnings_place": ".ralph/learnings.md"}
    context = system_context(briefing("steps", story=long, done=2, total=6, **memory))
    assert len(context) <= 2500
    assert context.startswith("Loop 4 of at most 20. Tasks done: 2 of 6.")
    assert "Current task: US-003" in context
    assert "- fact 199 about logging in (2026-01-01)" in context
    assert "more: `ralph learnings --search WORDS` finds them, all are in `.ralph/learnings.md`." in context


def test_why_the_last_attempt_failed_is_told_and_bounded() -> None:
    text = build(briefing(attempt=2, feedback="FIRST LINE\n" + "x" * 50_000 + "\nLAST LINE")).text
    assert "This is attempt 2" in text
    assert "FIRST LINE" in text
    assert "LAST LINE" in text
    assert "characters left out" in text
    assert len(text) < 20_000
    assert "\x1b" not in bounded("\x1b[31mred")


def test_answers_and_review_feedback_reach_the_prompt() -> None:
    reviewed = msgspec.structs.replace(STORY, review=Review(ReviewStatus.CHANGES_REQUESTED, 1, "handle 500s"))
    text = build(briefing(mode=Mode.FIX, story=reviewed, answers=("“Which?” — PostgreSQL",))).text
    assert "handle 500s" in text
    assert "“Which?” — PostgreSQL" in text


def test_a_reviewer_is_not_told_how_to_claim() -> None:
    text = build(briefing(mode=Mode.REVIEW)).text
    assert '{"claim"' not in text
    assert '{"ask"' in text


def test_setup_has_its_own_template_and_no_story() -> None:
    text = build(briefing("steps", mode=Mode.SETUP, story=None)).text
    assert "US-003" not in text
    assert len(text) > 200
