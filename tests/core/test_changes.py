from __future__ import annotations

import pytest

from ralph.core.changes import AddStory, MoveStory, RemoveStory, SetFields, apply
from ralph.core.errors import IllegalChange
from ralph.core.plan import Plan, State, Story
from ralph.plans.plan_edits import move, next_id, split

PLAN = Plan(name="p", stories=tuple(Story(id=i, title=i, priority=n) for n, i in enumerate("ABC", 1)))


def ids(plan: Plan) -> str:
    return "".join(s.id for s in plan.stories)


def test_changes_are_applied_in_order() -> None:
    after = apply(PLAN, [MoveStory("C", "A"), AddStory(Story(id="D", title="d"), "C"), RemoveStory("B")])
    assert ids(after) == "CDA"


def test_setting_a_field_leaves_the_rest_alone() -> None:
    after = apply(PLAN, [SetFields("B", {"state": State.DONE})])
    assert after.stories[1].is_done
    assert after.stories[0] is PLAN.stories[0]


@pytest.mark.parametrize(
    "change",
    [
        SetFields("X", {"title": "t"}),
        SetFields("A", {"id": "Z"}),
        SetFields("A", {"nonsense": 1}),
        AddStory(Story(id="A", title="again")),
        AddStory(Story(id="D", title="d"), "X"),
        RemoveStory("X"),
        MoveStory("X"),
        MoveStory("A", "X"),
    ],
)
def test_changes_to_what_is_not_there_are_refused(change: SetFields | AddStory | RemoveStory | MoveStory) -> None:
    with pytest.raises(IllegalChange):
        apply(PLAN, [change])


def test_fresh_ids_follow_the_ones_that_are_there() -> None:
    assert next_id([]) == "US-001"
    assert next_id(["US-009", "US-003"]) == "US-010"
    assert next_id(["US-999"]) == "US-1000"
    assert next_id(["1.1", "1.2", "2.1"]) == "2.2"
    assert next_id(["login", "logout"]) == "US-001"


def test_a_split_keeps_everything_and_chains_the_parts() -> None:
    plan = Plan(
        name="p",
        stories=(
            Story(id="US-001", title="big", criteria=("c",), depends_on=("US-003",)),
            Story(id="US-002", title="later", depends_on=("US-001",)),
            Story(id="US-003", title="first"),
        ),
    )
    after = apply(plan, split(plan, "US-001", ["one", "two", "three"]))
    assert [(s.id, s.title, s.depends_on) for s in after.stories] == [
        ("US-001", "one", ("US-003",)),
        ("US-004", "two", ("US-001",)),
        ("US-005", "three", ("US-004",)),
        ("US-002", "later", ("US-005",)),
        ("US-003", "first", ()),
    ]
    assert all(s.criteria == ("c",) for s in after.stories[:3])


def test_a_done_story_cannot_be_split() -> None:
    plan = apply(PLAN, [SetFields("A", {"state": State.DONE})])
    with pytest.raises(IllegalChange, match="only open stories"):
        split(plan, "A", ["one", "two"])


def test_a_moved_story_takes_its_neighbours_priority() -> None:
    after = apply(PLAN, move(PLAN, "C", "A"))
    assert [(s.id, s.priority) for s in after.stories] == [("C", 1), ("A", 1), ("B", 2)]
