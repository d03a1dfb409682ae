from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ralph.core.plan import Mode, Order, Plan, State, Story
from ralph.core.review import Review, ReviewStatus
from ralph.core.select import next_story, next_work, why_nothing_is_ready


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
    assert why_nothing_is_ready(plan) == "A failed; B is waiting for A"


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


def under_review(name: str, status: ReviewStatus, state: State = State.TODO) -> Story:
    return Story(id=name, title="", review=Review(status), state=state)


def test_what_is_under_review_goes_before_new_work() -> None:
    new = Story(id="A", title="", priority=-1)
    waiting, sent_back = (
        under_review("B", ReviewStatus.NEEDS_REVIEW),
        under_review("C", ReviewStatus.CHANGES_REQUESTED),
    )
    assert next_work(make(new, waiting, sent_back), review=True) == (sent_back, Mode.FIX)
    assert next_work(make(new, waiting), review=True) == (waiting, Mode.REVIEW)
    assert next_work(make(new, waiting), review=False) == (new, Mode.IMPLEMENT)
    assert next_work(make(new, waiting), review=True, skip={"B"}) == (new, Mode.IMPLEMENT)


def test_a_story_that_is_stuck_is_not_reviewed() -> None:
    assert next_work(make(under_review("A", ReviewStatus.NEEDS_REVIEW, State.FAILED)), review=True) is None


def test_a_long_list_of_reasons_is_cut() -> None:
    first = Story(id="A", title="", state=State.FAILED)
    others = [Story(id=f"S{n}", title="", state=State.BLOCKED) for n in range(20)]
    last = Story(id="Z", title="", depends_on=tuple(s.id for s in others))
    assert why_nothing_is_ready(make(first, *others)).endswith("S3 is blocked; and 16 more")
    assert "Z is waiting for S0, S1, S2, S3, S4, and 15 more" in why_nothing_is_ready(make(*others[:4], last))
