"""Whatever happens, and whatever the clock does: no wait into the past or for ever, no start over a cap, and the same
journal gives the same decisions."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.core.events import (
    AnyEvent,
    Charged,
    Decided,
    IterationStarted,
    LimitAnswered,
    Noted,
    PlanSeen,
    Record,
    Resumed,
    SpendingSeen,
    StorySetAside,
)
from ralph.core.fallback import rests_until
from ralph.core.history import History, fold
from ralph.core.money import MICROS, Amount, Basis, Budget, Elsewhere, rooms, story_rooms
from ralph.core.moves import SetAside, Stop, Wait, Work
from ralph.core.plan import Mode, State
from ralph.core.rules import Limits, OnLimit, OnStuck
from ralph.core.verdict import Kind
from ralph.engine.decide import decide
from ralph.journal.run_state import seen_story
from ralph.run.replay import replay
from support.decisions import HOUR, NOW, Told, agent_end, agent_start, attempt, baseline, ended, heard, plan, started

STORIES = ("S0", "S1", "S2")
names = st.sampled_from(("unit", "lint", "own"))
times = st.one_of(st.floats(NOW - 1e6, NOW + 1e6), st.floats(0, 1e11))
events = st.one_of(
    st.builds(
        ended,
        st.sampled_from(Kind),
        st.sampled_from(STORIES),
        fingerprint=st.sampled_from(["", "a", "b"]),
        resets_at=st.none() | times,
    ).map(lambda event: [event]),
    st.builds(attempt, st.dictionaries(names, st.booleans()), st.sampled_from(Kind), st.sampled_from(STORIES)),
    st.builds(
        heard,
        st.sampled_from(["five_hour", "seven_day", ""]),
        rejected=st.booleans(),
        resets_at=times,
        used=st.floats(0, 2),
    ).map(lambda event: [event]),
    st.builds(
        agent_end, st.integers(0, 10**6), code=st.sampled_from([0, 1, None]), seconds=st.floats(0, 2), said=st.text()
    ).map(lambda event: [event]),
    st.builds(lambda: [agent_start()]),
    st.builds(lambda answer: [LimitAnswered(answer)], st.sampled_from(["wait", "exit", "nobody"])),
    st.builds(lambda story: [StorySetAside(story, "", "stuck")], st.sampled_from(STORIES)),
    st.builds(lambda results: [baseline(results)], st.dictionaries(names, st.booleans())),
    st.builds(lambda seconds: [Resumed(seconds)], st.floats(0, 1e4)),
    st.just([Noted("something")]),
    st.just([agent_end(code=1, seconds=0.1, said="no"), ended(Kind.CRASHED)]),
    st.just([ended(Kind.TRANSPORT)] * 2),
    st.builds(
        lambda story, choice: [
            IterationStarted(iteration=1, story=story, title="", mode=Mode.IMPLEMENT, attempt=1, choice=choice)
        ],
        st.sampled_from(STORIES),
        st.sampled_from(["", "sonnet", "other"]),
    ),
    st.builds(
        lambda story, usd, count: [
            Charged(iteration=1, story=story, id="x", basis=Basis.REPORTED, usd=usd, tokens=count)
        ],
        st.sampled_from(STORIES),
        st.none() | st.floats(0, 2),
        st.integers(0, 1000),
    ),
    st.builds(
        lambda day, ever, held: [SpendingSeen(elsewhere=Elsewhere(Amount(day), Amount(ever), Amount(held)))],
        *[st.integers(0, 2 * MICROS)] * 3,
    ),
)
jumps = st.one_of(st.floats(0, 100), st.floats(0, 1e5), st.floats(-1e6, 0))
happenings = st.lists(st.tuples(events, jumps), max_size=25)
bounds = st.builds(
    Limits,
    max_iterations=st.integers(1, 10),
    no_progress=st.integers(0, 4),
    same_error=st.integers(0, 4),
    on_stuck=st.sampled_from(OnStuck),
    rate_per_hour=st.integers(0, 5),
    tokens_per_hour=st.sampled_from([0, 1000, 10**6]),
    max_transport=st.integers(0, 3),
    crash_loop=st.integers(0, 3),
    max_time=st.sampled_from([0.0, HOUR]),
    on_limit=st.sampled_from(OnLimit),
    limit_share=st.sampled_from([0.0, 0.5, 0.8, 1.0]),
    jitter=st.sampled_from([0.0, 30.0]),
    fallback=st.sampled_from([(), ("sonnet",), ("sonnet", "other")]),
    fallback_after=st.integers(1, 3),
    fallback_cooldown=st.sampled_from([0.0, 600.0, 1e5]),
    budget=st.builds(
        Budget,
        run_usd=st.sampled_from([0.0, 1.0]),
        story_usd=st.sampled_from([0.0, 0.5]),
        day_usd=st.sampled_from([0.0, 1.5]),
        workspace_usd=st.sampled_from([0.0, 1.9]),
        run_tokens=st.sampled_from([0, 1500]),
    ),
)
OPEN = Limits(max_iterations=10**6, no_progress=0, same_error=0, max_transport=10**6)
one_bound = st.builds(
    lambda change: msgspec.structs.replace(OPEN, **change),
    st.one_of(
        *[
            st.just({name: value})
            for name, value in {
                "rate_per_hour": 1,
                "tokens_per_hour": 10,
                "max_time": HOUR,
                "max_iterations": 1,
            }.items()
        ],
        *[st.just({name: 1}) for name in ("crash_loop", "max_transport")],
        *[
            st.just({"budget": Budget(**{name: 0.2})})  # type: ignore[arg-type]
            for name in ("run_usd", "story_usd", "day_usd", "workspace_usd")
        ],
        st.just({"budget": Budget(run_tokens=100)}),
    ),
)
"""With many bounds at once most runs are stopped by another one than the one that is looked at."""


def told(limits: Limits, happened: list[tuple[list[AnyEvent], float]], **begun: Any) -> Told:
    run = Told(limits, **begun)
    for batch, jump in happened:
        run.say(*batch).wait(jump)
    return run


@given(bounds, happenings)
def test_no_wait_is_over_already_or_lasts_for_ever(
    limits: Limits, happened: list[tuple[list[AnyEvent], float]]
) -> None:
    run = told(limits, happened)
    move = run.decide()
    if isinstance(move, Wait):
        assert run.now < move.until <= run.now + max(limits.longest_wait, HOUR)


@given(bounds, happenings)
def test_after_the_wait_comes_something_else_than_the_same_wait(
    limits: Limits, happened: list[tuple[list[AnyEvent], float]]
) -> None:
    """As the loop does it: waits, writes that it has, decides again. Several guards may have their turn."""
    run = told(limits, happened)
    for _ in range(12):
        move = run.decide()
        if not isinstance(move, Wait):
            return
        run.say(Noted("waits"))
        run.now = move.until
        run.say(SpendingSeen())  # whoever had set money aside has given it back
    raise AssertionError(move)


@settings(max_examples=400)
@given(bounds | one_bound, happenings)
def test_no_work_starts_over_a_cap(limits: Limits, happened: list[tuple[list[AnyEvent], float]]) -> None:
    run = told(limits, happened)
    move = run.decide()
    if not isinstance(move, Work):
        return
    assert move.choice in ("", *limits.fallback)
    assert move.choice == "" or not rests_until(run.history.bench, limits, move.choice, run.now)
    history, recent = run.history, run.now - HOUR
    assert history.iterations < limits.max_iterations
    assert not limits.rate_per_hour or sum(call > recent for call in history.calls) < limits.rate_per_hour
    used = sum(count for when, count in history.used if when > recent)
    assert not limits.tokens_per_hour or used < limits.tokens_per_hour
    assert not limits.crash_loop or history.crashes < limits.crash_loop
    assert not limits.max_time or run.now - history.started < limits.max_time
    assert history.last_kind is not Kind.TRANSPORT or history.transport <= limits.max_transport
    spending = history.spending
    assert all(room.left for room in rooms(limits.budget, spending.run, spending.elsewhere))
    assert all(room.left for room in story_rooms(limits.budget, spending.of(move.story)))


@given(bounds, happenings)
def test_nothing_that_was_set_aside_or_is_stuck_is_worked_on(
    limits: Limits, happened: list[tuple[list[AnyEvent], float]]
) -> None:
    run = told(limits, happened)
    move = run.decide()
    if isinstance(move, Work):
        assert move.story not in run.history.aside
        assert not run.history.stories.get(move.story) or not run.history.stories[move.story].trip(limits)
    if isinstance(move, SetAside):
        assert run.say(StorySetAside(move.story, "", move.why)).decide() != move


@given(bounds, happenings, st.integers(0, 10**6))
def test_the_same_journal_gives_the_same_decisions_after_a_trip_over_the_disk(
    limits: Limits, happened: list[tuple[list[AnyEvent], float]], seed: int
) -> None:
    run = told(limits, happened, run=str(seed))
    records = [Record(1, NOW, started(run=str(seed), limits=limits)), Record(2, NOW, whole())]
    history = fold(History(), records[0].event, NOW)
    history = fold(history, records[1].event, NOW)
    for event, at in run.told[1:]:
        t = round(at, 3)
        records.append(Record(len(records) + 1, t, event))
        history = fold(history, event, t)
        records.append(Record(len(records) + 1, t, Decided(decide(plan(), history, limits, t), t)))
        history = fold(history, records[-1].event, t)
    again = msgspec.json.decode(msgspec.json.encode(records), type=list[Record])
    replayed = replay(again)
    assert replayed.decisions == len(run.told) - 1
    assert not [d for d in replayed.differences if d.what == "the decision"]


def whole() -> PlanSeen:
    return PlanSeen(whole=True, stories=tuple(seen_story(story) for story in plan(*[State.TODO] * 3).stories))


@given(st.lists(st.tuples(st.dictionaries(names, st.booleans()), st.sampled_from(["", "a", "b"])), max_size=20))
def test_without_anything_accepted_a_story_is_given_up_in_bounded_time(
    attempts: list[tuple[dict[str, bool], str]],
) -> None:
    """Progress is bounded by the number of checks: nobody can go on for ever by pretending."""
    run, limits = Told(Limits(on_stuck=OnStuck.NEXT)), Limits()
    for count, (results, error) in enumerate(attempts):
        if not isinstance(run.decide(), Work):
            assert isinstance(run.decide(), SetAside | Stop)
            assert count >= min(limits.no_progress, limits.same_error)
            return
        run.say(*attempt(results, fingerprint=error))
        assert count < limits.no_progress * (len(("unit", "lint", "own")) + 1)
