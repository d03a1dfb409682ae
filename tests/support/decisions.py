"""Runs that are only told: events at chosen times, and what is decided after them."""

from __future__ import annotations

from typing import Any

from ralph.core.agent import Limit, Outcome, Tokens
from ralph.core.events import (
    AgentEnded,
    AgentSaid,
    AgentStarted,
    AnyEvent,
    Baseline,
    IterationEnded,
    IterationStarted,
    Judged,
    RunStarted,
)
from ralph.core.evidence import CheckResult, Ended, Evidence, How
from ralph.core.history import History, fold
from ralph.core.moves import Move
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.rules import Limits
from ralph.core.verdict import Kind, Verdict
from ralph.engine.decide import decide

NOW = 1_800_000_000.0
HOUR = 3600.0


def plan(*states: State) -> Plan:
    stories = states or (State.TODO, State.TODO, State.TODO)
    return Plan(name="p", stories=tuple(Story(id=f"S{n}", title=f"story {n}", state=s) for n, s in enumerate(stories)))


def started(run: str = "r", **fields: Any) -> RunStarted:
    return RunStarted(run=run, workspace="w", layout="tasks.json", plan="p", pid=1, **fields)


def ended(kind: Kind, story: str = "S0", *, mode: Mode = Mode.IMPLEMENT, **fields: Any) -> IterationEnded:
    return IterationEnded(iteration=fields.pop("iteration", 1), story=story, mode=mode, kind=kind, **fields)


def agent_start(number: int = 1) -> AgentStarted:
    return AgentStarted(iteration=number, step="agent", pid=1, start="1")


def agent_end(tokens: int = 0, *, code: int | None = 0, seconds: float = 60, said: str = "", **more: Any) -> AgentEnded:
    how = Ended(How.EXITED, code=code, seconds=seconds, detail=said, signal=more.pop("signal", None))
    return AgentEnded(iteration=1, step="agent", ended=how, outcome=Outcome(tokens=Tokens(input=tokens), **more))


def heard(kind: str = "five_hour", *, rejected: bool = False, resets_at: float, used: float | None = None) -> AgentSaid:
    return AgentSaid(1, Limit(rejected, resets_at, kind, used))


def checked(results: dict[str, bool], kind: Kind = Kind.REJECTED, *, changed: bool = True) -> Judged:
    """What the checks said about an iteration."""
    checks = tuple(CheckResult(name, name, passed) for name, passed in results.items())
    evidence = Evidence(
        mode=Mode.IMPLEMENT,
        story=None,
        ended=Ended(How.EXITED, code=0),
        outcome=Outcome(),
        changed=("a",) if changed else (),
        checks=checks,
    )
    return Judged(1, evidence, Verdict(kind))


def baseline(results: dict[str, bool]) -> Baseline:
    return Baseline(
        tree="t", check_set="s", results=tuple(CheckResult(name, name, passed) for name, passed in results.items())
    )


def attempt(results: dict[str, bool], kind: Kind = Kind.REJECTED, story: str = "S0", **fields: Any) -> list[AnyEvent]:
    """One iteration as far as the breaker looks at it."""
    begun = IterationStarted(iteration=1, story=story, title="", mode=Mode.IMPLEMENT, attempt=1)
    return [begun, checked(results, kind), ended(kind, story, **fields)]


class Told:
    """A run that has begun at `NOW`. `at` moves its clock."""

    def __init__(self, limits: Limits | None = None, **started_with: Any) -> None:
        self.limits = limits or Limits()
        self.now = NOW
        self.history = History()
        self.told: list[tuple[AnyEvent, float]] = []
        self.say(started(**{"limits": self.limits, **started_with}))

    def say(self, *events: AnyEvent, apart: float = 0.0) -> Told:
        for event in events:
            self.told.append((event, self.now))
            self.history = fold(self.history, event, self.now)
            self.now += apart
        return self

    def wait(self, seconds: float) -> Told:
        self.now += seconds
        return self

    def decide(self, of: Plan | None = None, **more: Any) -> Move:
        return decide(of or plan(), self.history, self.limits, self.now, **more)
