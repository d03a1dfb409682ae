"""Forecasts: the same each time, never cheaper for a longer plan, and honest about what they do not know."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from ralph.budget.forecast import ENOUGH, ENOUGH_TO_STOP, chance, forecast, kept, prior
from ralph.journal.ledger import Finished, Foretold, Held, Sample

samples = st.lists(
    st.builds(
        Sample, st.integers(1, 20), st.floats(0, 10_000), st.none() | st.integers(0, 10**8), st.integers(0, 10**9)
    ),
    max_size=12,
)
SAME = [Sample(2, 100, 500_000, 1000)] * ENOUGH_TO_STOP


@settings(max_examples=40)
@given(samples, st.integers(1, 80), st.integers(1, 80))
def test_more_stories_are_never_foreseen_to_take_less(past: list[Sample], few: int, more: int) -> None:
    few, more = sorted((few, more))
    small, large = forecast(past, few), forecast(past, more)
    for one, other in ((small.iterations, large.iterations), (small.seconds, large.seconds)):
        assert one[0] <= other[0]
        assert one[1] <= other[1]
    assert (small.usd is None) == (large.usd is None)
    if small.usd is not None and large.usd is not None:
        assert small.usd[0] <= large.usd[0]
        assert small.usd[1] <= large.usd[1]


@settings(max_examples=40)
@given(samples, st.integers(0, 200))
def test_every_figure_is_a_number_and_half_is_not_more_than_most(past: list[Sample], stories: int) -> None:
    seen = forecast(past, stories)
    assert seen == forecast(past, stories)
    for figures in (seen.iterations, seen.seconds, seen.usd, seen.tokens):
        if figures is not None:
            assert all(math.isfinite(figure) and figure >= 0 for figure in figures)
            assert figures[0] <= figures[1]


@settings(max_examples=40)
@given(samples, st.integers(1, 50), st.integers(0, 10**9), st.integers(0, 10**9))
def test_more_money_never_makes_it_less_likely(past: list[Sample], stories: int, some: int, more: int) -> None:
    some, more = sorted((some, more))
    low, high = chance(past, stories, some, None), chance(past, stories, more, None)
    assert (low is None) == (high is None)
    if low is not None and high is not None:
        assert 0 <= low <= high <= 1


def test_stories_that_were_all_alike_leave_nothing_open() -> None:
    seen = forecast(SAME, 3)
    assert (seen.iterations, seen.seconds, seen.usd, seen.tokens) == ((6, 6), (300, 300), (1.5, 1.5), (3000, 3000))
    assert chance(SAME, 3, 1_500_000, None) == 1
    assert chance(SAME, 3, 1_499_999, None) == 0
    assert chance(SAME, 3, None, 2999) == 0


def test_without_a_history_it_is_a_guess_and_stops_nothing() -> None:
    seen = forecast([], 4)
    assert seen.samples == 0
    assert (seen.usd, seen.tokens) == (None, None), "nothing is known about money"
    assert forecast(SAME[: ENOUGH - 1], 4).usd is None
    assert forecast(SAME[:ENOUGH], 4).usd is not None
    assert seen.iterations[0] >= 4
    assert forecast([], 4, review=True).iterations[0] >= 8
    assert len(prior(False)) == len(prior(True))
    assert chance(SAME[:-1], 4, 1, None) is None
    assert chance(SAME, 4, None, None) is None


def test_an_agent_that_tells_no_costs_has_no_forecast_of_them() -> None:
    silent = [Sample(2, 100, None, 0)] * ENOUGH_TO_STOP
    assert forecast(silent, 3).usd is None
    assert forecast(silent, 3).tokens is None
    assert chance(silent, 3, 10**9, None) is None


def test_it_is_told_how_often_forecasts_held() -> None:
    def held(half: float, most: float, came: int) -> Held:
        return Held(
            Foretold(t=0, run="r", iterations=(half, most), seconds=(0, 0)),
            Finished(t=1, run="r", iterations=came, seconds=1),
        )

    told = kept([held(3, 5, 3), held(3, 5, 4), held(3, 5, 6)])
    assert (told.runs, told.within_half, told.within_most) == (3, 1, 2)
