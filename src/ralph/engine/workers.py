"""The workers of a run as the loop sees them, and what it knows about their iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ralph.core.agent import Outcome
from ralph.core.events import Judged
from ralph.core.evidence import Ended, Evidence
from ralph.core.moves import Work
from ralph.core.ports import Task
from ralph.core.worker import Allowed, Examine, Message, Ticket
from ralph.engine.queue import Entry


class Lost(Struct, frozen=True):
    """A worker that is gone, or that has not answered for too long."""

    why: str


class Outfit(Struct, frozen=True):
    """What a worker needs besides the commit it starts from."""

    files: dict[str, bytes] = {}
    state: dict[str, bytes] = {}


class Budget(Protocol):
    def reserve(self, task: Task, budget_usd: float) -> Allowed: ...

    def charge(self, name: str, task: Task, model: str, ended: Ended, outcome: Outcome) -> None: ...


class Crew(Protocol):
    """The workers, wherever they are."""

    def room(self) -> int:
        """How many more sessions can start now, as far as the workers are concerned."""
        ...

    def idle(self, *, for_proof: bool) -> int:
        """The number of a worker that has nothing to do, started if necessary; 0: none. Proofs have workers of their
        own, so that they do not wait until a session is over."""
        ...

    def assign(self, worker: int, order: Ticket | Examine) -> None: ...

    def answer(self, worker: int, number: int, value: object) -> None: ...

    def receive(self, timeout: float) -> Sequence[tuple[int, Message | Lost]]:
        """What workers said; waits for the first for so many seconds."""
        ...

    def cancel(self, worker: int) -> None:
        """End what it does; what it says about it is dropped."""
        ...

    def collect(self, worker: int, iteration: int) -> None:
        """Bring its candidates, rescue refs and logs here; for iteration 0 only logs."""
        ...

    def outfit(self) -> Outfit: ...

    def stop(self, signum: int) -> None:
        """End all sessions; the workers still report."""
        ...

    def kill(self) -> None:
        """End everything at once."""
        ...

    def close(self) -> None: ...


class Active(Struct, kw_only=True):
    """An iteration that has not ended."""

    work: Work
    number: int
    worker: int
    base: str
    begun: float
    attempt: int = 1
    has_started: bool = False
    candidate: str = ""
    judged: Judged | None = None
    merged_evidence: Evidence | None = None

    @property
    def story(self) -> str:
        return self.work.story


class Build(Struct, kw_only=True):
    """A merged tree that is being proved."""

    key: str
    entries: tuple[Entry, ...]
    onto: str
    merged: str
    worker: int
    begun: float


class QueueRules(Struct, frozen=True, kw_only=True):
    workers: int
    batch: int = 1
    speculate: int = 3
    returns: int = 2
    is_merge: bool = False
