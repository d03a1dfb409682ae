"""Agents that die at once, ways to the model that are broken, and the end of a run's time."""

from __future__ import annotations

import pytest

from ralph.core.events import AnyEvent, IterationStarted
from ralph.core.moves import Reason, Stop, Wait, Work
from ralph.core.plan import Mode
from ralph.core.rules import Limits, OnStuck
from ralph.core.verdict import Kind
from support.decisions import HOUR, Told, agent_end, ended

CRASHES = Limits(crash_loop=3, on_stuck=OnStuck.NEXT)


def dies(said: str = "", story: str = "S0", seconds: float = 0.2, **how: int) -> list[AnyEvent]:
    begun = IterationStarted(iteration=1, story=story, title="", mode=Mode.IMPLEMENT, attempt=1)
    code = None if how else 3
    return [begun, agent_end(code=code, seconds=seconds, said=said, **how), ended(Kind.CRASHED, story)]


def test_agents_that_die_at_once_stop_the_run_with_what_they_said() -> None:
    run = Told(CRASHES).say(*dies("loading\ncannot load libfoo\n"), *dies("cannot load libfoo"))
    assert isinstance(run.decide(), Work)
    stop = run.say(*dies("warming up\nerror: cannot load libfoo\n\n")).decide()
    assert stop == Stop(
        Reason.CRASH_LOOP,
        "the agent crashed within a second of starting, 3 times in a row: exit code 3, error: cannot load libfoo",
    )
    assert Reason.CRASH_LOOP.exit_code == 78


def test_the_story_is_not_blamed_for_it() -> None:
    stop = Told(CRASHES).say(*dies(), *dies(), *dies()).decide()
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.CRASH_LOOP


def test_a_signal_is_named_and_silence_is_said() -> None:
    run = Told(CRASHES).say(*dies(signal=9), *dies(signal=9), *dies(signal=9))
    stop = run.decide()
    assert isinstance(stop, Stop)
    assert stop.detail.endswith("signal 9, without a word on stderr")


@pytest.mark.parametrize(
    "between",
    [
        dies(seconds=30),
        [ended(Kind.REJECTED, "S1")],
        [ended(Kind.ACCEPTED, "S1")],
        [agent_end(code=3, seconds=0.1, tools=1), ended(Kind.CRASHED)],
        [agent_end(code=3, seconds=0.1, text="I began"), ended(Kind.CRASHED)],
    ],
)
def test_an_agent_that_has_done_anything_begins_the_count_anew(between: list[AnyEvent]) -> None:
    run = Told(CRASHES).say(*dies(), *dies(), *between, *dies())
    assert run.history.crashes == 1


def test_a_broken_connection_in_between_does_not() -> None:
    assert Told(CRASHES).say(*dies(), *dies(), ended(Kind.TRANSPORT), *dies()).history.crashes == 3


def test_pauses_on_a_broken_way_to_the_model_grow_up_to_five_minutes() -> None:
    run = Told(Limits(max_transport=20))
    waits = []
    for _ in range(10):
        move = run.say(ended(Kind.TRANSPORT, headline="503")).decide()
        assert isinstance(move, Wait)
        assert "503" in move.why
        waits.append(move.until - run.now)
        run.wait(waits[-1])
    assert waits == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]


def test_the_last_thing_heard_is_in_the_reason() -> None:
    stop = Told(Limits(max_transport=1)).say(*[ended(Kind.TRANSPORT, headline="the answer was empty")] * 2).decide()
    assert stop == Stop(
        Reason.TRANSPORT, "the connection to the model failed 2 times in a row; last error: the answer was empty"
    )


def test_a_run_starts_nothing_when_its_time_is_over() -> None:
    run = Told(Limits(max_time=HOUR)).wait(HOUR - 1)
    assert isinstance(run.decide(), Work)
    assert run.wait(1).decide() == Stop(Reason.TIME_CAP, "the run took 1 h 00 m; the limit is 1 h 00 m")
    assert isinstance(Told().wait(1000 * HOUR).decide(), Work)
