"""The prompt, in each layout and mode."""

from __future__ import annotations

import re
from collections import Counter

import msgspec
import pytest

from ralph.core.errors import BadData
from ralph.core.evidence import CheckResult
from ralph.core.learning import Learning
from ralph.core.plan import Mode, Story
from ralph.core.review import Entry, Fate, Finding, Ledger, Review, ReviewStatus
from ralph.plans.registry import LAYOUTS, traits
from ralph.prompts.review import Matter
from ralph.prompts.session import Briefing, Count, Notes, Paths, Template, bounded, build, system_context
from ralph.prompts.templates import library

STORY = Story(
    id="US-003",
    title="Log in & out",
    description="People log in.",
    criteria=("POST /login answers 200", "a wrong password answers 401"),
    verify=("pytest tests/test_login.py",),
)


GROUPS = {"count": Count, "paths": Paths, "notes": Notes, "template": Template}
SPELLED = {"template": "text", "template_name": "name", "learnings_place": "file", "learnings_tokens": "tokens"}
IN_GROUP = {
    **dict.fromkeys(("iteration", "max_iterations", "attempt", "done", "total"), "count"),
    **dict.fromkeys(("plan_path", "progress_path", "prd_path", "request_path"), "paths"),
    **dict.fromkeys(("learnings", "learnings_place", "learnings_tokens", "cue", "lasting"), "notes"),
    **dict.fromkeys(("template", "template_name"), "template"),
}


def brief_of(fields: dict[str, object]) -> Briefing:
    """A briefing from flat fields."""
    groups: dict[str, dict[str, object]] = {name: {} for name in GROUPS}
    own: dict[str, object] = {}
    for name, value in fields.items():
        target = groups[IN_GROUP[name]] if name in IN_GROUP else own
        target[SPELLED.get(name, name.removesuffix("_path"))] = value
    made = {name: GROUPS[name](**values) for name, values in groups.items()}
    return Briefing(**own, **made)  # type: ignore[arg-type]


def briefing(layout: str = "tasks.json", **fields: object) -> Briefing:
    basic = {
        "traits": traits(layout),
        "mode": Mode.IMPLEMENT,
        "story": STORY,
        "iteration": 4,
        "max_iterations": 20,
        "attempt": 1,
        "plan_path": ".ralph/x/plan",
        "progress_path": ".ralph/x/progress",
        "prd_path": ".ralph/x/prd.md",
        "request_path": ".ralph/x/request.json",
        "name": "7",
        "checks": ("pytest -q",),
    }
    return brief_of(basic | fields)


@pytest.mark.parametrize("layout", sorted(LAYOUTS.built_in()))
@pytest.mark.parametrize("mode", list(Mode))
def test_every_layout_names_the_story_the_checks_and_the_way_to_answer(layout: str, mode: Mode) -> None:
    prompt = build(briefing(layout, mode=mode))
    told = prompt.text + prompt.system
    assert "US-003" in told
    assert "POST /login answers 200" in told
    assert "`pytest -q`" in told
    assert "`.ralph/x/request.json` (`$RALPH_REQUEST_FILE`)" in told
    assert "{{" not in told


def test_the_seeds_variables_are_filled_in_and_special_characters_stay() -> None:
    names = ("STORY_ID", "STORY_TITLE", "PLAN_PATH", "PROGRESS_PATH", "PRD_NUMBER", "RALPH_ITERATION")
    template = "|".join(f"{{{{{name}}}}}" for name in names) + "/{{RALPH_MAX_ITERATIONS}}"
    prompt = build(briefing("plan.md", template=template, template_name="mine.md"))
    assert prompt.text.startswith("US-003|Log in & out|.ralph/x/plan|.ralph/x/progress|7|4/20\n")


def test_an_unknown_variable_is_an_error_with_line_and_column() -> None:
    with pytest.raises(BadData, match=r"mine.md:2:7: unknown variable STORYID") as caught:
        build(briefing(template="hello\nabc {{STORYID}}", template_name="mine.md"))
    assert "STORY_ID" in caught.value.hint


def test_the_users_own_template_wins() -> None:
    assert build(briefing(template="Do it.")).text.startswith("Do it.\n")


def test_the_story_block_of_the_plan_is_given_as_it_is() -> None:
    text = build(briefing("plan.md", story_block="### US-003 Log in\n\nExactly these words.")).text
    assert "Exactly these words." in text
    assert "Acceptance criteria:" not in text
    assert text.count("US-003 Log in") == 0, "the heading of the block is not repeated"
    assert text.startswith("# US-003: Log in & out\n\nExactly these words.")


def test_feature_files_are_attached_first() -> None:
    prompt = build(briefing("feature", attachments=(".ralph/f/prd.json", ".ralph/f/progress.txt", ".ralph/f/specs/")))
    assert prompt.text.startswith("@.ralph/f/prd.json\n@.ralph/f/progress.txt\n@.ralph/f/specs/\n\n")


def test_the_steps_layout_gets_a_bounded_system_context() -> None:
    long = msgspec.structs.replace(STORY, description="word " * 2000)
    learnings = tuple(Learning(text=f"fact {n} about logging in", curated=True) for n in range(200))
    memory = {"learnings": learnings, "learnings_tokens": 1500, "learnings_place": ".ralph/learnings.md"}
    context = system_context(briefing("steps", story=long, done=2, total=6, **memory))
    assert len(context) <= 2500
    assert context.startswith("Loop 4 of at most 20. Tasks done: 2 of 6.")
    assert "Current task: US-003" in context
    assert "- fact 199 about logging in" in context
    assert "more, not about this story: `ralph memory --search WORDS`." in context


def test_a_first_attempt_is_not_numbered_and_has_no_result() -> None:
    noted = build(briefing(attempt=1, feedback="- in the previous session, on US-002: b.py was restored")).text
    assert "## Notes on the last session\n\n- in the previous session, on US-002: b.py was restored" in noted
    retried = build(briefing(attempt=1, feedback="- the tests failed")).text
    assert "## Result of the last session\n\n- the tests failed" in retried
    assert "the last session" not in build(briefing(attempt=1)).text
    review = build(briefing(attempt=2, mode=Mode.REVIEW, feedback="- the reviewer gave no verdict")).text
    assert "This is review 2.\n\n- the reviewer" in review


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


ASK = ('{"ask"', ".ralph/WAITING")
MATTER = Matter(
    stat=" app.py | 2 +-",
    diff="-old line\n+new line",
    ranges=("abc..def",),
    checks=(CheckResult("pytest", "pytest -q", passed=True, code=0, seconds=1),),
    doubts=("a test was removed",),
    lens="## Focus of this review: tests\n\nLook at the tests.",
)
LEDGER = Ledger(
    (
        Entry(id="F1", finding=Finding("the handle is never closed", "app.py:3", "high")),
        Entry(id="F2", finding=Finding("no test fails"), fate=Fate.FIXED, reason="added one"),
    )
)
REVIEWED = msgspec.structs.replace(
    STORY,
    notes="The form is in login.py.",
    review=Review(ReviewStatus.CHANGES_REQUESTED, 1, "- F1 [high] app.py:3: the handle is never closed"),
    ledger=LEDGER,
)
FULL: dict[str, object] = {
    "story": REVIEWED,
    "matter": MATTER,
    "checks": ("pytest -q", "pytest tests/test_login.py"),
    "rules": ("These files are protected; edits to them are reverted: `tests/**`",),
    "feedback": "- check 'pytest' failed with exit code 1\n\n```\nAssertionError: 500 != 200\n```",
    "attempt": 2,
    "answers": ("“Which database?” — PostgreSQL",),
    "guidance": ("Use the existing session module.",),
    "learnings": (Learning(text="the server listens on port 8080", date="2026-01-01"),),
    "learnings_tokens": 1500,
    "learnings_place": ".ralph/x/progress",
    "lasting": "CLAUDE.md",
    "review": True,
}
MODES = (Mode.IMPLEMENT, Mode.REVIEW, Mode.FIX)


def full(layout: str, mode: Mode, **fields: object) -> str:
    prompt = build(briefing(layout, mode=mode, **(FULL | fields)))
    return f"{prompt.system}\n\n{prompt.text}"


def sentences(text: str) -> list[str]:
    """Sentences, list items and table rows of three words or more, without their markup."""
    blocks = re.split(r"\n\s*\n|\n\s*(?:[-*]|\d+\.)\s", text)
    found = (" ".join(part.split()) for block in blocks for part in re.split(r"(?<=[.:!?])\s+", block))
    return [part for part in found if len(part.split()) > 2]


@pytest.mark.parametrize("template", ["", "tdd"])
@pytest.mark.parametrize("layout", sorted(LAYOUTS.built_in()))
@pytest.mark.parametrize("mode", MODES)
def test_no_sentence_is_said_twice(layout: str, mode: Mode, template: str) -> None:
    own = {"template": library("feature-prompt-tdd"), "template_name": "prompt.md"} if template else {}
    counted = Counter(sentences(full(layout, mode, **own)))
    assert [sentence for sentence, count in counted.items() if count > 1] == []
    assert len(counted) > 15


@pytest.mark.parametrize("layout", sorted(LAYOUTS.built_in()))
@pytest.mark.parametrize("mode", MODES)
def test_the_story_comes_first_and_the_report_last(layout: str, mode: Mode) -> None:
    told = full(layout, mode)
    order = ["POST /login answers 200", "## Steps" if layout != "plan.md" or mode is not Mode.IMPLEMENT else "## Rules"]
    places = [told.index(part) for part in (*order, "## Checks", "## Report")]
    assert places == sorted(places)
    assert told.index("AssertionError: 500 != 200") < places[1], "the failing output belongs to the story"


@pytest.mark.parametrize("layout", sorted(LAYOUTS.built_in()))
@pytest.mark.parametrize("mode", MODES)
def test_there_is_one_way_to_claim_and_one_way_to_ask(layout: str, mode: Mode) -> None:
    told = full(layout, mode)
    assert told.count("RALPH_REQUEST_FILE") == 1
    assert told.count("JSON object") == 1
    for other in ('"passes": true', '"reviewStatus":', "<promise>", "COMPLETE"):
        assert other not in told
    own, foreign = ASK if layout != "spec.md" else reversed(ASK)
    assert told.count(own) == 1
    assert foreign not in told
    assert "a test and the story contradict each other. Asking loses nothing." in told


@pytest.mark.parametrize("layout", sorted(LAYOUTS.built_in()))
@pytest.mark.parametrize("template", ["", "Implement the story.", "Story {{STORY_ID}}:\n\n{{STORY}}\n\nGo."])
def test_a_review_says_first_that_it_is_one(layout: str, template: str) -> None:
    told = build(briefing(layout, mode=Mode.REVIEW, template=template, template_name="prompt.md")).text
    expected = told.index("This session is a review")
    assert told[:120].lower().count("review") >= 1
    if "Implement" in template:
        assert expected < told.index("Implement the story.")
        assert told.startswith("Review US-003. This session is a review")


def test_shell_variables_of_a_prompt_are_filled_in() -> None:
    template = "Iteration $RALPH_ITERATION of ${RALPH_MAX_ITERATIONS}; not $RALPH_ITERATIONS nor $HOME"
    text = build(briefing(template=template, template_name="prompt.md")).text
    assert text.startswith("Iteration 4 of 20; not $RALPH_ITERATIONS nor $HOME\n")


def test_a_story_too_long_for_the_system_prompt_is_whole_in_the_prompt() -> None:
    long = msgspec.structs.replace(STORY, description="word " * 2000)
    prompt = build(briefing("steps", story=long))
    assert "word word" not in prompt.system
    assert "word " * 1999 in prompt.text
    assert "POST /login" in prompt.text


def test_a_step_names_its_bead() -> None:
    step = msgspec.structs.replace(STORY, ref="TASK-abc")
    assert "Bead: TASK-abc\n" in build(briefing("spec.md", story=step)).text


def test_setup_has_its_own_template_and_no_story() -> None:
    text = build(briefing("steps", mode=Mode.SETUP, story=None)).text
    assert "US-003" not in text
    assert len(text) > 200
