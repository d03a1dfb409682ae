"""The promises of the documents the guards come from, row by row."""

from __future__ import annotations

import pytest

from ralph.core.moves import Prove, Reason, SetAside, Stop, Wait, Work
from ralph.core.plan import Mode, State
from ralph.core.rules import Limits, OnLimit, OnStuck
from ralph.core.verdict import Kind
from support.decisions import HOUR, Told, agent_start, attempt, ended, plan

STOPS = Limits(on_stuck=OnStuck.STOP)


# A loop with its limits: the table of test cases


def test_the_breaker_trips_at_the_threshold_of_no_progress() -> None:
    run = Told(STOPS)
    for number in range(2):
        run.say(ended(Kind.REJECTED, fingerprint=str(number)))
    assert isinstance(run.decide(), Work)
    stop = run.say(ended(Kind.REJECTED, fingerprint="3")).decide()
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.reason.exit_code) == (Reason.NO_PROGRESS, 1)


def test_the_breaker_trips_at_the_threshold_of_the_same_error() -> None:
    run = Told(Limits(on_stuck=OnStuck.STOP, no_progress=0))
    run.say(*[ended(Kind.REJECTED, fingerprint="e")] * 4)
    assert isinstance(run.decide(), Work)
    stop = run.say(ended(Kind.REJECTED, fingerprint="e")).decide()
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.reason.exit_code) == (Reason.SAME_ERROR, 1)


def test_the_breaker_resets_on_progress() -> None:
    run = Told(STOPS).say(ended(Kind.REJECTED), ended(Kind.REJECTED), ended(Kind.ACCEPTED))
    assert run.history.streak.no_progress == 0
    assert isinstance(run.say(ended(Kind.REJECTED, "S1"), ended(Kind.REJECTED, "S1")).decide(), Work)


def test_the_rate_pauses_at_its_limit_and_resets_after_an_hour() -> None:
    run = Told(Limits(rate_per_hour=2)).say(agent_start(), agent_start(), apart=60)
    move = run.decide()
    assert isinstance(move, Wait)
    assert move.until - run.now == HOUR - 120
    assert isinstance(run.wait(HOUR - 120).decide(), Work)


def test_finished_is_when_all_stories_are_and_the_checks_have_passed_once_more() -> None:
    assert Told().decide(plan(State.DONE, State.DONE)) == Prove()


@pytest.mark.parametrize(
    ("limits", "happened", "reason", "code"),
    [
        (Limits(max_iterations=1), [ended(Kind.ACCEPTED)], Reason.ITERATION_CAP, 1),
        (STOPS, [ended(Kind.REJECTED)] * 3, Reason.NO_PROGRESS, 1),
        (Limits(on_limit=OnLimit.EXIT), [ended(Kind.LIMIT, resets_at=9e9)], Reason.USAGE_LIMIT, 2),
        (Limits(max_transport=2), [ended(Kind.TRANSPORT)] * 3, Reason.TRANSPORT, 1),
        (Limits(), [ended(Kind.MISCONFIGURED, headline="no key")], Reason.MISCONFIGURED, 78),
    ],
)
def test_each_exit_condition_has_its_code(limits: Limits, happened: list, reason: Reason, code: int) -> None:  # type: ignore[type-arg]
    stop = Told(limits).say(*happened).decide()
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.reason.exit_code) == (reason, code)


# What each verdict costs


@pytest.mark.parametrize(
    ("kind", "counts", "feeds"),
    [
        (Kind.ACCEPTED, True, False),
        (Kind.PARTIAL, True, True),
        (Kind.REJECTED, True, True),
        (Kind.BLOCKED, True, False),
        (Kind.LIMIT, False, False),
        (Kind.TRANSPORT, False, False),
        (Kind.CRASHED, True, True),
        (Kind.TIMED_OUT, True, True),
        (Kind.MISCONFIGURED, True, False),
        (Kind.INTERRUPTED, False, False),
    ],
)
def test_what_a_verdict_counts_for(kind: Kind, counts: bool, feeds: bool) -> None:
    history = Told().say(ended(kind)).history
    assert (history.iterations == 1, history.streak.no_progress == 1) == (counts, feeds)
    assert ("S0" in history.stories) is feeds


@pytest.mark.parametrize("kind", [Kind.LIMIT, Kind.TRANSPORT, Kind.INTERRUPTED])
def test_what_costs_nothing_does_not_make_a_streak_shorter_either(kind: Kind) -> None:
    run = Told(STOPS).say(*[ended(Kind.REJECTED)] * 2, ended(kind))
    assert run.history.streak.no_progress == 2
    assert run.say(ended(Kind.REJECTED)).history.streak.no_progress == 3


def test_after_a_limit_comes_the_same_story() -> None:
    run = Told().say(ended(Kind.LIMIT, "S0", resets_at=Told().now + 100))
    assert isinstance(run.decide(), Wait)
    assert run.wait(100).decide() == Work("S0", Mode.IMPLEMENT)


def test_a_blocked_story_waits_and_the_others_go_on() -> None:
    assert Told().say(ended(Kind.BLOCKED, "S0", question="Which?")).decide() == Work("S1", Mode.IMPLEMENT)


# A loop over tasks: stuck on a task, it is failed and the next one is taken


def test_a_story_that_trips_is_set_aside_and_the_next_one_is_taken() -> None:
    run = Told(Limits(on_stuck=OnStuck.NEXT))
    for number in range(3):
        run.say(*attempt({"tests": False}, fingerprint=str(number), headline="tests fail"))
    move = run.decide()
    assert move == SetAside("S0", "3 iterations in a row without progress; last failure: tests fail")
