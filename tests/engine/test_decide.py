from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.events import AgentStarted, AnyEvent, IterationEnded, Proved, RunStarted
from ralph.core.history import History, fold
from ralph.core.moves import Prove, Reason, Stop, Wait, Work
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.review import Review, ReviewStatus
from ralph.core.rules import Limits, OnLimit
from ralph.core.verdict import Kind
from ralph.engine.decide import decide

LIMITS = Limits()


def plan(*states: State, **fields: Any) -> Plan:
    return Plan(name="p", stories=tuple(Story(id=f"S{n}", title="", state=s) for n, s in enumerate(states)), **fields)


def ended(kind: Kind, iteration: int = 1, **fields: Any) -> IterationEnded:
    return IterationEnded(
        iteration=iteration, story=fields.pop("story", "S0"), mode=Mode.IMPLEMENT, kind=kind, **fields
    )


def history(*events: AnyEvent, start: float = 1000.0, apart: float = 1.0) -> History:
    state = History()
    for number, event in enumerate(events):
        state = fold(state, event, start + number * apart)
    return state


def test_work_goes_to_the_next_story() -> None:
    assert decide(plan(State.DONE, State.TODO), History(), LIMITS, 0) == Work("S1", Mode.IMPLEMENT)


def test_a_finished_plan_is_proved_before_it_is_complete() -> None:
    finished = plan(State.DONE)
    assert decide(finished, History(), LIMITS, 0) == Prove()
    assert decide(finished, history(Proved(tree="t", passed=True)), LIMITS, 0) == Stop(Reason.COMPLETE)
    stop = decide(finished, history(Proved(tree="t", passed=False)), LIMITS, 0)
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.FINAL_CHECKS
    assert stop.reason.exit_code == 1


def test_the_proof_lapses_with_the_next_iteration() -> None:
    after = history(Proved(tree="t", passed=True), ended(Kind.ACCEPTED))
    assert decide(plan(State.DONE), after, LIMITS, 0) == Prove()


def test_finishing_counts_even_at_the_cap() -> None:
    full = history(*[ended(Kind.ACCEPTED, n) for n in range(1, 21)])
    assert decide(plan(State.DONE), full, LIMITS, 9e9) == Prove()
    stop = decide(plan(State.TODO), full, LIMITS, 9e9)
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.ITERATION_CAP


def test_fix_comes_before_review_and_review_before_new_work() -> None:
    needs, changes = Review(ReviewStatus.NEEDS_REVIEW), Review(ReviewStatus.CHANGES_REQUESTED, 1, "x")
    stories = [
        Story(id="A", title=""),
        Story(id="B", title="", state=State.IN_PROGRESS, review=needs),
        Story(id="C", title="", state=State.IN_PROGRESS, review=changes),
    ]
    seen = []
    for count in (3, 2, 1):
        one = Plan(name="p", stories=tuple(stories[:count]), reviewed=True)
        seen.append(decide(one, History(), LIMITS, 0, review=True))
    assert seen == [Work("C", Mode.FIX), Work("B", Mode.REVIEW), Work("A", Mode.IMPLEMENT)]


def test_setup_runs_once_and_first() -> None:
    assert decide(plan(State.TODO), History(), LIMITS, 0, needs_setup=True) == Work("", Mode.SETUP)
    done = history(IterationEnded(iteration=1, story="", mode=Mode.SETUP, kind=Kind.ACCEPTED))
    assert decide(plan(State.TODO), done, LIMITS, 0, needs_setup=True) == Work("S0", Mode.IMPLEMENT)


def test_a_question_sets_its_story_aside_and_the_others_go_on() -> None:
    asked = history(ended(Kind.BLOCKED, story="S0", question="Which database?"))
    assert decide(plan(State.TODO, State.TODO), asked, LIMITS, 0) == Work("S1", Mode.IMPLEMENT)
    stop = decide(plan(State.TODO, State.DONE), asked, LIMITS, 0)
    assert stop == Stop(Reason.WAITING, "S0: Which database?")
    assert Reason.WAITING.exit_code == 3


def test_only_failed_stories_left_ends_unfinished() -> None:
    stop = decide(plan(State.FAILED, State.DONE), History(), LIMITS, 0)
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.reason.exit_code) == (Reason.FAILED_STORIES, 5)


def test_misconfiguration_stops_at_once_with_the_fix() -> None:
    wrong = history(ended(Kind.MISCONFIGURED, headline="log the agent in"))
    assert decide(plan(State.TODO), wrong, LIMITS, 0) == Stop(Reason.MISCONFIGURED, "log the agent in")
    assert Reason.MISCONFIGURED.exit_code == 78


# The limits


@pytest.mark.parametrize("kind", [Kind.REJECTED, Kind.CRASHED, Kind.TIMED_OUT, Kind.PARTIAL])
def test_no_progress_trips_at_its_threshold_and_progress_resets_it(kind: Kind) -> None:
    bad = [ended(kind, n, fingerprint=str(n)) for n in (1, 2, 3)]
    assert isinstance(decide(plan(State.TODO), history(*bad[:2]), LIMITS, 9e9), Work)
    stop = decide(plan(State.TODO), history(*bad), LIMITS, 9e9)
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.NO_PROGRESS
    rescued = history(*bad[:2], ended(Kind.ACCEPTED, 3), *bad[:2])
    assert isinstance(decide(plan(State.TODO), rescued, LIMITS, 9e9), Work)


def test_the_same_error_trips_at_its_threshold() -> None:
    limits = Limits(no_progress=0)
    same = [ended(Kind.REJECTED, n, fingerprint="abc") for n in range(1, 6)]
    assert isinstance(decide(plan(State.TODO), history(*same[:4]), limits, 9e9), Work)
    stop = decide(plan(State.TODO), history(*same), limits, 9e9)
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.SAME_ERROR
    other = history(*same[:4], ended(Kind.REJECTED, 5, fingerprint="def"))
    assert isinstance(decide(plan(State.TODO), other, limits, 9e9), Work)


def test_a_limit_waits_for_its_reset_and_costs_nothing() -> None:
    limited = history(ended(Kind.LIMIT, resets_at=5000.0))
    assert limited.iterations == 0
    assert decide(plan(State.TODO), limited, LIMITS, 1001) == Wait(5000.0, "the usage limit is reached")
    assert decide(plan(State.TODO), limited, LIMITS, 5000.0) == Work("S0", Mode.IMPLEMENT)


def test_a_limit_without_a_reset_waits_a_while_and_an_absurd_one_is_capped() -> None:
    unknown = decide(plan(State.TODO), history(ended(Kind.LIMIT)), LIMITS, 1001)
    assert unknown == Wait(1000 + LIMITS.unknown_reset_wait, "the usage limit is reached")
    absurd = decide(plan(State.TODO), history(ended(Kind.LIMIT, resets_at=9e12)), LIMITS, 1001)
    assert absurd == Wait(1000 + LIMITS.longest_wait, "the usage limit is reached")


def test_exit_at_a_limit_is_a_choice() -> None:
    stop = decide(plan(State.TODO), history(ended(Kind.LIMIT, resets_at=5000.0)), Limits(on_limit=OnLimit.EXIT), 1001)
    assert isinstance(stop, Stop)
    assert stop.reason.exit_code == 2


def test_transport_failures_back_off_and_give_up() -> None:
    waits = []
    for count in range(1, 6):
        move = decide(plan(State.TODO), history(*[ended(Kind.TRANSPORT)] * count, apart=0), LIMITS, 1000)
        assert isinstance(move, Wait)
        waits.append(move.until - 1000)
    assert waits == [2, 4, 8, 16, 32]
    stop = decide(plan(State.TODO), history(*[ended(Kind.TRANSPORT)] * 6), LIMITS, 1000)
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.TRANSPORT


def agent_start() -> AgentStarted:
    return AgentStarted(iteration=1, step="agent", pid=1, start="1")


def test_the_rate_waits_until_the_oldest_start_leaves_the_hour() -> None:
    limits = Limits(rate_per_hour=3)
    three = history(agent_start(), agent_start(), agent_start(), start=1000, apart=10)
    move = decide(plan(State.TODO), three, limits, 1030)
    assert isinstance(move, Wait)
    assert move.until == 1000 + 3600
    assert isinstance(decide(plan(State.TODO), three, limits, 4601), Work)


@pytest.mark.parametrize(
    ("kind", "reason", "code"),
    [
        (Kind.ACCEPTED, Reason.ONCE, 0),
        (Kind.TIMED_OUT, Reason.ONCE_TIMED_OUT, 124),
        (Kind.REJECTED, Reason.ITERATION_CAP, 1),
    ],
)
def test_once_is_one_iteration(kind: Kind, reason: Reason, code: int) -> None:
    stop = decide(plan(State.TODO), history(ended(kind)), Limits(once=True), 9e9)
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.reason.exit_code) == (reason, code)


def test_the_hour_forgets_old_starts() -> None:
    old = history(*[agent_start()] * 50, start=0, apart=1000)
    assert len(old.calls) <= 4


events = st.lists(
    st.one_of(
        st.builds(
            ended,
            st.sampled_from(Kind),
            fingerprint=st.sampled_from(["", "a", "b"]),
            resets_at=st.one_of(st.none(), st.floats(0, 1e12)),
        ),
        st.just(agent_start()),
        st.just(RunStarted(run="r", workspace="", layout="", plan="", pid=1)),
    ),
    max_size=30,
)


@given(events, st.floats(0, 1e6), st.floats(0, 1e4))
def test_a_run_never_waits_for_the_past_nor_for_ever_nor_goes_over_its_cap(
    happened: list[AnyEvent], start: float, later: float
) -> None:
    past = history(*happened, start=start)
    now = start + len(happened) + later
    limits = Limits(max_iterations=10, rate_per_hour=5)
    move = decide(plan(State.TODO, State.TODO), past, limits, now)
    assert move == decide(plan(State.TODO, State.TODO), past, limits, now)
    if isinstance(move, Wait):
        assert now < move.until <= now + limits.longest_wait
    if isinstance(move, Work):
        assert past.iterations < 10
        assert sum(call > now - 3600 for call in past.calls) < 5


def test_every_reason_has_an_exit_code_of_the_table() -> None:
    assert {reason.exit_code.value for reason in Reason} <= {0, 1, 2, 3, 4, 5, 6, 65, 78, 124, 130, 143}
    assert msgspec.json.decode(msgspec.json.encode(Stop(Reason.WAITING, "x")), type=Stop).reason is Reason.WAITING
