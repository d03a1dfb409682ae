"""The forecast and the budgets as views show them."""

from __future__ import annotations

from pathlib import Path

from ralph.cli.live_view import LiveView
from ralph.cli.plain_view import describe
from ralph.cli.summary import summary
from ralph.core.events import Charged, Foreseen
from ralph.core.money import Basis, Budget
from ralph.core.plan import Mode
from ralph.core.rules import Limits
from ralph.core.verdict import Kind
from ralph.journal.run_state import RunState
from ralph.views.words import foreseen, ground_for
from support.told_runs import PASSED, ToldRun, seen

SEEN = Foreseen(stories=3, samples=9, iterations=(4, 7), seconds=(600, 1300), usd=(1.2, 3.45))


def test_both_figures_are_told_and_what_they_stand_on() -> None:
    assert foreseen(SEEN) == "4–7 iterations, 10 m 00 s–21 m 40 s, $1.20–$3.45"
    assert ground_for(SEEN) == "90%: up to $3.45; from 9 stories of this workspace"
    same = Foreseen(stories=1, samples=3, iterations=(1, 1), seconds=(5, 5))
    assert foreseen(same) == "1 iteration, 5 s"
    assert ground_for(same) == "90%: up to 5 s; from 3 stories of this workspace"
    few = Foreseen(stories=1, samples=2, iterations=(1, 2), seconds=(5, 9), usd=(1, 2))
    assert foreseen(few) == "no data yet"
    assert ground_for(few) == "needs 3 finished stories, 2 so far"


def test_the_first_forecast_is_a_line_and_later_ones_are_not(tmp_path: Path) -> None:
    state, lines = RunState(), []
    told = ToldRun(tmp_path / "events.jsonl", state.add, lambda record: lines.append(describe(record, state)))
    told.start(seen())
    told.say(SEEN, Foreseen(stories=2, samples=9, iterations=(2, 3), seconds=(1, 2)))
    assert len([line for line in lines if "forecast" in line]) == 1
    assert state.forecast is not None
    assert state.forecast.stories == 2
    assert any(line.endswith("; no budget set (--max-cost USD)") for line in lines)


def test_a_run_with_a_budget_does_not_say_that_it_has_none(tmp_path: Path) -> None:
    state, lines = RunState(), []
    told = ToldRun(tmp_path / "events.jsonl", state.add, lambda record: lines.append(describe(record, state)))
    told.start(seen(), limits=Limits(budget=Budget(run_usd=5)))
    told.say(SEEN)
    assert "forecast: 4–7 iterations" in lines[-1]
    assert "no budget" not in lines[-1]


def test_the_live_view_shows_what_is_to_come_and_what_is_left(tmp_path: Path) -> None:
    view = LiveView()
    told = ToldRun(tmp_path / "events.jsonl", view)
    told.start(seen(), limits=Limits(budget=Budget(run_usd=5)))
    told.say(SEEN, Charged(iteration=1, story="US-001", id="x", basis=Basis.REPORTED, usd=1.5))
    shown = "\n".join(line for line, _ in view.panel(150, 40))
    assert "remaining: 4–7 iterations, 10 m 00 s–21 m 40 s, $1.20–$3.45" in shown
    assert "$3.50 of the run" in shown


def test_the_summary_counts_estimates_and_tells_unknown_costs_apart(tmp_path: Path) -> None:
    state = RunState()
    told = ToldRun(tmp_path / "events.jsonl", state.add)
    told.start(seen())
    told.begin(1, "US-001", "Add a cart", Mode.IMPLEMENT)
    told.judge(1, Kind.ACCEPTED, PASSED, mode=Mode.IMPLEMENT)
    told.say(Charged(iteration=1, story="US-001", id="a", basis=Basis.ESTIMATED, usd=0.75))
    told.say(Charged(iteration=1, story="US-001", id="b", basis=Basis.UNKNOWN))
    told.end(1, Kind.ACCEPTED)
    told.stop()
    assert state.cost_usd == 0.75
    assert any("$0.75 and 1 session of unknown cost" in line for line in summary(state))
