"""Starts and tokens within any hour, also those of earlier runs."""

from __future__ import annotations

from ralph.core.moves import Wait, Work
from ralph.core.rules import Limits
from support.decisions import HOUR, NOW, Told, agent_end, agent_start

TOKENS = Limits(tokens_per_hour=1000)


def test_starts_of_earlier_runs_count() -> None:
    run = Told(Limits(rate_per_hour=2), calls=(NOW - 600, NOW - 1200))
    move = run.decide()
    assert isinstance(move, Wait)
    assert move == Wait(NOW - 1200 + HOUR, "2 agent starts in the last hour; the cap is 2")


def test_over_the_cap_as_many_have_to_be_forgotten_as_it_takes() -> None:
    run = Told(Limits(rate_per_hour=1), calls=(NOW - 300, NOW - 200, NOW - 100))
    move = run.decide()
    assert isinstance(move, Wait)
    assert move.until == NOW - 100 + HOUR


def test_tokens_are_counted_when_they_are_reported_and_forgotten_after_an_hour() -> None:
    run = Told(TOKENS).say(agent_end(600)).wait(60).say(agent_end(300)).wait(60)
    assert isinstance(run.decide(), Work)
    move = run.say(agent_end(200)).decide()
    assert isinstance(move, Wait)
    assert (move.until, move.why) == (NOW + HOUR, "1,100 tokens in the last hour; the cap is 1,000")
    assert isinstance(run.wait(HOUR - 120).decide(), Work)


def test_one_session_over_the_cap_alone_is_waited_for_an_hour_and_not_longer() -> None:
    run = Told(TOKENS).say(agent_end(50_000))
    move = run.decide()
    assert isinstance(move, Wait)
    assert move.until == NOW + HOUR


def test_tokens_of_earlier_runs_count() -> None:
    move = Told(TOKENS, used=((NOW - 60, 5000),)).decide()
    assert isinstance(move, Wait)
    assert move.until == NOW - 60 + HOUR


def test_the_longer_of_both_waits_is_waited() -> None:
    limits = Limits(rate_per_hour=1, tokens_per_hour=10)
    move = Told(limits).say(agent_start()).wait(900).say(agent_end(20)).decide()
    assert isinstance(move, Wait)
    assert move.until == NOW + 900 + HOUR
    assert "tokens" in move.why
