"""What the records show so far: the run, and the last iteration with its evidence. Pure."""

from __future__ import annotations

from ralph.core.events import (
    AgentStarted,
    CheckEnded,
    Decided,
    IterationEnded,
    IterationStarted,
    Judged,
    Record,
    RunEnded,
)
from ralph.core.evidence import CheckResult
from ralph.journal.run_state import RunState


class Account:
    """One account is shared by all sinks of a run."""

    def __init__(self) -> None:
        self.run = RunState()
        self.started: IterationStarted | None = None
        """The last iteration. It is kept after its end."""
        self.is_open = False
        """True between the checkpoint and the end of an iteration."""
        self.agents: list[tuple[float, AgentStarted]] = []
        self.checks: tuple[CheckResult, ...] = ()
        """Checks of the last iteration: the set it was judged by, or those run so far."""
        self.review = False
        """Stories of this run are reviewed."""

    @property
    def run_id(self) -> str:
        return self.run.started.run if self.run.started else ""

    @property
    def attempt(self) -> int:
        return self.started.attempt if self.started else 0

    def add(self, record: Record) -> None:
        self.run.add(record)
        event = record.event
        match event:
            case Decided(review=review):
                self.review = review
            case IterationStarted():
                self.started, self.is_open = event, True
                self.agents, self.checks = [], ()
            case AgentStarted():
                self.agents.append((record.t, event))
            case CheckEnded(result=result) if self.is_open:
                self.checks += (result,)
            case Judged(evidence=evidence):
                self.checks = evidence.checks
            case IterationEnded() | RunEnded():
                self.is_open = False
