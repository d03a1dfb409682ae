from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.core.plan import Order, Plan, State, Story
from ralph.core.select import next_story, why_nothing_is_ready


def make(*stories: Story, order: Order = Order.PRIORITY) -> Plan:
    return Plan(name="p", stories=stories, order=order)


def test_priority_decides_among_ready_stories() -> None:
    plan = make(Story(id="A", title="", priority=2), Story(id="B", title="", priority=1))
    assert (found := next_story(plan))
    assert found.id == "B"


def test_the_file_decides_among_equals() -> None:
    plan = make(Story(id="A", title="", priority=1), Story(id="B", title="", priority=1))
    assert (found := next_story(plan))
    assert found.id == "A"


def test_layouts_by_file_order_ignore_priority() -> None:
    plan = make(Story(id="A", title="", priority=9), Story(id="B", title="", priority=1), order=Order.FILE)
    assert (found := next_story(plan))
    assert found.id == "A"


def test_a_dependency_comes_first_whatever_its_priority() -> None:
    plan = make(Story(id="A", title="", priority=1, depends_on=("B",)), Story(id="B", title="", priority=9))
    assert (found := next_story(plan))
    assert found.id == "B"


def test_a_failed_dependency_blocks_and_is_named() -> None:
    plan = make(Story(id="A", title="", state=State.FAILED), Story(id="B", title="", depends_on=("A",)))
    assert next_story(plan) is None
    assert why_nothing_is_ready(plan) == "A is failed; B waits for A"


def test_skipped_stories_are_set_aside() -> None:
    plan = make(Story(id="A", title=""), Story(id="B", title=""))
    assert (found := next_story(plan, skip={"A"}))
    assert found.id == "B"


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    size = draw(st.integers(0, 8))
    stories = []
    for number in range(size):
        earlier = [f"S{n}" for n in range(number)]
        stories.append(
            Story(
                id=f"S{number}",
                title="",
                priority=draw(st.integers(1, 3)),
                state=draw(st.sampled_from(State)),
                depends_on=tuple(draw(st.lists(st.sampled_from(earlier), unique=True, max_size=2))) if earlier else (),
            )
        )
    return make(*draw(st.permutations(stories)), order=draw(st.sampled_from(Order)))


@given(plans())
def test_the_next_story_is_open_ready_and_the_best(plan: Plan) -> None:
    found = next_story(plan)
    done = {s.id for s in plan.stories if s.is_done}
    ready = [s for s in plan.stories if s.is_open and set(s.depends_on) <= done]
    if not ready:
        assert found is None
    elif plan.order is Order.FILE:
        assert found is ready[0]
    else:
        assert found is min(ready, key=lambda s: s.priority)
