"""Runs told by hand: the records of a loop, through a real journal, without an agent or a repository."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ralph.core.agent import Init, Outcome, Tokens, ToolUse
from ralph.core.events import (
    AgentEnded,
    AgentSaid,
    AgentStarted,
    AnyEvent,
    CheckEnded,
    Committed,
    Decided,
    IterationEnded,
    IterationStarted,
    Judged,
    PlanSeen,
    Record,
    RunEnded,
    RunStarted,
    SeenStory,
    StepEnded,
)
from ralph.core.evidence import CheckResult, Ended, Evidence, How
from ralph.core.moves import Reason, Work
from ralph.core.plan import Mode, State
from ralph.core.review import ReviewStatus
from ralph.core.rules import Limits
from ralph.core.verdict import Kind, Verdict
from ralph.journal.records import Journal, Listener

START = 1_700_000_000.0
"""2023-11-14T22:13:20Z"""
RUN = "20231114-221320-ab12"
HEAD = "1111111111111111111111111111111111111111"
PASSED = CheckResult("tests", "pytest -q", True, 0, 1.5)
FAILED = CheckResult("tests", "pytest -q", False, 1, 1.5, tail="1 failed\n2 passed")

NO_LIMITS = Limits()


class ToldRun:
    """Each record comes one second after the last one."""

    def __init__(self, path: Path, *listeners: Listener) -> None:
        self.now = START - 1
        self.records: list[Record] = []
        self.journal = Journal(path, self._tick)
        for listener in (*listeners, self.records.append):
            self.journal.listen(listener)

    def _tick(self) -> float:
        self.now += 1
        return self.now

    def say(self, *events: AnyEvent) -> None:
        for event in events:
            self.journal.write(event)

    def start(self, *stories: SeenStory, run: str = RUN, limits: Limits = NO_LIMITS) -> None:
        self.say(
            RunStarted(
                run=run,
                workspace="/workspace",
                layout="plan.md",
                plan="plan",
                name="Shop",
                pid=4242,
                version="1.2.3",
                agent="claude",
                model="sonnet",
                branch="main",
                total=len(stories),
                max_iterations=10,
                limits=limits,
                review_cap=5,
                checks=("tests",),
            ),
            PlanSeen(whole=True, stories=stories),
        )

    def begin(
        self, number: int = 1, story: str = "US-001", title: str = "Add a cart", mode: Mode = Mode.IMPLEMENT
    ) -> None:
        """As far as the agent's start."""
        self.say(
            Decided(Work(story, mode), self.now, review=True),
            IterationStarted(
                iteration=number, story=story, title=title, mode=mode, attempt=1, checkpoint={"head": HEAD}
            ),
            AgentStarted(iteration=number, step="agent", pid=99, start="7", prompt=1234),
        )

    def judge(
        self, number: int = 1, kind: Kind = Kind.ACCEPTED, *checks: CheckResult, mode: Mode = Mode.IMPLEMENT
    ) -> None:
        """From the agent's words to the verdict."""
        outcome = Outcome(ok=True, model="sonnet-4", tokens=Tokens(100, 20, 3, 4), cost_usd=0.25)
        evidence = Evidence(mode=mode, story=None, ended=Ended(How.EXITED, 0), outcome=outcome, checks=checks)
        self.say(
            AgentSaid(number, Init("sonnet-4")),
            AgentSaid(number, ToolUse("Edit", "Edit cart.py")),
            AgentEnded(
                iteration=number,
                step="agent",
                ended=Ended(How.EXITED, 0, seconds=61),
                outcome=outcome,
                raw="/s/raw.log",
            ),
            StepEnded(iteration=number, step="agent", kind="agent", ok=True),
            *(CheckEnded(iteration=number, tree="t", check_set="s", result=check) for check in checks),
            Judged(number, evidence, Verdict(kind)),
        )

    def end(self, number: int = 1, kind: Kind = Kind.ACCEPTED, **fields: Any) -> None:
        told = {
            "story": "US-001",
            "title": "Add a cart",
            "mode": Mode.IMPLEMENT,
            "headline": "done" if kind is Kind.ACCEPTED else "check 'tests' failed with exit code 1",
            "completes": kind is Kind.ACCEPTED,
            "proven": kind is Kind.ACCEPTED,
            "story_state": State.DONE if kind is Kind.ACCEPTED else State.TODO,
            "seconds": 65,
        }
        if kind is Kind.ACCEPTED:
            told["commit"] = "abc123"
            self.say(Committed(iteration=number, commit="abc123", message="feat(US-001): Add a cart"))
        self.say(IterationEnded(iteration=number, kind=kind, **(told | fields)))

    def iterate(self, number: int = 1, kind: Kind = Kind.ACCEPTED, **fields: Any) -> None:
        check = PASSED if kind is Kind.ACCEPTED else FAILED
        mode = fields.get("mode", Mode.IMPLEMENT)
        self.begin(number, fields.get("story", "US-001"), fields.get("title", "Add a cart"), mode)
        self.judge(number, kind, check, mode=mode)
        self.end(number, kind, **fields)

    def stop(self, reason: Reason = Reason.COMPLETE, detail: str = "") -> None:
        self.say(RunEnded(reason, detail))


def seen(name: str = "US-001", state: State = State.TODO, **fields: Any) -> SeenStory:
    return SeenStory(name, f"title of {name}", state, **fields)


def reviewed(name: str, count: int, status: ReviewStatus | None, state: State = State.TODO) -> SeenStory:
    return seen(name, state, review=status, reviews=count)


def files_in(root: Path) -> dict[str, bytes]:
    """Every file below a folder, by its relative path."""
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}
