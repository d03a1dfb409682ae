"""Putting stories in, splitting and moving them: what it means, before any layout writes it down."""

from __future__ import annotations

import pytest

from ralph.core.changes import apply
from ralph.core.errors import IllegalChange
from ralph.core.plan import Order, Plan, State, Story
from ralph.core.review import Review, ReviewStatus
from ralph.core.select import next_story
from ralph.plans.plan_edits import insert, move, move_first, next_id, split

PLAN = Plan(name="p", stories=tuple(Story(id=f"US-00{n}", title="t", priority=n) for n in (1, 2, 3)))


def step(name: str, state: State = State.TODO) -> Story:
    return Story(id=name, title=name, state=state, is_review_step=".R" in name)


SPEC = Plan(name="s", stories=tuple(map(step, ("1.1", "1.2", "1.R", "2.1", "2.R"))), order=Order.FILE)


def ids(plan: Plan) -> list[str]:
    return [story.id for story in plan.stories]


def test_a_fresh_id_is_of_the_kind_of_its_neighbour() -> None:
    assert next_id(["1.1", "1.2", "2.1"], like="1.1") == "1.3"
    assert next_id(["1.1", "2.1"], like="login") == "2.2"
    assert next_id(["US-1", "T-07"], like="US-1") == "US-2"
    assert next_id(["T-07"], like="X-9") == "X-10"


def test_a_fresh_id_is_never_taken() -> None:
    assert next_id(["a", "b-"], first="a") == "a-2"
    assert next_id(["1.9", "1.10"], like="1.9") == "1.11"


def test_a_new_story_comes_last_and_is_the_least_urgent() -> None:
    added = insert(PLAN, Story(id="", title="new"))
    assert (added.story.id, added.story.priority) == ("US-004", 3)
    assert ids(apply(PLAN, [added])) == ["US-001", "US-002", "US-003", "US-004"]


def test_a_new_story_behind_another_is_as_urgent_as_that_one() -> None:
    after = apply(PLAN, [insert(PLAN, Story(id="", title="new"), after="US-001")])
    assert [(s.id, s.priority) for s in after.stories[:2]] == [("US-001", 1), ("US-004", 1)]


def test_a_given_id_and_priority_are_kept() -> None:
    added = insert(PLAN, Story(id="X", title="new", priority=9))
    assert (added.story.id, added.story.priority) == ("X", 9)


def test_plans_by_file_order_get_no_priority() -> None:
    assert insert(SPEC, Story(id="", title="new")).story.priority == 0


def test_a_new_step_comes_before_the_review_of_its_phase() -> None:
    after = apply(SPEC, [insert(SPEC, Story(id="", title="new"))])
    assert ids(after) == ["1.1", "1.2", "1.R", "2.1", "2.2", "2.R"]


def test_a_new_step_in_an_earlier_phase_is_numbered_there() -> None:
    after = apply(SPEC, [insert(SPEC, Story(id="", title="new"), after="1.1")])
    assert ids(after)[:3] == ["1.1", "1.3", "1.2"]


def test_a_new_step_behind_a_review_is_numbered_like_what_it_reviewed() -> None:
    after = apply(SPEC, [insert(SPEC, Story(id="", title="new"), after="1.R")])
    assert ids(after)[2:4] == ["1.R", "1.3"]


def test_a_review_that_is_done_does_not_cover_a_new_step() -> None:
    plan = Plan(name="s", stories=(step("1.1", State.DONE), step("1.R", State.DONE)), order=Order.FILE)
    assert ids(apply(plan, [insert(plan, Story(id="", title="new"))])) == ["1.1", "1.R", "1.2"]


def test_a_plan_of_reviews_alone_takes_a_step_too() -> None:
    plan = Plan(name="s", stories=(step("1.R"),), order=Order.FILE)
    assert len(apply(plan, [insert(plan, Story(id="", title="new"))]).stories) == 2


def test_the_parts_of_a_step_stay_in_its_phase() -> None:
    after = apply(SPEC, split(SPEC, "1.1", ["one", "two"]))
    assert ids(after)[:3] == ["1.1", "1.3", "1.2"]


@pytest.mark.parametrize(
    ("story", "why"),
    [
        (step("1.R"), "is a review and cannot be split"),
        (step("1.1", State.DONE), "only open stories"),
        (step("1.1", State.FAILED), "only open stories"),
        (Story(id="A", title="a", review=Review(ReviewStatus.NEEDS_REVIEW)), "under review"),
    ],
)
def test_what_cannot_be_split_is_left_whole(story: Story, why: str) -> None:
    with pytest.raises(IllegalChange, match=why):
        split(Plan(name="p", stories=(story,)), story.id, ["one", "two"])


def test_one_title_is_no_split() -> None:
    with pytest.raises(IllegalChange, match="two titles"):
        split(PLAN, "US-001", ["one"])


def test_a_story_put_behind_another_comes_after_it_in_the_file_and_in_priority() -> None:
    plan = Plan(name="p", stories=tuple(Story(id=i, title=i, priority=n) for i, n in (("A", 3), ("B", 1), ("C", 2))))
    after = apply(plan, move(plan, "B", after="A"))
    assert [(s.id, s.priority) for s in after.stories] == [("A", 3), ("B", 3), ("C", 2)]


def test_a_story_put_first_is_the_next_one() -> None:
    plan = Plan(name="p", stories=tuple(Story(id=i, title=i, priority=n) for i, n in (("A", 3), ("B", 1), ("C", 2))))
    after = apply(plan, move_first(plan, "C"))
    assert ids(after) == ["C", "A", "B"]
    assert (found := next_story(after))
    assert found.id == "C"


def test_a_story_put_last_is_the_least_urgent() -> None:
    after = apply(PLAN, move(PLAN, "US-001"))
    assert [(s.id, s.priority) for s in after.stories] == [("US-002", 2), ("US-003", 3), ("US-001", 3)]


def test_a_story_that_is_there_already_is_not_moved() -> None:
    assert move(PLAN, "US-003") == []
    assert move_first(PLAN, "US-001") == []
    assert move(SPEC, "1.2", after="1.1") == []
    assert move(SPEC, "1.1", "1.2") == []


@pytest.mark.parametrize("where", [{"before": "US-001"}, {"after": "US-001"}])
def test_a_story_is_not_moved_next_to_itself(where: dict[str, str]) -> None:
    with pytest.raises(IllegalChange, match="itself"):
        move(PLAN, "US-001", **where)
