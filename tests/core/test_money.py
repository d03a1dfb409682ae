"""Amounts, budgets and what is left of them: exact in any order, never negative, never fooled by what agents report."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from ralph.core.money import (
    MICROS,
    Amount,
    Budget,
    Elsewhere,
    Room,
    Scope,
    dollars,
    micros,
    overspent,
    rooms,
    share,
    story_rooms,
    total,
    whole_tokens,
)

amounts = st.builds(Amount, st.integers(0, 10**12), st.integers(0, 10**12), st.integers(0, 5))


@given(st.lists(st.floats(0, 10_000), max_size=30), st.randoms())
def test_the_same_costs_come_to_the_same_sum_in_whatever_order(costs: list[float], dice: object) -> None:
    exact = [Amount(micros(cost) or 0) for cost in costs]
    shuffled = list(exact)
    dice.shuffle(shuffled)  # type: ignore[attr-defined]
    assert total(exact) == total(shuffled)
    assert total(exact).micros == sum(round(cost * MICROS) for cost in costs)


@given(st.floats() | st.integers() | st.none())
def test_whatever_is_reported_a_sum_is_never_negative_and_always_a_number(cost: float | None) -> None:
    found = micros(cost)
    assert found is None or 0 <= found <= 10**15


def test_what_is_no_sum_of_money_is_not_taken_for_one() -> None:
    odd = [None, -0.01, math.nan, math.inf, -math.inf, 1e300, True]
    assert [micros(cost) for cost in odd] == [None] * len(odd)
    assert (micros(0), micros(0.0000004), micros(1.25)) == (0, 0, 1_250_000)
    assert (whole_tokens(-5), whole_tokens(10**30), whole_tokens(7)) == (0, 0, 7)


def test_each_budget_looks_at_its_own_sum() -> None:
    budget = Budget(run_usd=1, day_usd=2, workspace_tokens=300)
    seen = Elsewhere(day=Amount(500_000), ever=Amount(9_000_000, 250), held=Amount(100_000, 20))
    run, day, ever = rooms(budget, Amount(400_000, 10), seen)
    assert (run.scope, run.left, run.key) == (Scope.RUN, 600_000, "budget.run_usd")
    assert (day.scope, day.left, day.is_money) == (Scope.DAY, 1_400_000, True)
    assert (ever.scope, ever.left, ever.key) == (Scope.WORKSPACE, 30, "budget.workspace_tokens")
    assert not list(rooms(Budget(), Amount(5), seen))
    (endless,) = rooms(Budget(run_usd=1e30), Amount(5), seen)
    assert not endless.is_spent
    assert not Budget(least_chance=0.5).is_set


def test_the_last_thousandth_of_a_budget_counts_as_nothing() -> None:
    """A client stops at its limit, give or take; else a next one would start with a fraction of a cent."""
    assert Room(Scope.RUN, True, 5_000_000, 4_995_000).is_spent
    assert not Room(Scope.RUN, True, 5_000_000, 4_990_000).is_spent
    assert Room(Scope.RUN, True, 1, 1).is_spent
    assert not Room(Scope.RUN, False, 500, 499).is_spent


def test_what_others_have_set_aside_is_taken_but_not_spent() -> None:
    room = Room(Scope.DAY, True, 1_000_000, 400_000, 600_000)
    assert (room.is_spent, room.is_taken, room.left) == (False, True, 0)
    assert not Room(Scope.DAY, True, 1_000_000, 1_000_000, 600_000).is_taken


def test_a_session_gets_the_least_of_what_bounds_it() -> None:
    run, story = Room(Scope.RUN, True, 5_000_000, 1_000_000), Room(Scope.STORY, True, 3_000_000, 500_000)
    assert share([], None, 0) is None
    assert share([Room(Scope.RUN, False, 10, 0)], None, 0) is None
    assert share([run, story], None, 0) == 2_500_000
    assert share([run, story], 2_000_000, 0) == 2_000_000


def test_of_a_shared_budget_half_is_left_to_others_unless_that_is_too_little() -> None:
    day = Room(Scope.DAY, True, 10_000_000, 2_000_000)
    assert share([day], None, 1_000_000) == 4_000_000
    assert share([day], None, 3_000_000) == 6_000_000
    assert share([day], None, 9_000_000) == 8_000_000


@given(amounts, amounts, amounts, amounts, st.floats(0, 100), st.integers(0, 10**6), st.integers(0, 10**9))
def test_what_is_given_to_a_session_is_never_more_than_is_left(
    run: Amount, day: Amount, ever: Amount, held: Amount, usd: float, tokens: int, costliest: int
) -> None:
    budget = Budget(run_usd=usd, day_usd=usd / 2, workspace_usd=usd * 2, story_usd=usd, run_tokens=tokens)
    found = [*rooms(budget, run, Elsewhere(day, ever, held)), *story_rooms(budget, run)]
    given_to_it = share(found, None, costliest)
    assert all(room.left >= 0 for room in found)
    if given_to_it is not None:
        assert 0 <= given_to_it <= min(room.left for room in found if room.is_money)


def test_stories_over_their_budget_are_found() -> None:
    spent = {"A": Amount(2_000_000), "B": Amount(100), "C": Amount(0, 50)}
    assert list(overspent(Budget(story_usd=1), spent)) == ["A"]
    assert list(overspent(Budget(story_tokens=50), spent)) == ["C"]
    assert overspent(Budget(run_usd=1), spent) == {}


def test_small_sums_are_told_more_exactly() -> None:
    assert [dollars(n) for n in (0, 1_200, 99_000, 1_234_567, 12_345_678_900)] == [
        "$0.00",
        "$0.0012",
        "$0.0990",
        "$1.23",
        "$12,345.68",
    ]
