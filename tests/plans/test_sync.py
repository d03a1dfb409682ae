"""A spec and its beads agree when a step is ticked if and only if its bead is closed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.plan import Plan, State, Story
from ralph.plans.beads import Kind, compare


def plan(*stories: tuple[str, str, State]) -> Plan:
    return Plan(name="", stories=tuple(Story(id=i, title="", ref=ref, state=state) for i, ref, state in stories))


@pytest.mark.parametrize(
    ("state", "status", "kind"),
    [
        (State.DONE, "closed", None),
        (State.TODO, "open", None),
        (State.TODO, "in_progress", None),
        (State.TODO, "blocked", None),
        (State.TODO, "deferred", None),
        (State.FAILED, "open", None),
        (State.DONE, "open", Kind.DIFFERS),
        (State.DONE, "in_progress", Kind.DIFFERS),
        (State.TODO, "closed", Kind.DIFFERS),
        (State.FAILED, "closed", Kind.DIFFERS),
        (State.DONE, None, Kind.UNKNOWN),
        (State.TODO, None, Kind.UNKNOWN),
        (State.DONE, "tombstone", Kind.UNKNOWN),
    ],
)
def test_ticked_means_closed(state: State, status: str | None, kind: Kind | None) -> None:
    beads = {} if status is None else {"TASK-a": status}
    found = compare(plan(("1.1", "TASK-a", state)), beads)
    assert [difference.kind for difference in found] == ([kind] if kind else [])
    assert all(difference.is_contradiction for difference in found)


def test_a_step_without_a_bead_is_listed_and_contradicts_nothing() -> None:
    (found,) = compare(plan(("1.1", "", State.DONE)), {"TASK-a": "open"})
    assert (found.step, found.kind, found.is_contradiction) == ("1.1", Kind.UNTRACKED, False)


def test_differences_say_what_each_side_says() -> None:
    steps = plan(("1.1", "TASK-a", State.DONE), ("1.2", "TASK-b", State.TODO), ("1.3", "TASK-c", State.TODO))
    found = compare(steps, {"TASK-a": "open", "TASK-b": "closed", "TASK-c": "open"})
    assert [(d.step, d.ref, d.spec, d.beads) for d in found] == [
        ("1.1", "TASK-a", "done", "open"),
        ("1.2", "TASK-b", "open", "closed"),
    ]


@given(st.lists(st.tuples(st.sampled_from(["", "A-1", "A-2"]), st.sampled_from(State)), max_size=6))
def test_a_spec_agrees_with_beads_made_from_it(steps: list[tuple[str, State]]) -> None:
    stories = plan(*((f"1.{n}", f"{ref}-{n}" if ref else "", state) for n, (ref, state) in enumerate(steps)))
    beads = {s.ref: "closed" if s.is_done else "open" for s in stories.stories if s.ref}
    assert not any(difference.is_contradiction for difference in compare(stories, beads))
    turned = {ref: "open" if status == "closed" else "closed" for ref, status in beads.items()}
    assert sum(difference.is_contradiction for difference in compare(stories, turned)) == len(beads)
