"""Every row of the review table: what each mode may change, and what it may not."""

from __future__ import annotations

import msgspec
import pytest

from ralph.core.errors import IllegalChange
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.review import Review, ReviewStatus
from ralph.core.transitions import MOVES, broken_invariants, check_move, illegal_transitions

NEEDS, CHANGES, APPROVED = ReviewStatus.NEEDS_REVIEW, ReviewStatus.CHANGES_REQUESTED, ReviewStatus.APPROVED


def story(
    status: ReviewStatus | None = None, *, passes: bool = False, count: int = 0, feedback: str = "", id: str = "A"
) -> Story:
    state = State.DONE if passes else State.TODO
    return Story(id=id, title="t", state=state, review=Review(status, count, feedback), notes="n")


def plan(*stories: Story) -> Plan:
    return Plan(name="p", stories=stories, reviewed=True)


@pytest.mark.parametrize(
    ("one", "wrong"),
    [
        (story(None, passes=True), "not 'approved'"),
        (story(NEEDS, passes=True), "not 'approved'"),
        (story(CHANGES, passes=True, feedback="x"), "not 'approved'"),
        (story(APPROVED, passes=True, count=1), ""),
        (story(CHANGES), "feedback is required"),
        (story(APPROVED), "out of sync"),
        (story(count=-1), "between 0 and 6"),
        (story(NEEDS, count=7), "between 0 and 6"),
        (story(NEEDS, count=6), ""),
    ],
)
def test_review_fields_must_agree_with_each_other(one: Story, wrong: str) -> None:
    found = broken_invariants(plan(one), review_cap=5)
    assert [v for v in found if wrong in v.message] if wrong else not found


@pytest.mark.parametrize(
    ("mode", "before", "after", "wrong"),
    [
        (Mode.IMPLEMENT, story(), story(passes=True), "cannot set passes"),
        (Mode.IMPLEMENT, story(), story(APPROVED), "cannot approve"),
        (Mode.IMPLEMENT, story(), story(count=1), "cannot change reviewCount"),
        (Mode.IMPLEMENT, story(), story(feedback="great"), "cannot change reviewFeedback"),
        (Mode.IMPLEMENT, story(), story(NEEDS), ""),
        (Mode.IMPLEMENT, story(APPROVED, passes=True), story(), "cannot set passes"),
        (Mode.IMPLEMENT, story(NEEDS), story(), "only go from null to needs_review"),
        (Mode.REVIEW, story(NEEDS, count=1), story(APPROVED, passes=True, count=2), ""),
        (Mode.REVIEW, story(NEEDS, count=1), story(CHANGES, count=2, feedback="the limit is off by one"), ""),
        (Mode.REVIEW, story(NEEDS, count=1), story(NEEDS, count=1), "must increment reviewCount"),
        (Mode.REVIEW, story(NEEDS, count=1), story(APPROVED, passes=True, count=1), "must increment reviewCount"),
        (Mode.REVIEW, story(NEEDS, count=1), story(APPROVED, passes=True, count=3), "must increment reviewCount"),
        (Mode.REVIEW, story(NEEDS), story(APPROVED, count=1), "has passes true"),
        (Mode.REVIEW, story(NEEDS), story(CHANGES, count=1), "say what has to change"),
        (Mode.REVIEW, story(), story(APPROVED, passes=True, count=1), "only a story that needs review"),
        (
            Mode.FIX,
            story(CHANGES, count=1, feedback="x"),
            story(CHANGES, passes=True, count=1, feedback="x"),
            "cannot approve",
        ),
        (Mode.FIX, story(CHANGES, count=1, feedback="x"), story(NEEDS, count=1), ""),
        (Mode.FIX, story(CHANGES, count=1, feedback="x"), story(NEEDS, count=2), "cannot change reviewCount"),
        (Mode.FIX, story(CHANGES, count=1, feedback="x"), story(APPROVED, passes=True, count=1), "cannot approve"),
        (Mode.FIX, story(CHANGES, count=1, feedback="x"), story(NEEDS, count=1, feedback="x"), "clear the feedback"),
    ],
)
def test_each_mode_allows_its_own_transitions_only(mode: Mode, before: Story, after: Story, wrong: str) -> None:
    found = illegal_transitions(plan(before), plan(after), mode)
    assert any(wrong in v.message for v in found) if wrong else not found, found


def test_a_review_may_only_touch_one_story() -> None:
    before = plan(story(NEEDS), story(NEEDS, id="B"))
    after = plan(story(APPROVED, passes=True, count=1), story(APPROVED, passes=True, count=1, id="B"))
    assert "only change the one story" in illegal_transitions(before, after, Mode.REVIEW)[0].message


def test_one_story_per_implement_iteration() -> None:
    before = plan(story(), story(id="B"))
    after = plan(story(NEEDS), story(NEEDS, id="B"))
    assert "one story per iteration" in illegal_transitions(before, after, Mode.IMPLEMENT)[0].message


@pytest.mark.parametrize(
    ("new", "legal"),
    [
        (story(id="B"), True),
        (story(passes=True, id="B"), False),
        (story(NEEDS, id="B"), False),
        (story(count=1, id="B"), False),
    ],
)
def test_new_stories_start_incomplete(new: Story, legal: bool) -> None:
    assert (not illegal_transitions(plan(story()), plan(story(), new), Mode.IMPLEMENT)) is legal


@pytest.mark.parametrize("mode", list(Mode))
def test_no_mode_may_remove_a_story(mode: Mode) -> None:
    found = illegal_transitions(plan(story(), story(NEEDS, id="B")), plan(story()), mode)
    assert any("cannot be removed" in v.message and v.story == "B" for v in found)


def test_a_violation_names_field_old_and_new() -> None:
    [violation] = illegal_transitions(plan(story()), plan(story(count=1)), Mode.IMPLEMENT)
    assert str(violation).startswith("story A: reviewCount 0 → 1:")


@pytest.mark.parametrize("old", list(State))
@pytest.mark.parametrize("new", list(State))
def test_a_person_reopens_before_anything_else(old: State, new: State) -> None:
    one = msgspec.structs.replace(story(), state=old)
    if new is old or new in MOVES[old]:
        check_move(one, new)
        return
    assert old in (State.DONE, State.FAILED)
    with pytest.raises(IllegalChange, match="cannot become"):
        check_move(one, new)
