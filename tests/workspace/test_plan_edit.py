"""Which changes people and agents may make by command."""

from __future__ import annotations

import msgspec
import pytest

from ralph.core.changes import AddStory, Change, MoveStory, SetFields, apply
from ralph.core.errors import IllegalChange, UsageError
from ralph.core.plan import Mode, Order, Plan, State, Story
from ralph.core.review import Review, ReviewStatus
from ralph.core.transitions import MOVES, illegal_transitions
from ralph.workspace.plan_edit import (
    Editor,
    change_fields,
    change_state,
    find_story,
    finish,
    reasons,
    refuse_broken,
    reopen,
    waits_for_later,
)

AGENT = Editor(is_agent=True, story="US-002", mode="implement")


def story(number: int, **fields: object) -> Story:
    return msgspec.structs.replace(Story(id=f"US-{number:03}", title="t", priority=number), **fields)


PLAN = Plan(
    name="p",
    stories=(
        story(1, state=State.DONE),
        story(2, depends_on=("US-001",)),
        story(3, depends_on=("US-002",)),
        story(4, state=State.FAILED, attempts=3),
        story(5, state=State.BLOCKED),
    ),
)
REVIEWED = msgspec.structs.replace(PLAN, reviewed=True)


def with_review(status: ReviewStatus | None, count: int = 1, feedback: str = "") -> Plan:
    change = SetFields("US-002", {"review": Review(status, count, feedback), "notes": "old"})
    return apply(REVIEWED, [change])


# --- which story -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [("us-001", "US-001"), ("US-1", "US-001"), ("US-0001", "US-001"), ("US001", "US-001"), ("U-003", "US-003")],
)
def test_a_wrong_id_gets_the_closest_right_one(wanted: str, meant: str) -> None:
    with pytest.raises(UsageError, match="no story") as refused:
        find_story(PLAN, wanted)
    assert refused.value.hint.startswith("did you mean ")
    assert meant in refused.value.hint


@pytest.mark.parametrize("wanted", ["", "nope", "x" * 100_000, "\x1b[31m"])
def test_an_id_like_no_other_gets_the_way_to_the_list(wanted: str) -> None:
    with pytest.raises(UsageError, match="no story") as refused:
        find_story(PLAN, wanted)
    assert refused.value.hint == "`ralph task list` shows the IDs"
    assert len(refused.value.message) < 120
    assert refused.value.message.isprintable()


# --- people ----------------------------------------------------------------------------------------------------------


def test_done_is_done() -> None:
    assert finish(PLAN, "US-002") == SetFields("US-002", {"state": State.DONE})


def test_a_note_is_added_to_the_notes() -> None:
    plan = apply(PLAN, [SetFields("US-002", {"notes": "first"})])
    assert finish(plan, "US-002", "second").fields["notes"] == "first\nsecond"


def test_a_story_with_open_dependencies_is_not_done_unless_forced() -> None:
    with pytest.raises(IllegalChange, match=r"depends on US-002 \(not done yet\)"):
        finish(PLAN, "US-003")
    assert finish(PLAN, "US-003", force=True).fields == {"state": State.DONE}


def test_a_person_approves_and_has_to_say_what_was_done() -> None:
    with pytest.raises(IllegalChange, match="needs a note"):
        finish(REVIEWED, "US-002")
    fields = finish(REVIEWED, "US-002", "it works").fields
    assert fields == {"notes": "it works", "state": State.DONE, "review": Review(ReviewStatus.APPROVED)}


def test_reopening_starts_over_but_remembers_the_number_of_reviews() -> None:
    assert reopen(PLAN, "US-004").fields == {"state": State.TODO, "attempts": 0}
    fields = reopen(with_review(ReviewStatus.CHANGES_REQUESTED, 2, "no"), "US-002").fields
    assert fields["review"] == Review(None, 2)


@pytest.mark.parametrize("old", State)
@pytest.mark.parametrize("new", State)
def test_a_person_can_do_what_the_table_says_and_nothing_else(old: State, new: State) -> None:
    plan = Plan(name="p", stories=(story(1, state=old),))
    if new is old or new in MOVES[old]:
        after = apply(plan, [change_state(plan, "US-001", new, sayable=State)])
        assert after.stories[0].state is new
    else:
        with pytest.raises(IllegalChange, match="cannot become"):
            change_state(plan, "US-001", new, sayable=State)


def test_back_to_todo_from_a_stuck_story_is_reopening_it() -> None:
    assert change_state(PLAN, "US-004", State.TODO, sayable=State).fields["attempts"] == 0


# --- agents ----------------------------------------------------------------------------------------------------------


def test_an_agent_is_known_by_its_environment() -> None:
    assert Editor.of({"RALPH_LOOP": "1"}).is_agent
    assert not Editor.of({"RALPH_LOOP": "0"}).is_agent
    assert Editor.of({"RALPH_STORY": "US-001"}) == Editor()
    assert Editor.of({"RALPH_LOOP": "1", "RALPH_STORY": "X", "RALPH_MODE": "fix"}) == Editor(True, "X", "fix")


@pytest.mark.parametrize("status", [None, ReviewStatus.CHANGES_REQUESTED, ReviewStatus.NEEDS_REVIEW])
def test_done_by_an_agent_submits_for_review_and_never_passes(status: ReviewStatus | None) -> None:
    plan = with_review(status, 2, "fix it" if status is ReviewStatus.CHANGES_REQUESTED else "")
    fields = finish(plan, "US-002", editor=AGENT).fields
    assert fields == {"review": Review(ReviewStatus.NEEDS_REVIEW, 2)}


@pytest.mark.parametrize(("status", "mode"), [(None, Mode.IMPLEMENT), (ReviewStatus.CHANGES_REQUESTED, Mode.FIX)])
def test_what_an_agent_may_do_is_legal_for_the_loop_too(status: ReviewStatus | None, mode: Mode) -> None:
    plan = with_review(status, 1, "fix it" if mode is Mode.FIX else "")
    after = apply(plan, [finish(plan, "US-002", "did it", editor=AGENT)])
    assert illegal_transitions(plan, after, mode) == []


def test_an_approved_story_is_not_submitted_again() -> None:
    with pytest.raises(IllegalChange, match="already approved"):
        finish(with_review(ReviewStatus.APPROVED), "US-002", editor=AGENT)


def test_a_reviewer_does_not_submit() -> None:
    with pytest.raises(IllegalChange, match="approves the story or requests changes"):
        finish(with_review(ReviewStatus.NEEDS_REVIEW), "US-002", editor=Editor(True, "US-002", "review"))


def test_an_agent_finishes_only_its_own_story() -> None:
    with pytest.raises(IllegalChange, match="this one is for US-002, not US-003"):
        finish(PLAN, "US-003", editor=AGENT)
    with pytest.raises(IllegalChange, match="one story per iteration"):
        change_state(PLAN, "US-003", State.IN_PROGRESS, editor=AGENT, sayable=State)


def test_an_agent_has_no_force() -> None:
    with pytest.raises(IllegalChange, match="--force"):
        finish(PLAN, "US-003", editor=Editor(True, "US-003"), force=True)


@pytest.mark.parametrize("state", [State.TODO, State.FAILED, State.BLOCKED])
def test_an_agent_neither_gives_up_nor_starts_over(state: State) -> None:
    with pytest.raises(IllegalChange, match="an agent in a loop cannot"):
        change_state(PLAN, "US-002", state, editor=AGENT, sayable=State)
    with pytest.raises(IllegalChange, match="cannot reopen"):
        reopen(PLAN, "US-001", editor=AGENT)


def test_an_agent_says_in_progress_where_the_file_can() -> None:
    assert change_state(PLAN, "US-002", State.IN_PROGRESS, editor=AGENT, sayable=State).fields
    with pytest.raises(IllegalChange, match="in_progress"):
        change_state(PLAN, "US-002", State.IN_PROGRESS, editor=AGENT, sayable=[State.TODO, State.DONE])


@pytest.mark.parametrize("field", ["title", "description", "criteria", "depends_on", "verify"])
def test_an_agent_does_not_change_what_is_asked_of_it(field: str) -> None:
    assert change_fields(PLAN, "US-002", {field: ""}).fields == {field: ""}
    with pytest.raises(IllegalChange, match=f"change the {field.replace('_', ' ')} of a story"):
        change_fields(PLAN, "US-002", {"notes": "n", field: ""}, editor=AGENT)


def test_an_agent_takes_notes_and_sets_priorities() -> None:
    assert change_fields(PLAN, "US-003", {"notes": "n", "priority": 1}, editor=AGENT).fields


# --- the whole plan --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (
            SetFields("US-002", {"depends_on": ("US-003",)}),
            "circular dependency between stories: US-002 → US-003 → US-002",
        ),
        (SetFields("US-002", {"depends_on": ("US-002",)}), "depends on itself"),
        (SetFields("US-002", {"depends_on": ("X",)}), "which is not in the plan"),
        (AddStory(story(1)), "already in the plan"),
        (AddStory(Story(id="a\nb", title="t")), "line break"),
    ],
)
def test_a_change_that_breaks_the_plan_is_refused(change: Change, why: str) -> None:
    with pytest.raises(IllegalChange, match=why):
        refuse_broken(PLAN, [change])


def test_reasons_are_kept_for_stuck_stories_and_cleared_for_others() -> None:
    stuck = [SetFields("A", {"state": State.BLOCKED}), SetFields("B", {"state": State.TODO, "attempts": 0})]
    assert reasons(stuck, "why") == {"A": "why", "B": ""}
    assert reasons([SetFields("A", {"title": "t"}), MoveStory("B")], "") == {}
    assert reasons([SetFields("A", {"review": Review()})], "") == {"A": ""}


def test_a_story_before_what_it_waits_for_is_noticed() -> None:
    moved = apply(PLAN, [MoveStory("US-003", "US-001")])
    assert waits_for_later(moved, "US-003") == []  # priority decides, not the file
    by_file = msgspec.structs.replace(moved, order=Order.FILE)
    assert waits_for_later(by_file, "US-003") == ["US-002"]
    assert waits_for_later(by_file, "US-002") == []  # what it waits for is done
