"""A person rejects or confirms a finding of a review, in every layout: what becomes of it, and of the story."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ralph.core.changes import SetFields
from ralph.core.errors import IllegalChange, RalphError, UsageError
from ralph.core.plan import Mode, State, Story
from ralph.core.ports import PlanRef
from ralph.core.review import (
    AT_CAP,
    Entry,
    Fate,
    Finding,
    Ledger,
    Reply,
    Review,
    ReviewStatus,
    hear,
    rejects_all,
)
from ralph.core.review import answer as fix
from ralph.core.select import mode_of
from ralph.plans.registry import LAYOUTS
from ralph.prompts.review import Matter, for_fix, for_review, how_to_fix
from ralph.state.places import plan_state
from ralph.workspace.find import store_for
from ralph.workspace.findings import Decided, decide
from ralph.workspace.stuck_stories import read_answers
from support.workspaces import story_id, workspace

NUMBER = 4
"""The first open story of a sample."""
LEAK = Finding("the file is never closed", "io.py:1", "high", evidence="lsof shows it")
NAME = Finding("the name says nothing", "io.py:2", "low")


@pytest.fixture
def env(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dict[str, str]:
    monkeypatch.setenv("RALPH_STATE_HOME", str(tmp_path / "state"))
    return {"RALPH_STATE_HOME": str(tmp_path / "state")}


@pytest.fixture(params=LAYOUTS.built_in())
def ref(request: pytest.FixtureRequest, tmp_path: Path) -> PlanRef:
    return workspace(tmp_path / "w", request.param)


@pytest.fixture
def tasks(tmp_path: Path) -> PlanRef:
    return workspace(tmp_path / "w", "tasks.json")


def ledger(*fates: Fate) -> Ledger:
    found = zip((LEAK, NAME), fates, strict=False)
    return Ledger(
        tuple(
            Entry(id=f"F{number}", finding=finding, fate=fate, reviewer="claude", review=1)
            for number, (finding, fate) in enumerate(found, 1)
        )
    )


def put(
    ref: PlanRef, env: dict[str, str], status: ReviewStatus | None, *fates: Fate, why: str = "", **more: Any
) -> str:
    name = story_id(ref.layout, NUMBER)
    store = store_for(ref, env)
    text = "- what the review says" if status is ReviewStatus.CHANGES_REQUESTED else ""
    review = more.pop("review", Review(status, 1, text))
    store.save(store.load(), [SetFields(name, {"ledger": ledger(*fates), "review": review} | more)], {name: why})
    return name


def story_of(ref: PlanRef, env: dict[str, str]) -> Story:
    story = store_for(ref, env).load().plan.story(story_id(ref.layout, NUMBER))
    assert story is not None
    return story


def reject(ref: PlanRef, env: dict[str, str], finding: str, reason: str = "the caller closes it") -> Decided:
    return decide(ref, story_id(ref.layout, NUMBER), finding, Fate.REJECTED, reason, env)


def confirm(ref: PlanRef, env: dict[str, str], finding: str, reason: str = "") -> Decided:
    return decide(ref, story_id(ref.layout, NUMBER), finding, Fate.OPEN, reason, env)


def test_without_an_open_finding_the_story_is_reviewed_and_not_fixed(ref: PlanRef, env: dict[str, str]) -> None:
    put(ref, env, ReviewStatus.CHANGES_REQUESTED, Fate.OPEN, Fate.OPEN)
    first = reject(ref, env, "F1")
    assert "goes to a fix next" in first.then
    story = story_of(ref, env)
    assert mode_of(story, review=True) is Mode.FIX
    assert "the file is never closed" not in story.review.feedback
    assert "the name says nothing" in story.review.feedback
    last = reject(ref, env, "f2")
    assert (last.finding, last.waits) == ("F2", False)
    assert "goes to a review next" in last.then
    story = story_of(ref, env)
    assert mode_of(story, review=True) is Mode.REVIEW
    assert (story.review.count, story.review.feedback, story.ledger.open) == (1, "", ())
    assert [entry.reason for entry in story.ledger.entries] == ["the caller closes it"] * 2


def test_a_reviewer_needs_new_evidence_for_what_the_user_rejected(tasks: PlanRef, env: dict[str, str]) -> None:
    put(tasks, env, ReviewStatus.CHANGES_REQUESTED, Fate.OPEN)
    reject(tasks, env, "F1")
    known = story_of(tasks, env).ledger
    again = hear(known, [LEAK], "claude", 2)
    assert (again.asked, again.refused, again.ledger.open) == ((), ("F1",), ())
    shown = hear(known, [Finding(LEAK.text, id="F1", evidence="ulimit -n 20 fails in test_many")], "claude", 2)
    assert shown.asked == ("F1",)
    assert not shown.ledger.entries[0].is_confirmed, "the user has not said yet that it is a problem"


def test_what_a_fix_rejected_is_open_again_once_it_is_confirmed(ref: PlanRef, env: dict[str, str]) -> None:
    put(ref, env, ReviewStatus.NEEDS_REVIEW, Fate.REJECTED, Fate.FIXED)
    assert "goes to a fix next" in confirm(ref, env, "F1", "it leaks in production").then
    story = story_of(ref, env)
    assert mode_of(story, review=True) is Mode.FIX
    assert [entry.fate for entry in story.ledger.entries] == [Fate.OPEN, Fate.FIXED]
    assert "the file is never closed" in story.review.feedback


def test_a_fix_cannot_reject_what_the_user_confirmed(tasks: PlanRef, env: dict[str, str]) -> None:
    put(tasks, env, ReviewStatus.NEEDS_REVIEW, Fate.REJECTED, Fate.CLOSED)
    confirm(tasks, env, "F1", "it leaks in production")
    known = story_of(tasks, env).ledger
    turned_down = [Reply("F1", Fate.REJECTED, "it is fine")]
    after, silent = fix(known, turned_down)
    assert (silent, [entry.id for entry in after.open]) == (("F1",), ["F1"])
    assert not rejects_all(known, turned_down), "a fix that changes nothing is not accepted"
    after, silent = fix(known, [Reply("F1", Fate.FIXED)])
    assert (silent, after.open) == ((), ())
    assert hear(after, [], "claude", 2).ledger.entries[0].fate is Fate.CLOSED, "once it is fixed, a review closes it"
    assert hear(known, [], "claude", 2).ledger.open, "an approval does not close what nobody fixed"
    (prompt,) = for_fix(known)
    assert "The user confirmed it: it leaks in production. It cannot be rejected." in prompt
    assert "rejected" not in how_to_fix(known)[0]
    assert "open, confirmed by the user: it leaks" in "".join(for_review(Matter(), known))


def test_a_confirmed_finding_reopens_a_finished_story(ref: PlanRef, env: dict[str, str]) -> None:
    approved = Review(ReviewStatus.APPROVED, 1, "")
    put(ref, env, None, Fate.CLOSED, review=approved, state=State.DONE, notes="done", grade="reviewed")
    assert "open again" in confirm(ref, env, "F1").then
    story = story_of(ref, env)
    assert (story.state, story.review.status, story.grade) == (State.TODO, ReviewStatus.CHANGES_REQUESTED, "")


def test_a_story_approved_with_open_findings_is_done_once_they_are_rejected(ref: PlanRef, env: dict[str, str]) -> None:
    approved = Review(ReviewStatus.APPROVED, 5, f"{AT_CAP} the file is never closed")
    put(ref, env, None, Fate.OPEN, review=approved, state=State.DONE, notes="done")
    assert "no finding is open" in reject(ref, env, "F1").then
    story = story_of(ref, env)
    assert (story.state, story.review) == (State.DONE, Review(ReviewStatus.APPROVED, 5))


def test_a_decision_answers_the_question_that_the_reviews_ended_with(ref: PlanRef, env: dict[str, str]) -> None:
    question = "two reviews in a row request the same changes: F1"
    name = put(ref, env, ReviewStatus.CHANGES_REQUESTED, Fate.OPEN, state=State.BLOCKED, why=f"asks: {question}")
    reject(ref, env, "F1")
    assert mode_of(story_of(ref, env), review=True) is Mode.REVIEW
    assert story_of(ref, env).is_open
    known = read_answers(plan_state(ref, env)).of(name)
    assert known == (f"“{question}” — finding F1 is rejected: the caller closes it",)


def test_a_failed_story_stays_failed_and_the_way_back_is_named(tasks: PlanRef, env: dict[str, str]) -> None:
    put(tasks, env, ReviewStatus.CHANGES_REQUESTED, Fate.OPEN, state=State.FAILED, why="it failed")
    assert "`ralph retry US-004`" in reject(tasks, env, "F1").then
    assert story_of(tasks, env).state is State.FAILED


@pytest.mark.parametrize(
    ("finding", "fate", "reason", "error", "words"),
    [
        ("F9", Fate.REJECTED, "no", UsageError, "has no finding 'F9'"),
        ("F1", Fate.REJECTED, " \n", UsageError, "the reason is empty"),
        ("F1", Fate.REJECTED, "\x1b[31mred", UsageError, "control character"),
        ("F1", Fate.REJECTED, "x" * 30_000, UsageError, "the limit is 20,000"),
        ("F2", Fate.REJECTED, "no", IllegalChange, "is closed"),
        ("F1", Fate.FIXED, "no", IllegalChange, "cannot be set to fixed"),
    ],
)
def test_what_cannot_be_decided_is_said_and_changes_nothing(
    tasks: PlanRef, env: dict[str, str], finding: str, fate: Fate, reason: str, error: type[RalphError], words: str
) -> None:
    name = put(tasks, env, ReviewStatus.CHANGES_REQUESTED, Fate.OPEN, Fate.CLOSED)
    before = story_of(tasks, env)
    with pytest.raises(error, match=words) as raised:
        decide(tasks, name, finding, fate, reason, env)
    assert raised.value.hint
    assert story_of(tasks, env) == before


def test_a_decision_is_made_once(tasks: PlanRef, env: dict[str, str]) -> None:
    put(tasks, env, ReviewStatus.CHANGES_REQUESTED, Fate.OPEN)
    confirm(tasks, env, "F1")
    with pytest.raises(IllegalChange, match="confirmed by you already"):
        confirm(tasks, env, "F1")
    reject(tasks, env, "F1")
    with pytest.raises(IllegalChange, match="rejected by you already"):
        reject(tasks, env, "F1")
    with pytest.raises(UsageError, match="no story 'US-4'"):
        decide(tasks, "US-4", "F1", Fate.OPEN, "", env)
