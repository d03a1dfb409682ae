"""The guard of the budgets: nothing starts with nothing left, each stop names its budget, no wait is for ever."""

from __future__ import annotations

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.events import AnyEvent, Charged, Foreseen, Record, SpendingSeen
from ralph.core.exit_codes import ExitCode
from ralph.core.history import History, fold
from ralph.core.money import Amount, Basis, Budget, Elsewhere, Spending
from ralph.core.moves import Reason, Stop, Wait, Work
from ralph.core.plan import Mode, Plan, Story
from ralph.core.rules import Limits
from ralph.engine.decide import decide
from ralph.engine.limits import budget as budget_limit

NOW = 1_700_000_000.0
PLAN = Plan(name="p", stories=(Story(id="A", title="a"), Story(id="B", title="b", priority=1)))


def charged(usd: float | None, tokens: int = 0, story: str = "A") -> Charged:
    basis = Basis.UNKNOWN if usd is None else Basis.REPORTED
    return Charged(iteration=1, story=story, id="x", basis=basis, usd=usd, tokens=tokens)


def after(*events: AnyEvent) -> History:
    history = History()
    for event in events:
        history = fold(history, event, NOW)
    return history


def ask(budget: Budget, *events: AnyEvent) -> Stop | Wait | None:
    return budget_limit(after(*events), Limits(budget=budget), NOW)


@pytest.mark.parametrize(
    ("budget", "events", "words"),
    [
        (
            Budget(run_usd=1),
            [charged(0.6), charged(0.5)],
            r"this run's budget of \$1\.00 \(budget\.run_usd\) is spent: \$1\.10; a new run starts",
        ),
        (Budget(run_tokens=100), [charged(None, 100)], r"100 tokens \(budget\.run_tokens\) is spent: 100 tokens"),
        (
            Budget(day_usd=2),
            [SpendingSeen(elsewhere=Elsewhere(day=Amount(2_000_000)))],
            r"today's budget of \$2\.00 \(budget\.day_usd\) is spent: \$2\.00; it resets tomorrow",
        ),
        (
            Budget(workspace_usd=2),
            [SpendingSeen(elsewhere=Elsewhere(ever=Amount(3_000_000)))],
            r"the workspace's budget .* `ralph runs cost --reset`",
        ),
        (Budget(day_tokens=5), [SpendingSeen(elsewhere=Elsewhere(day=Amount(0, 5)))], r"today's budget of 5 tokens"),
        (
            Budget(workspace_tokens=5),
            [SpendingSeen(elsewhere=Elsewhere(ever=Amount(0, 9)))],
            r"the workspace's budget of 5 tokens",
        ),
    ],
)
def test_a_spent_budget_stops_the_run_and_is_named(budget: Budget, events: list[AnyEvent], words: str) -> None:
    stop = ask(budget, *events)
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.BUDGET
    assert stop.reason.exit_code is ExitCode.BUDGET
    assert re.search(words, stop.detail), stop.detail


def test_without_a_budget_nothing_stops_it() -> None:
    assert ask(Budget(), charged(1e6, 10**12)) is None


def test_costs_nobody_knows_do_not_fill_a_budget_of_money_but_their_tokens_count() -> None:
    assert ask(Budget(run_usd=1), charged(None, 5000)) is None
    assert isinstance(ask(Budget(run_usd=1, run_tokens=5000), charged(None, 5000)), Stop)


def test_what_other_runs_have_set_aside_is_waited_for() -> None:
    held = SpendingSeen(elsewhere=Elsewhere(day=Amount(1_500_000), held=Amount(500_000)))
    wait = ask(Budget(day_usd=2), held)
    assert isinstance(wait, Wait)
    assert NOW < wait.until <= NOW + 60
    assert wait.why == "the rest of today's budget, $0.50, is reserved by other runs"


def test_a_spent_budget_is_told_before_one_that_is_taken() -> None:
    held = SpendingSeen(elsewhere=Elsewhere(day=Amount(0), held=Amount(2_000_000), ever=Amount(9_000_000)))
    assert isinstance(ask(Budget(day_usd=2, workspace_usd=5), held), Stop)


def test_a_story_over_its_budget_is_left_out_and_others_go_on() -> None:
    limits = Limits(budget=Budget(story_usd=1))
    history = after(charged(1.2, story="A"))
    assert decide(PLAN, history, limits, NOW) == Work("B", Mode.IMPLEMENT)
    stop = decide(PLAN, fold(history, charged(1, story="B"), NOW), limits, NOW)
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.BUDGET
    assert "A has spent $1.20 of $1.00 (budget.story_usd); B has spent $1.00" in stop.detail
    assert "budget.story_usd" in stop.detail


def test_what_earlier_runs_spent_on_a_story_counts() -> None:
    earlier = SpendingSeen(stories={"A": Amount(700_000)})
    limits = Limits(budget=Budget(story_usd=1))
    assert decide(PLAN, after(earlier), limits, NOW) == Work("A", Mode.IMPLEMENT)
    assert decide(PLAN, after(earlier, charged(0.4)), limits, NOW) == Work("B", Mode.IMPLEMENT)


def test_a_plan_that_can_hardly_be_finished_in_the_budget_stops_if_asked_to() -> None:
    seen = Foreseen(stories=5, samples=9, iterations=(5, 9), seconds=(1, 2), chance=0.1)
    stop = ask(Budget(run_usd=1, least_chance=0.2), seen)
    assert isinstance(stop, Stop)
    assert stop.reason is Reason.OUT_OF_REACH
    assert stop.reason.exit_code is ExitCode.BUDGET
    assert "10%" in stop.detail
    assert ask(Budget(run_usd=1), seen) is None
    assert ask(Budget(run_usd=1, least_chance=0.1), seen) is None
    assert ask(Budget(least_chance=0.9), msgspec.structs.replace(seen, chance=None)) is None


usd = st.none() | st.floats(allow_nan=True, allow_infinity=True)
spending = st.lists(
    st.builds(charged, usd, st.integers(-100, 10**7), st.sampled_from(["A", "B", ""]))
    | st.builds(
        lambda day, ever, held: SpendingSeen(elsewhere=Elsewhere(Amount(day), Amount(ever), Amount(held))),
        *[st.integers(0, 10**7)] * 3,
    ),
    max_size=8,
)
bounds = st.builds(
    Budget,
    run_usd=st.floats(0, 10),
    story_usd=st.floats(0, 10),
    day_usd=st.floats(0, 10),
    workspace_usd=st.floats(0, 10),
    run_tokens=st.integers(0, 10**6),
)


@given(bounds, spending)
def test_no_iteration_starts_with_nothing_left(budget: Budget, events: list[AnyEvent]) -> None:
    history = after(*events)
    spending = history.spending
    move = decide(PLAN, history, Limits(budget=budget), NOW)
    for limit, spent in (
        (budget.run_usd, spending.run.usd),
        (budget.day_usd, spending.elsewhere.day.usd),
        (budget.workspace_usd, spending.elsewhere.ever.usd),
        (budget.run_tokens, spending.run.tokens),
    ):
        if 0 < limit <= spent:
            assert isinstance(move, Stop)
    if isinstance(move, Work) and budget.story_usd:
        assert spending.of(move.story).usd < budget.story_usd
    if isinstance(move, Wait):
        assert NOW < move.until <= NOW + 60
    assert spending.run.micros >= 0
    assert spending.run.tokens >= 0


@given(bounds, spending)
def test_a_journal_gives_the_same_decision_when_it_is_read_again(budget: Budget, events: list[AnyEvent]) -> None:
    events = [
        event for event in events if not isinstance(event, Charged) or event.usd in (None, 0) or event.usd == event.usd
    ]
    lines = [msgspec.json.encode(Record(n, NOW, event)) for n, event in enumerate(events)]
    again = [msgspec.json.decode(line, type=Record).event for line in lines]
    limits = msgspec.json.decode(msgspec.json.encode(Limits(budget=budget)), type=Limits)
    assert after(*again).spending == after(*events).spending
    assert budget_limit(after(*again), limits, NOW) == budget_limit(after(*events), Limits(budget=budget), NOW)


def test_a_purse_starts_empty() -> None:
    assert History().spending == Spending()
