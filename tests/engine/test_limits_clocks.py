"""Clocks are set forward and back, laptops sleep, summer time begins and ends. No guard waits for ever."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from ralph.core.events import Noted, Resumed
from ralph.core.moves import Reason, Stop, Wait, Work
from ralph.core.rules import Limits
from ralph.core.verdict import Kind
from ralph.views.words import until_when
from support.decisions import HOUR, NOW, Told, agent_start, ended

DAY = 24 * HOUR


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = os.environ.get("TZ")
    monkeypatch.setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3")
    time.tzset()
    yield
    if before is None:
        monkeypatch.delenv("TZ")
    else:
        monkeypatch.setenv("TZ", before)
    time.tzset()


def test_a_laptop_that_slept_past_the_reset_goes_on_at_once() -> None:
    run = Told().say(ended(Kind.LIMIT, resets_at=NOW + HOUR))
    assert isinstance(run.decide(), Wait)
    assert isinstance(run.wait(9 * HOUR).decide(), Work)


@pytest.mark.parametrize("back", [1, 60, HOUR, 3 * HOUR, 400 * DAY])
def test_a_clock_set_back_makes_no_pause_longer(back: float) -> None:
    run = Told().say(ended(Kind.TRANSPORT))
    run.now -= back
    move = run.say(Noted("any event")).decide()
    assert isinstance(move, Wait)
    assert move.until - run.now <= 2
    assert isinstance(run.wait(2).decide(), Work)


@pytest.mark.parametrize("back", [60, 3 * HOUR, 400 * DAY])
def test_a_clock_set_back_before_any_event_bounds_the_pause_too(back: float) -> None:
    run = Told().say(ended(Kind.TRANSPORT))
    run.now -= back
    move = run.decide()
    assert isinstance(move, Wait)
    assert move.until - run.now <= 2


def test_the_hour_of_the_rate_is_as_long_after_the_clock_was_set_back() -> None:
    run = Told(Limits(rate_per_hour=2)).say(agent_start()).wait(600).say(agent_start())
    run.wait(600).say(Noted("any event"))
    run.now -= 3 * HOUR
    run.say(Noted("any event"))
    move = run.decide()
    assert isinstance(move, Wait)
    assert move.until - run.now == HOUR - 1200, "neither a second helping nor a longer wait"
    assert isinstance(run.wait(HOUR - 1200).decide(), Work)


def test_a_clock_set_forward_gives_the_rate_its_hour_early_and_nothing_worse() -> None:
    run = Told(Limits(rate_per_hour=1)).say(agent_start())
    assert isinstance(run.wait(2 * HOUR).decide(), Work)


def test_the_time_of_a_run_is_what_has_passed_whatever_the_clock_says() -> None:
    run = Told(Limits(max_time=HOUR)).wait(1800).say(Noted("any event"))
    run.now -= 5 * HOUR
    run.say(Noted("any event"))
    assert isinstance(run.wait(1799).decide(), Work)
    stop = run.wait(1).decide()
    assert isinstance(stop, Stop)
    assert (stop.reason, stop.reason.exit_code) == (Reason.TIME_CAP, 6)


def test_a_pause_is_not_counted() -> None:
    run = Told(Limits(max_time=HOUR)).wait(3 * HOUR).say(Resumed(3 * HOUR - 60))
    assert isinstance(run.decide(), Work)


def test_a_reset_in_the_future_of_a_clock_set_back_is_still_bounded() -> None:
    run = Told(Limits(longest_wait=DAY)).say(ended(Kind.LIMIT, resets_at=NOW + HOUR))
    run.now -= 300 * DAY
    move = run.decide()
    assert isinstance(move, Wait)
    assert move.until - run.now <= DAY


def test_starts_of_an_earlier_run_that_lie_in_the_future_count_as_now() -> None:
    run = Told(Limits(rate_per_hour=1), calls=(NOW + 7 * DAY,))
    move = run.decide()
    assert isinstance(move, Wait)
    assert move.until - run.now == HOUR


@pytest.mark.usefixtures("berlin")
@pytest.mark.parametrize(
    "moment",
    [1_774_746_000.0, 1_792_890_000.0],  # 29 March 2026 and 25 October 2026, 02:00 in Berlin
)
def test_an_hour_over_the_change_to_summer_time_is_an_hour(moment: float) -> None:
    run = Told(Limits(rate_per_hour=1))
    run.now = moment - 1800
    move = run.say(agent_start()).decide()
    assert isinstance(move, Wait)
    assert move.until - run.now == HOUR
    assert until_when(move.until, run.now).endswith("in 1 h 00 m")
    assert isinstance(run.wait(HOUR).decide(), Work)


@pytest.mark.usefixtures("berlin")
def test_a_wait_that_ends_on_another_day_is_told_with_that_day() -> None:
    assert until_when(1_774_746_000.0 + 30 * HOUR, 1_774_746_000.0).startswith("2026-03-30 ")
    assert until_when(1_774_746_000.0 + 60, 1_774_746_000.0) == "03:01:00, in 1 m 00 s"
