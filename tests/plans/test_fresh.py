"""A plan in one layout, written in every other one: what both can say survives, and what does not is named."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.core.changes import SetFields, apply
from ralph.core.errors import IllegalChange
from ralph.core.plan import Order, Plan, State, Story
from ralph.core.ports import ProjectFacts
from ralph.core.review import Review, ReviewStatus
from ralph.core.select import next_story
from ralph.plans.fresh import Composed, Fate, Loss, compose, losses
from ralph.plans.registry import LAYOUTS, layout
from support.plans import plan_name, sample

NAMES = LAYOUTS.built_in()
PAIRS = pytest.mark.parametrize(("one", "other"), list(product(NAMES, NAMES)))
FACTS = ProjectFacts(name="reports", date="2026-01-31T09:30:00Z")
_FIELDS = [name for name in Story.__struct_fields__ if name not in ("id", "line", "extra")]

plain_lines = st.text("abc déß漢", min_size=1, max_size=20).map(lambda text: f"Say {' '.join(text.split())}".strip())
nasty_lines = st.text("ab \t`*_-+#[]x|<>!.:1\\~=\n(US-0)", max_size=30)


def plans(lines: st.SearchStrategy[str]) -> st.SearchStrategy[Plan]:
    story = st.fixed_dictionaries(
        {
            "title": lines,
            "description": st.one_of(st.just(""), lines),
            "criteria": st.lists(lines, max_size=3).map(tuple),
            "priority": st.integers(1, 5),
            "needs": st.sets(st.integers(0, 3), max_size=2),
            "state": st.sampled_from(State),
            "notes": st.one_of(st.just(""), lines),
            "verify": st.lists(lines, max_size=2, unique=True).map(tuple),
            "touches": st.lists(lines, max_size=2).map(tuple),
            "attempts": st.integers(0, 3),
            "review": st.sampled_from([Review(), Review(ReviewStatus.NEEDS_REVIEW, 1), Review(None, 2, "again")]),
        }
    )
    return st.lists(story, min_size=1, max_size=4).map(_plan)


def _plan(found: list[dict[str, Any]]) -> Plan:
    stories = []
    for number, fields in enumerate(found):
        needs = sorted({at for at in fields.pop("needs") if at < number})
        stories.append(Story(id=f"US-{number + 1:03}", depends_on=tuple(f"US-{at + 1:03}" for at in needs), **fields))
    return Plan(name="Reports", stories=tuple(stories), description="As files.", verify=("make test",))


def written(plan: Plan, name: str) -> Composed:
    form = layout(name)
    return compose(plan, form, form.refer(Path("/w"), plan_name(name)), FACTS)


def differing(before: Plan, after: Plan, ids: dict[str, str]) -> set[tuple[str, str]]:
    """Story and field of every value that is another one than before. Written without a look at `losses`."""
    now = {story.id: story for story in after.stories}
    found = set()
    for story in before.stories:
        other = now[ids[story.id]]
        for field in _FIELDS:
            old = getattr(story, field)
            old = tuple(ids[needed] for needed in old) if field == "depends_on" else old
            if field == "verify" and not after.verify:
                old = tuple(dict.fromkeys((*before.verify, *old)))
            if old != getattr(other, field):
                found.add((story.id, field))
    return found


def named(found: list[Loss]) -> set[tuple[str, str]]:
    return {(loss.story, loss.field) for loss in found if loss.story and loss.field not in ("id", "extra")}


@PAIRS
@settings(max_examples=12)
@given(plan=plans(plain_lines))
def test_what_both_layouts_can_say_survives(one: str, other: str, plan: Plan) -> None:
    before = layout(one).parse(written(plan, one).source, "f")
    after = written(before, other)
    both = layout(one).SPEAKS & layout(other).SPEAKS - {"id"}
    if after.in_file.order is Order.FILE:
        both -= {"priority"}
    lost = differing(before, after.in_file, after.ids)
    required = {"criteria", "notes"} if other in ("tasks.json", "feature") else set()
    states = {story.id for story in before.stories if story.state not in layout(other).STATES}
    for story, field in lost:
        empty = not getattr(before.story(story), field)
        assert field not in both or (field in required and empty) or (field == "state" and story in states), field


@PAIRS
@settings(max_examples=12)
@given(plan=plans(st.one_of(plain_lines, nasty_lines)))
def test_what_is_lost_is_named_and_nothing_else_is(one: str, other: str, plan: Plan) -> None:
    try:
        before = layout(one).parse(written(plan, one).source, "f")
    except IllegalChange:
        return  # such a plan cannot be in this layout
    after = written(before, other)
    assert layout(other).parse(after.source, "f") == after.in_file
    assert len(after.in_file.stories) == len(before.stories)
    assert named(losses(before, after.in_file, after.ids)) == differing(before, after.in_file, after.ids)


@PAIRS
@settings(max_examples=8)
@given(plan=plans(plain_lines))
def test_the_stories_come_in_the_same_order(one: str, other: str, plan: Plan) -> None:
    before = layout(one).parse(written(plan, one).source, "f")
    after = written(before, other)
    assert [after.ids[story_id] for story_id in turns(before)] == turns(after.in_file)


def turns(plan: Plan) -> list[str]:
    """The stories in the order in which a run would take them, if every one went well."""
    plan = apply(plan, [SetFields(s.id, {"state": State.TODO, "review": Review()}) for s in plan.stories])
    taken = []
    while (story := next_story(plan)) is not None:
        taken.append(story.id)
        done = Review(ReviewStatus.APPROVED, 1) if plan.reviewed else Review()
        plan = apply(plan, [SetFields(story.id, {"state": State.DONE, "review": done})])
    return taken


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_in_its_own_layout_loses_nothing(name: str) -> None:
    before = layout(name).parse(sample(name, 6, odd=True), "f")
    after = written(before, name)
    assert losses(before, after.in_file, after.ids) == []


@pytest.mark.parametrize("other", ["feature", "steps"])
def test_keys_nobody_knows_go_along_between_json_layouts(other: str) -> None:
    before = layout("tasks.json").parse(sample("tasks.json", 3, odd=True), "f")
    after = written(before, other).in_file
    assert [story.extra for story in after.stories] == [story.extra for story in before.stories]
    assert after.extra["after"] == {"x": [1, 2.5, {"deep": None}], "ü": "ß"}


def test_markdown_has_no_place_for_them_and_it_is_said() -> None:
    before = layout("tasks.json").parse(sample("tasks.json", 2, odd=True), "f")
    after = written(before, "plan.md")
    found = losses(before, after.in_file, after.ids)
    assert Loss("US-002", "extra", Fate.LOST, "owner, size") in found
    assert Loss("", "branch", Fate.LOST) in found


def test_ids_of_another_kind_are_renamed_with_their_number_where_it_is_free() -> None:
    names = ["STORY-007", "US-002", "x", "task-2", "STORY-7"]
    plan = Plan(name="x", stories=tuple(Story(id=name, title=name, criteria=("c",)) for name in names))
    assert list(written(plan, "plan.md").ids.values()) == ["US-007", "US-002", "US-001", "US-003", "US-004"]
    assert written(plan, "feature").ids == {name: name for name in names}


def test_dependencies_follow_the_new_ids() -> None:
    stories = (Story(id="b", title="B", depends_on=("a",), priority=2), Story(id="a", title="A", priority=1))
    after = written(Plan(name="x", stories=stories), "spec.md")
    assert [(s.id, s.title, s.depends_on) for s in after.in_file.stories] == [("1.1", "A", ()), ("1.2", "B", ("1.1",))]


def test_commands_of_the_plan_become_commands_of_each_story_where_there_is_no_place_for_them() -> None:
    plan = Plan(name="x", stories=(Story(id="US-001", title="t", verify=("tox",)),), verify=("make", "tox"))
    after = written(plan, "plan.md")
    assert after.in_file.stories[0].verify == ("make", "tox")
    assert [(loss.field, loss.fate) for loss in losses(plan, after.in_file, after.ids)] == [
        ("verify", Fate.CHANGED),
        ("priority", Fate.FILLED),
    ]


def test_a_text_that_looks_like_a_story_does_not_become_one() -> None:
    text = "- [ ] US-009: not a story\n### US-010: nor this\n```\n- [ ] **1.9** nor this\n```\nNotes: not a note"
    story = Story(id="US-001", title="t", description=text, criteria=("c",), notes="- [ ] US-011: x\n\n\n## y")
    for name in ("plan.md", "spec.md"):
        after = written(Plan(name="x", description=text, stories=(story,)), name).in_file
        assert len(after.stories) == 1
        assert "not a story" in after.stories[0].description
        assert "US-011" in after.stories[0].notes


def test_a_heading_that_looks_like_a_story_does_not_become_one() -> None:
    plan = Plan(name="US-001: the plan", stories=(Story(id="US-001", title="t"),))
    form = layout("plan.md")
    ref = form.refer(Path("/w"), "1")
    for phase in ("US-001: t", "[x] **US-001**", "## US-002"):
        read = compose(plan, form, ref, FACTS, phases={"US-001": phase}).in_file
        assert [story.title for story in read.stories] == ["t"]


def test_a_command_of_several_lines_is_not_bent_into_another_one() -> None:
    story = Story(id="US-001", title="t", verify=("cd x\nmake", "make"))
    after = written(Plan(name="x", stories=(story,)), "plan.md")
    assert after.in_file.stories[0].verify == ("make",)


def test_a_plan_without_a_story_is_not_written() -> None:
    with pytest.raises(IllegalChange):
        written(Plan(name="x", stories=()), "plan.md")


def test_a_large_plan_is_written_in_a_moment() -> None:
    stories = tuple(Story(id=f"US-{n:05}", title=f"Story {n}", criteria=("c",), priority=n) for n in range(1, 1001))
    for name in NAMES:
        assert len(written(Plan(name="x", stories=stories), name).in_file.stories) == 1000
