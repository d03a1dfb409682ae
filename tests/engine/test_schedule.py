"""Which stories several workers start together: rules one by one, and properties over random plans."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.core.areas import collide
from ralph.core.events import AnyEvent, Charged, Held, PlanSeen, Record, Reserved, Running, Scheduled
from ralph.core.history import History, fold
from ralph.core.money import Basis, Budget
from ralph.core.moves import Prove, Reason, Retry, SetAside, Stop, Wait, Work
from ralph.core.plan import Mode, Order, Plan, State, Story
from ralph.core.review import Review, ReviewStatus
from ralph.core.rules import Limits, OnStuck, Streak
from ralph.core.verdict import Kind
from ralph.engine.decide import decide
from ralph.engine.schedule import schedule, with_running
from ralph.journal.run_state import seen_story
from ralph.run.replay import replay
from support.decisions import NOW, ended, started

WIDE = Limits(max_iterations=0)


def make(*stories: Story) -> Plan:
    return Plan(name="p", stories=stories)


def story(name: str, **fields: Any) -> Story:
    return Story(id=name, title=name, **fields)


def ask(plan: Plan, **fields: Any) -> Scheduled:
    history, limits = fields.pop("history", History()), fields.pop("limits", WIDE)
    inputs: dict[str, Any] = {"free": 4, "areas": {}, "returns": 2} | fields
    return schedule(plan, history, limits, NOW, **inputs)


def at(name: str, number: int = 1, mode: Mode = Mode.IMPLEMENT, **fields: Any) -> Running:
    return Running(number, name, mode, **fields)


def ids(result: Scheduled) -> list[str]:
    return [work.story for work in result.start]


A, B, C, D = (story(name) for name in "ABCD")


def test_independent_stories_start_together_up_to_the_free_workers() -> None:
    assert ids(ask(make(A, B, C, D), free=3)) == ["A", "B", "C"]
    assert ids(ask(make(A, B, C, D), free=9)) == ["A", "B", "C", "D"]


def test_priority_decides_who_is_first_and_dependencies_who_may() -> None:
    plan = make(story("A", priority=3), story("B", priority=1), story("C", priority=2, depends_on=("A",)))
    assert ids(ask(plan)) == ["B", "A"]


def test_a_story_that_probably_collides_is_held_and_the_next_is_tried() -> None:
    areas = {"A": ("src/a.py",), "B": ("src/",), "C": ("docs/c.md",)}
    result = ask(make(A, B, C), areas=areas)
    assert ids(result) == ["A", "C"]
    assert result.held == (Held("B", "A probably changes src/a.py too"),)


def test_a_story_in_the_merge_queue_still_has_its_area() -> None:
    areas = {"A": ("a.py",), "B": ("a.py",)}
    result = ask(make(A, B), areas=areas, running=[at("A", has_started=True, is_queued=True)])
    assert ids(result) == []
    assert [held.story for held in result.held] == ["B"]
    assert result.move is None


def test_stories_with_unknown_areas_run_beside_anything() -> None:
    assert ids(ask(make(A, B, C), areas={"A": (".",)})) == ["A", "B", "C"]


def test_a_review_changes_no_files_and_collides_with_nothing() -> None:
    pending = story("A", review=Review(ReviewStatus.NEEDS_REVIEW))
    areas = {"A": ("a.py",), "B": ("a.py",)}
    result = ask(make(pending, B), areas=areas, review=True)
    assert result.start == (Work("A", Mode.REVIEW), Work("B", Mode.IMPLEMENT))


def test_a_running_story_is_not_started_again_and_nothing_ready_means_wait() -> None:
    result = ask(make(A, story("B", depends_on=("A",))), running=[at("A")])
    assert result.start == ()
    assert result.move is None


def test_once_is_one_iteration() -> None:
    once = Limits(max_iterations=0, once=True)
    assert ids(ask(make(A, B), limits=once)) == ["A"]
    assert ids(ask(make(A, B), limits=once, running=[at("A")])) == []


def test_setup_runs_alone() -> None:
    result = ask(make(A, B), needs_setup=True)
    assert result.start == (Work("", Mode.SETUP),)
    assert result.move is None
    beside = ask(make(A, B), needs_setup=True, running=[at("", mode=Mode.SETUP)])
    assert beside.start == ()
    assert beside.move is None
    late = ask(make(A, B), needs_setup=True, running=[at("A")])
    assert late.start == ()
    assert late.held == (Held("", "setup starts when nothing else is running"),)


def test_the_exam_and_the_final_checks_wait_for_what_is_running() -> None:
    done = make(story("A", state=State.DONE))
    assert ask(done, needs_exam=True).start == (Work("", Mode.EXAM),)
    waits = ask(done, needs_exam=True, running=[at("A", mode=Mode.REVIEW)])
    assert waits.start == ()
    assert waits.move is None
    assert ask(done).move == Prove()
    assert ask(done, running=[at("A", mode=Mode.REVIEW)]).move is None
    beside = ask(make(A, B), running=[at("", mode=Mode.EXAM)])
    assert beside.start == ()
    assert beside.held[0] == Held("A", "exam is done alone")


def test_a_story_returned_too_often_is_done_alone_and_nothing_overtakes_it() -> None:
    history = History(returned={"C": 2})
    first = ask(make(A, B, C), history=history, running=[at("A")])
    assert first.start == ()
    assert first.move is None
    assert first.held[0] == Held("C", "returned by the merge queue 2 times; starts alone when nothing else is running")
    assert first.held[1] == Held("B", "C is done alone before it")
    assert ids(ask(make(A, B, C), history=history)) == ["C"]
    assert ids(ask(make(A, B, C), history=history, running=[at("C")])) == []
    assert ids(ask(make(A, B, C), history=History(returned={"C": 1}))) == ["A", "B", "C"]


def test_a_returned_story_that_cannot_start_does_not_hold_up_the_others() -> None:
    for state in (State.FAILED, State.BLOCKED, State.DONE):
        plan = make(A, B, story("C", state=state))
        assert ids(ask(plan, history=History(returned={"C": 3}))) == ["A", "B"]
    assert ids(ask(make(A, B, C), history=History(returned={"C": 3}, asked={"C": "which?"}))) == ["A", "B"]


def test_with_no_returns_allowed_the_first_return_is_enough() -> None:
    assert ids(ask(make(A, B), history=History(returned={"B": 1}), returns=0)) == ["B"]
    assert ids(ask(make(A, B), returns=0)) == ["A", "B"]


def test_running_iterations_count_towards_the_cap() -> None:
    two = Limits(max_iterations=2)
    result = ask(make(A, B, C), limits=two, running=[at("A")])
    assert ids(result) == ["B"]
    assert isinstance(result.move, Stop)
    assert result.move.reason is Reason.ITERATION_CAP


def test_agents_about_to_start_count_as_calls() -> None:
    hourly = Limits(max_iterations=0, rate_per_hour=2)
    result = ask(make(A, B, C), limits=hourly)
    assert ids(result) == ["A", "B"]
    assert isinstance(result.move, Wait)
    begun = ask(make(A, B, C), limits=hourly, history=History(calls=(NOW - 5,)), running=[at("A", has_started=True)])
    assert ids(begun) == ["B"], "the call of A is in the history already"


def test_a_limit_is_named_while_something_runs_so_that_nothing_more_starts() -> None:
    late = Limits(max_iterations=0, max_time=10)
    result = ask(make(A, B), limits=late, history=History(started=NOW - 20), running=[at("A")])
    assert result.start == ()
    assert isinstance(result.move, Stop)
    assert result.move.reason is Reason.TIME_CAP


def test_what_running_sessions_have_reserved_is_not_spent_twice() -> None:
    limits = Limits(max_iterations=0, budget=Budget(run_usd=1))
    history = fold(History(), Reserved(iteration=1, id="r/1/1", usd=1), NOW)
    result = ask(make(A, B), limits=limits, history=history, running=[at("A", has_started=True)])
    assert result.start == ()
    assert isinstance(result.move, Wait)
    assert result.move.why == "the rest of this run's budget, $1.00, is reserved by running sessions"
    lost = ask(make(A, B), limits=limits, history=history, running=[at("A", 2)])
    assert ids(lost) == ["B"], "a session of an iteration that ended without a charge holds nothing"
    charged = Charged(iteration=1, story="A", id="r/1/1", basis=Basis.REPORTED, usd=0.4)
    after = fold(history, charged, NOW)
    assert after.spending.reserved == {}
    assert ids(ask(make(A, B), limits=limits, history=after, running=[at("A", has_started=True)])) == ["B"]


def test_a_stuck_story_is_set_aside_while_others_run() -> None:
    history = History(stories={"B": Streak(no_progress=3)})
    limits = Limits(max_iterations=0, no_progress=3, on_stuck=OnStuck.NEXT)
    result = ask(make(A, B, C), history=history, limits=limits, running=[at("A")])
    assert isinstance(result.move, SetAside)
    assert result.move.story == "B"


def test_a_story_is_not_set_aside_for_a_cap_that_only_running_iterations_reach() -> None:
    history = History(retried=frozenset({"B"}), iterations=1)
    limits = Limits(max_iterations=0, max_allowed=2)
    plan = make(A, B)
    assert ask(plan, history=history, limits=limits, running=[at("A")]).move is None
    assert isinstance(ask(plan, history=msgspec.structs.replace(history, iterations=2), limits=limits).move, Stop)


def test_retries_wait_for_what_is_running() -> None:
    history = History(given_up=frozenset({"A"}))
    limits = Limits(max_iterations=0, on_stuck=OnStuck.NEXT, retry_rounds=1)
    plan = make(story("A", state=State.FAILED), B)
    assert ask(plan, history=history, limits=limits, running=[at("B")]).move is None
    over = make(story("A", state=State.FAILED), story("B", state=State.DONE))
    assert ask(over, history=history, limits=limits).move == Retry(("A",))


def test_acceptance_tests_are_recorded_only_where_they_mattered() -> None:
    result = ask(make(A, B, C), free=1, needs_acceptance=frozenset({"A", "C"}))
    assert result.start == (Work("A", Mode.ACCEPTANCE),)
    assert result.needs_acceptance == ("A",)


names = st.sampled_from(["A", "B", "C", "D", "E", "F"])
paths = st.sampled_from(["src/a.py", "src/b.py", "src", "docs/x.md", "*.md", "src/*.py", "lib/", "."])
plans = st.lists(
    st.builds(
        lambda state, priority, depends, review: {
            "state": state,
            "priority": priority,
            "depends_on": tuple(depends),
            "review": Review(review),
        },
        st.sampled_from([State.TODO] * 4 + list(State)),
        st.integers(1, 3),
        st.lists(names, max_size=1),
        st.sampled_from([None, None, *ReviewStatus]),
    ),
    min_size=1,
    max_size=6,
).map(lambda rows: make(*(story("ABCDEF"[at], **row) for at, row in enumerate(rows))))
areas_of = st.dictionaries(names, st.lists(paths, max_size=2).map(tuple))
limits_of = st.builds(
    Limits,
    max_iterations=st.sampled_from([0, 0, 3]),
    rate_per_hour=st.sampled_from([0, 0, 4]),
    once=st.sampled_from([False] * 5 + [True]),
    on_stuck=st.sampled_from(OnStuck),
    retry_rounds=st.integers(0, 1),
    budget=st.just(Budget()),
)
histories = st.builds(
    History,
    iterations=st.integers(0, 3),
    returned=st.dictionaries(names, st.integers(1, 3), max_size=1),
    asked=st.dictionaries(names, st.just("which?"), max_size=1),
    aside=st.dictionaries(names, st.just("stuck"), max_size=1),
    given_up=st.frozensets(names, max_size=2),
    stories=st.dictionaries(names, st.builds(Streak, no_progress=st.integers(0, 4)), max_size=2),
)


def running_in(plan: Plan, chosen: list[str]) -> list[Running]:
    open_ids = [each.id for each in plan.stories if each.is_open and each.id in chosen]
    return [at(name, number, has_started=True) for number, name in enumerate(dict.fromkeys(open_ids), 1)]


@settings(max_examples=400, deadline=None)
@given(plans, histories, limits_of, areas_of, st.lists(names, max_size=3), st.integers(0, 5), st.booleans())
def test_what_every_schedule_keeps(
    plan: Plan,
    history: History,
    limits: Limits,
    areas: dict[str, tuple[str, ...]],
    chosen: list[str],
    free: int,
    review: bool,
) -> None:
    running = running_in(plan, chosen)
    result = schedule(plan, history, limits, NOW, running=running, free=free, areas=areas, returns=2, review=review)
    by_id, done = {each.id: each for each in plan.stories}, {each.id for each in plan.stories if each.is_done}
    assert len(result.start) <= free
    assert len(set(ids(result))) == len(result.start)
    busy = [each.story for each in running]
    for work in result.start:
        assert work.story not in busy
        assert by_id[work.story].is_open
        if work.mode is Mode.IMPLEMENT:
            assert done.issuperset(by_id[work.story].depends_on)
    changing = [*busy, *(work.story for work in result.start if work.mode is not Mode.REVIEW)]
    new = {work.story for work in result.start}
    for at_, first in enumerate(changing):
        for second in changing[at_ + 1 :]:
            if {first, second} & new:
                assert not collide(areas.get(first, ()), areas.get(second, ())), (first, second)
    alone = {name for name, count in history.returned.items() if count >= 2}
    if alone & {*busy, *new}:
        assert not new or len(new) + len(busy) == 1
    if limits.once:
        assert len(running) + len(new) <= max(1, len(running))
    if limits.max_iterations and new:
        assert history.iterations + len(running) + len(new) <= limits.max_iterations
    if free and not running:
        assert result.start or result.move is not None, "nothing would ever happen again"
    if running:
        assert not isinstance(result.move, (Prove, Retry, Work))
    assert not {held.story for held in result.held} & new


@settings(max_examples=300, deadline=None)
@given(plans, histories, limits_of, areas_of, st.booleans(), st.booleans(), st.booleans())
def test_one_worker_does_what_the_serial_loop_does(
    plan: Plan,
    history: History,
    limits: Limits,
    areas: dict[str, tuple[str, ...]],
    review: bool,
    setup: bool,
    exam: bool,
) -> None:
    history = msgspec.structs.replace(history, returned={})
    rest: dict[str, Any] = {"review": review, "needs_setup": setup, "needs_exam": exam}
    result = schedule(plan, history, limits, NOW, free=1, areas=areas, returns=2, **rest)
    serial = decide(plan, history, limits, NOW, **rest)
    assert (result.start[0] if result.start else result.move) == serial


@settings(max_examples=300, deadline=None)
@given(plans, histories, limits_of, areas_of, st.lists(names, max_size=3), st.integers(0, 5), st.booleans())
def test_a_record_replays_from_its_own_inputs(
    plan: Plan,
    history: History,
    limits: Limits,
    areas: dict[str, tuple[str, ...]],
    chosen: list[str],
    free: int,
    review: bool,
) -> None:
    records: list[AnyEvent] = [
        started(limits=limits),
        PlanSeen(whole=True, stories=tuple(map(seen_story, plan.stories))),
    ]
    records += [ended(Kind.RETURNED, name) for name, count in history.returned.items() for _ in range(count)]
    live = History()
    for event in records:
        live = fold(live, event, NOW)
    running = running_in(plan, chosen)
    needs = frozenset({"A", "D"})
    scheduled = schedule(
        plan,
        live,
        limits,
        NOW,
        running=running,
        free=free,
        areas=areas,
        returns=2,
        review=review,
        needs_acceptance=needs,
    )
    read = msgspec.json.decode(msgspec.json.encode(scheduled), type=Scheduled)
    journal = [Record(seq=at_, t=NOW, event=event) for at_, event in enumerate([*records, read])]
    assert replay(journal).differences == ()
    other = msgspec.structs.replace(read, start=(*read.start, Work("Z", Mode.IMPLEMENT)))
    journal[-1] = Record(seq=99, t=NOW, event=other)
    assert [each.what for each in replay(journal).differences] == ["the schedule"]


@settings(max_examples=100, deadline=None)
@given(plans, areas_of, st.integers(1, 3), st.randoms(use_true_random=False), st.sampled_from(list(names.elements)))  # type: ignore[attr-defined]
def test_every_ready_story_gets_its_turn(
    plan: Plan, areas: dict[str, tuple[str, ...]], workers: int, random: Any, returned: str
) -> None:
    """Stories end in any order, and one is done alone: all of them end that can."""
    states = {each.id: each.state for each in plan.stories}
    history = History(returned={returned: 2})
    running: list[Running] = []
    for number in range(100):
        now = plan.with_stories(msgspec.structs.replace(each, state=states[each.id]) for each in plan.stories)
        result = schedule(now, history, WIDE, NOW, running=running, free=workers - len(running), areas=areas, returns=2)
        running += [at(work.story, number * 10 + at_) for at_, work in enumerate(result.start)]
        if not running:
            break
        ending = running.pop(random.randrange(len(running)))
        states[ending.story] = State.DONE
    else:
        raise AssertionError("the run never ends")
    done = {name for name, state in states.items() if state is State.DONE}
    for each in plan.stories:
        if each.is_open and done.issuperset(each.depends_on):
            assert each.id in done


def test_a_plan_in_file_order_is_scheduled_in_file_order() -> None:
    plan = Plan(name="p", stories=(story("B", priority=2), story("A", priority=1)), order=Order.FILE)
    assert ids(ask(plan)) == ["B", "A"]


def test_with_running_leaves_the_history_of_a_serial_run_alone() -> None:
    history = History(iterations=3, calls=(NOW,))
    assert with_running(history, (), 0, NOW) == history
