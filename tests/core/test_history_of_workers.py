"""Events of several iterations at once: each is attributed to its own iteration, and one trouble counts once."""

from __future__ import annotations

import msgspec
import pytest

from ralph.core.agent import Limit
from ralph.core.events import AgentSaid, AnyEvent, IterationStarted
from ralph.core.history import History, fold
from ralph.core.moves import Reason, Stop, Wait, Work
from ralph.core.plan import Mode
from ralph.core.rules import Limits, OnLimit
from ralph.core.verdict import Kind
from ralph.engine.decide import decide
from support.decisions import HOUR, NOW, agent_end, agent_start, checked, ended, plan, started

LIMITS = Limits(max_iterations=0, fallback=("other",), fallback_after=1)


def begin(number: int, story: str, choice: str = "", mode: Mode = Mode.IMPLEMENT) -> IterationStarted:
    return IterationStarted(iteration=number, story=story, title="", mode=mode, attempt=1, choice=choice)


def told(*events: AnyEvent, limits: Limits = LIMITS) -> History:
    history = History()
    for at, event in enumerate([started(limits=limits), *events]):
        history = fold(history, event, NOW + at)
    return history


def test_a_failure_is_attributed_to_the_choice_that_worked_on_the_story() -> None:
    history = told(
        begin(1, "S0", "other"),
        begin(2, "S1"),
        ended(Kind.REJECTED, "S0", iteration=1),
        ended(Kind.ACCEPTED, "S1", iteration=2),
    )
    assert list(history.bench.failures["S0"]) == ["other"]
    assert history.bench.choices == {}


def test_a_usage_window_belongs_to_the_agent_that_reported_it() -> None:
    limit = Limit(False, NOW + HOUR, "five_hour", 0.5)
    history = told(begin(1, "S0", "other"), begin(2, "S1"), AgentSaid(1, limit))
    assert history.bench.used == {"other": {"five_hour": limit}}


def test_the_author_of_a_story_is_the_one_who_did_it() -> None:
    history = told(begin(1, "S0", "other"), begin(2, "S1"), ended(Kind.ACCEPTED, "S0", iteration=1))
    assert history.bench.authors == {"S0": "other"}


def test_checks_count_for_their_own_iteration() -> None:
    history = told(
        begin(1, "S0"),
        begin(2, "S1"),
        msgspec.structs.replace(checked({"unit": True}), iteration=1),
        msgspec.structs.replace(checked({"unit": False}), iteration=2),
        ended(Kind.REJECTED, "S1", iteration=2, files=("a",)),
        ended(Kind.ACCEPTED, "S0", iteration=1),
    )
    assert history.passing == {"unit"}
    assert history.current == {}


def test_a_usage_limit_that_one_worker_meets_is_not_forgotten_when_another_ends() -> None:
    limits = Limits(max_iterations=0)
    met = (begin(1, "S0"), begin(2, "S1"), ended(Kind.LIMIT, "S0", iteration=1, resets_at=NOW + HOUR))
    history = told(*met, ended(Kind.ACCEPTED, "S1", iteration=2), limits=limits)
    move = decide(plan(), history, limits, NOW + 10)
    assert isinstance(move, Wait)
    assert move.until >= NOW + HOUR
    assert isinstance(decide(plan(), history, limits, NOW + HOUR + 1), Work)
    later = told(*met, begin(3, "S2"), ended(Kind.ACCEPTED, "S2", iteration=3), limits=limits)
    assert isinstance(decide(plan(), later, limits, NOW + 10), Work), "a later one could work"


def test_the_answer_at_a_usage_limit_holds_while_the_others_end() -> None:
    limits = Limits(max_iterations=0, on_limit=OnLimit.ASK)
    events = (begin(1, "S0"), begin(2, "S1"), ended(Kind.LIMIT, "S0", iteration=1, resets_at=NOW + HOUR))
    history = fold(told(*events, limits=limits), ended(Kind.LIMIT, "S1", iteration=2, resets_at=NOW + HOUR), NOW + 9)
    move = decide(plan(), msgspec.structs.replace(history, answer="exit"), limits, NOW + 10)
    assert isinstance(move, Stop)
    assert move.reason is Reason.USAGE_LIMIT


@pytest.mark.parametrize("kind", [Kind.LIMIT, Kind.TRANSPORT])
def test_one_outage_that_every_worker_meets_counts_once(kind: Kind) -> None:
    begun = [begin(number, "S0") for number in range(1, 9)]
    broken = [ended(kind, "S0", iteration=number) for number in range(1, 9)]
    history = told(*begun, *broken, limits=Limits(max_iterations=0))
    assert (history.limits_in_a_row, history.transport) == ((1, 0) if kind is Kind.LIMIT else (0, 1))
    again = told(*begun, *broken, begin(9, "S0"), ended(kind, "S0", iteration=9))
    assert again.limits_in_a_row + again.transport == 2


def test_a_wrong_configuration_stops_the_run_whatever_ends_later() -> None:
    history = told(
        begin(1, "S0"),
        begin(2, "S1"),
        ended(Kind.MISCONFIGURED, "S0", iteration=1, headline="not logged in"),
        ended(Kind.ACCEPTED, "S1", iteration=2),
    )
    assert decide(plan(), history, LIMITS, NOW + 10) == Stop(Reason.MISCONFIGURED, "not logged in")


def test_a_running_session_does_not_make_an_old_report_hold_again() -> None:
    """An agent worked after the report, so the limit is over, whatever started since."""
    report = AgentSaid(1, Limit(True, NOW + HOUR, "five_hour", 1))
    history = told(
        begin(1, "S0"),
        agent_start(1),
        report,
        agent_end(),
        ended(Kind.LIMIT, "S0", iteration=1, resets_at=NOW + 4),
        begin(2, "S0"),
        agent_start(2),
        ended(Kind.ACCEPTED, "S0", iteration=2),
        begin(3, "S1"),
        agent_start(3),
        limits=Limits(max_iterations=0),
    )
    assert isinstance(decide(plan(), history, Limits(max_iterations=0), NOW + 20, busy={"S1"}), Work)
