"""`ralph runs cost`: sums that add up, receipts that say what came of it, and no cost that is made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralph.core.agent import ModelUse, Outcome, Tokens
from ralph.core.events import AgentEnded, AgentStarted, Charged, IterationEnded, IterationStarted, Reserved
from ralph.core.evidence import Ended, How
from ralph.core.money import Basis
from ralph.core.plan import Mode
from ralph.core.verdict import Kind
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path
from support.cli import Completed, ralph_here
from support.told_runs import ToldRun, seen


class Books:
    """A workspace whose journals are told by hand."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "shop"
        (self.root / ".ralph").mkdir(parents=True)
        self.env = {"HOME": str(folder), "RALPH_STATE_HOME": str(folder / "state"), "TZ": "UTC"}

    def run(self, run: str) -> ToldRun:
        told = ToldRun(journal_path(workspace_state(self.root, self.env), run))
        told.start(seen(), run=run)
        return told

    def cost(self, *arguments: str) -> Completed:
        return ralph_here("cost", *arguments, cwd=self.root, env=self.env)


def session(
    told: ToldRun, number: int, story: str, cost: float | None, charged: Charged | None, model: str = "m"
) -> None:
    outcome = Outcome(finished=True, model=model, tokens=Tokens(100, 20, 3, 4), cost_usd=cost)
    told.say(
        IterationStarted(iteration=number, story=story, title="t", mode=Mode.IMPLEMENT, attempt=1),
        AgentEnded(iteration=number, step="agent", ended=Ended(How.EXITED, 0), outcome=outcome),
    )
    if charged is not None:
        told.say(charged)
    told.say(IterationEnded(iteration=number, story=story, mode=Mode.IMPLEMENT, kind=Kind.REJECTED, seconds=5))


def charge(number: int, story: str, usd: float | None, basis: Basis) -> Charged:
    return Charged(iteration=number, story=story, id=f"x/{number}", basis=basis, usd=usd, tokens=127)


@pytest.fixture
def books(tmp_path: Path) -> Books:
    made = Books(tmp_path)
    first = made.run("20231114-221320-aaaa")
    session(first, 1, "A", 0.25, None)  # written before there was a budget
    session(first, 2, "A", None, None)
    second = made.run("20231115-101010-bbbb")
    session(second, 1, "B", 0.5, charge(1, "B", 0.5, Basis.REPORTED), "big")
    session(second, 2, "B", None, charge(2, "B", 0.125, Basis.ESTIMATED), "big")
    session(second, 3, "C", None, charge(3, "C", None, Basis.UNKNOWN), "odd")
    second.say(
        IterationStarted(iteration=4, story="C", title="t", mode=Mode.IMPLEMENT, attempt=1),
        Reserved(iteration=4, id="x/4", usd=2.0),
    )
    return made


def test_the_overview_tells_known_estimated_assumed_and_unknown_apart(books: Books) -> None:
    told = books.cost().out
    assert "~$0.88 +? for 6 iterations in 2 runs" in told
    assert "3 iterations of unknown cost, not included" in told
    assert "$0.12 of it estimated: list prices of 20" in told
    assert "(platform.claude.com, developers.openai.com, ai.google.dev)" in told
    assert "635 tokens (500 in, 100 out, 15 from cache, 20 to cache)" in told


def test_whatever_it_is_summed_by_it_comes_to_the_same(books: Books) -> None:
    for by, names in {
        "story": {"A", "B", "C"},
        "model": {"m", "big", "odd", "(unknown)"},
        "run": {"20231114-221320-aaaa", "20231115-101010-bbbb"},
        "day": {"2023-11-14"},
    }.items():
        told = books.cost("--by", by, "--json").json
        assert {row["name"] for row in told["rows"]} == names
        for field in ("iterations", "usd", "unknown", "seconds", "estimated_usd", "reserved_usd"):
            assert sum(row[field] for row in told["rows"]) == pytest.approx(told["total"][field])
        assert told["total"]["usd"] == 0.875
        assert books.cost("--by", by).code == 0


def test_a_receipt_has_tokens_by_class_cost_and_outcome(books: Books) -> None:
    told = books.cost("--receipts", "--json").json["receipts"]
    assert [(r["story"], r["usd"], r["basis"], r["outcome"]) for r in told] == [
        ("A", 0.25, "reported", "rejected"),
        ("B", 0.5, "reported", "rejected"),
        ("A", None, "unknown", "rejected"),
        ("B", 0.125, "estimated", "rejected"),
        ("C", None, "unknown", "rejected"),
        ("C", None, "unknown", ""),
    ]
    assert told[0]["tokens"] == {"input": 100, "output": 20, "cache_read": 3, "cache_write": 4}
    text = books.cost("--receipts").out
    assert "~$0.1250" in text
    assert "no end recorded" in text


def test_sessions_that_planned_are_counted_too(books: Books) -> None:
    folder = workspace_state(books.root, books.env) / "planning" / "20231115-120000-cccc"
    told = ToldRun(folder / "events-0001.jsonl")
    outcome = Outcome(finished=True, ok=True, model="big", tokens=Tokens(5), cost_usd=1.0)
    told.say(
        AgentStarted(iteration=1, step="agent", pid=1, start="1"),
        AgentEnded(iteration=1, step="agent", ended=Ended(How.EXITED, 0), outcome=outcome),
        charge(1, "", 1.0, Basis.REPORTED),
    )
    rows = {row["name"]: row["usd"] for row in books.cost("--by", "story", "--json").json["rows"]}
    assert rows["(plan)"] == 1
    assert "answered" in books.cost("--run", "20231115-12").out


def test_one_run_is_named_by_its_beginning(books: Books) -> None:
    told = books.cost("--run", "20231114", "--json").json
    assert [receipt["usd"] for receipt in told["receipts"]] == [0.25, None]
    unknown = books.cost("--run", "1999")
    assert unknown.code == 64
    assert "`ralph runs` lists the runs" in unknown.err


def test_a_workspace_without_runs_has_spent_nothing(tmp_path: Path) -> None:
    books = Books(tmp_path)
    assert books.cost().out == "Nothing has been spent in this workspace yet.\n"
    assert books.cost("--by", "day").out == "Nothing has been spent in this workspace yet.\n"
    assert books.cost("--json").json["total"]["usd"] == 0


def test_a_damaged_journal_is_told_and_the_others_count(books: Books) -> None:
    path = journal_path(workspace_state(books.root, books.env), "20231114-221320-aaaa")
    path.write_bytes(b"nonsense\n" + path.read_bytes())
    told = books.cost()
    assert "the journal is damaged" in told.err
    assert "~$0.62 +? for 4 iterations in 1 run" in told.out


def test_a_session_is_split_by_model(tmp_path: Path) -> None:
    """The client used a small model besides the one that did the work."""
    books = Books(tmp_path)
    run = books.run("20231114-221320-aaaa")
    uses = (
        ModelUse("big", Tokens(input=900, output=50), 0.40),
        ModelUse("small", Tokens(input=100, output=10), 0.02),
    )
    outcome = Outcome(finished=True, ok=True, model="big", tokens=Tokens(1000, 60), cost_usd=0.42, uses=uses)
    run.say(
        IterationStarted(iteration=1, story="A", title="t", mode=Mode.IMPLEMENT, attempt=1),
        AgentStarted(iteration=1, step="agent", pid=1, start="1"),
        AgentEnded(iteration=1, step="agent", ended=Ended(How.EXITED, code=0, seconds=3), outcome=outcome),
        charge(1, "A", 0.42, Basis.REPORTED),
        IterationEnded(iteration=1, story="A", mode=Mode.IMPLEMENT, kind=Kind.ACCEPTED, seconds=4),
    )
    told = books.cost("--by", "model", "--json").json
    assert {row["name"]: (row["usd"], row["tokens"]["input"]) for row in told["rows"]} == {
        "big": (0.4, 900),
        "small": (0.02, 100),
    }
    assert (told["total"]["usd"], sum(row["seconds"] for row in told["rows"])) == (0.42, 4)
