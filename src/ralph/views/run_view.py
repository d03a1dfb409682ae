"""One run as a view shows it, followed while it grows: its state, its stories and attempts, figures over time, events.

Every terminal, page and picture asks this. It reads the journal and nothing else.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.agent import Limit, ToolUse
from ralph.core.errors import BadData
from ralph.core.events import (
    AgentEnded,
    AgentSaid,
    AnyEvent,
    Charged,
    CheckEnded,
    CheckStarted,
    Committed,
    Decided,
    HookAnswered,
    IterationEnded,
    PlanSeen,
    Record,
    RunEnded,
    RunStarted,
    Scheduled,
    SessionTaken,
    Settling,
    StepEnded,
    StoriesRetried,
    StorySetAside,
)
from ralph.core.history import History, fold
from ralph.core.plan import State
from ralph.core.proof import Grade
from ralph.core.review import OPEN_FINDINGS, Entry
from ralph.core.verdict import Kind
from ralph.journal.records import Follower, records_at
from ralph.journal.run_state import RunState
from ralph.journal.workers import Activity
from ralph.views.attempts import Attempt, Attempts
from ralph.views.catalog import standing
from ralph.views.lines import describe
from ralph.views.paint import unpainted
from ralph.workspace.runs import Standing

_IDLE = (CheckStarted, CheckEnded, Decided, StepEnded, SessionTaken, Settling, Committed, HookAnswered, Scheduled)
"""Frequent events that no limit depends on."""
_TOLD = (AgentEnded, Charged, IterationEnded, PlanSeen, StorySetAside, StoriesRetried, RunEnded)
"""Events after which a figure may be another one."""


class Point(Struct, frozen=True):
    """Figures at one moment."""

    t: float
    done: int
    total: int
    usd: float
    tokens: int
    iterations: int
    accepted: int


class StoryLine(Struct, frozen=True, kw_only=True):
    """A story with everything a list shows of it."""

    id: str
    title: str
    state: str
    """done, approved with open findings, unproven, failed, blocked, in progress or open."""
    grade: str = ""
    why: str = ""
    """Why it failed, or its question."""
    is_asking: bool = False
    attempts: int = 0
    """Iterations of this run."""
    seconds: float = 0
    tokens: int = 0
    cost_usd: float | None = None
    is_estimated: bool = False
    depends_on: tuple[str, ...] = ()
    open_findings: int = 0


class EventLine(Struct, frozen=True):
    seq: int
    t: float
    kind: str
    iteration: int
    text: str


class RunView:
    """`poll` reads what is new. Everything else is the run so far."""

    def __init__(self, journal: Path) -> None:
        self.journal = journal
        self.state = RunState()
        self.history = History()
        self.attempts = Attempts()
        self.points: list[Point] = []
        self.damage = ""
        """Why the rest of the journal cannot be read."""
        self.first: RunStarted | None = None
        """Unlike `state.started`, also while the journal is being read."""
        self._accepted = 0
        self._seen = 0.0
        self._follower = Follower(journal)
        self._offsets = array("Q")
        self._lines: dict[int, str] = {}
        """Event number → its line, but for what agents said: that is read from the journal when it is asked for."""

    @property
    def count(self) -> int:
        """How many events there are."""
        return len(self._offsets)

    def poll(self) -> bool:
        """Whether anything was new. No record is kept: a long journal has many."""
        return not self.damage and bool(deque(self._news(), maxlen=1))

    def catch_up(self) -> RunView:
        self.poll()
        return self

    def _news(self) -> Iterator[Record]:
        try:
            for offset, record in self._follower.placed():
                self.add(record, offset)
                yield record
        except BadData as error:
            self.damage = str(error)

    def add(self, record: Record, offset: int) -> None:
        """`offset`: where the record is in the journal."""
        event, told = record.event, record.t
        self._offsets.append(offset)
        if told < self.state.now:  # the clock was set back: here it stands still until it has caught up
            record = msgspec.structs.replace(record, t=self.state.now)
        if isinstance(event, AgentSaid):
            if isinstance(event.event, Limit):
                self._remember(event, told)
                self.state.add(record)
            elif isinstance(event.event, ToolUse):  # most of a long journal, and nothing else depends on it
                self.state.parallel.activity(event).add(event, record.t)
            self.state.now = record.t
            return
        if isinstance(event, RunStarted):
            self.first = event
        self.state.add(record)
        self._remember(event, told)
        self.attempts.add(record)
        if line := describe(record, self.state, verbose=True):
            self._lines[len(self._offsets) - 1] = line
        if isinstance(event, IterationEnded):
            self._accepted += event.kind is Kind.ACCEPTED
        if isinstance(event, _TOLD):
            self._mark(record.t)

    def _remember(self, event: AnyEvent, t: float) -> None:
        """A history is a new value after each event, so those that change nothing are passed over."""
        before, self._seen = self._seen, t
        if isinstance(event, _IDLE) and t >= before:
            return
        if t < before:  # the clock was set back
            self.history = msgspec.structs.replace(self.history, seen=before)
        self.history = fold(self.history, event, t)

    def _mark(self, t: float) -> None:
        state = self.state
        figures = (state.done, state.total, state.cost_usd or 0.0, state.tokens.total, state.count, self._accepted)
        if not self.points or figures != (
            self.points[-1].done,
            self.points[-1].total,
            self.points[-1].usd,
            self.points[-1].tokens,
            self.points[-1].iterations,
            self.points[-1].accepted,
        ):
            self.points.append(Point(t, *figures))

    def standing(self) -> Standing:
        return standing(self.state)

    def story(self, story: str) -> StoryLine | None:
        return next((line for line in self.stories() if line.id == story), None)

    def stories(self) -> list[StoryLine]:
        """In the order of the plan; then those that are in it no more and were worked on."""
        by_story: dict[str, list[Attempt]] = {}
        for attempt in self.attempts.by_iteration.values():
            by_story.setdefault(attempt.story, []).append(attempt)
        gone = [name for name in by_story if name and name not in self.state.stories]
        working = {each.started.story for each in self._running() if each.started}
        return [
            self._line(name, by_story.get(name, []), is_running=name in working)
            for name in (*self.state.stories, *gone)
        ]

    def _line(self, name: str, attempts: list[Attempt], *, is_running: bool) -> StoryLine:
        known = self.state.stories.get(name)
        costs = [cost for each in attempts if (cost := each.cost_usd) is not None]
        state = self._state_of(name, is_running=is_running)
        why = self.state.reasons.get(name, "")
        return StoryLine(
            id=name,
            title=known.title if known else attempts[-1].title,
            state=state,
            grade=known.grade if known else "",
            why=why if state in ("failed", "blocked", "unproven") else "",
            is_asking=state == "blocked",
            attempts=len(attempts),
            seconds=sum((each.until or self.state.now) - each.since for each in attempts),
            tokens=sum(each.tokens.total for each in attempts),
            cost_usd=sum(costs) if costs else None,
            is_estimated=any(each.is_estimated for each in attempts),
            depends_on=known.depends_on if known else (),
            open_findings=sum(entry.fate == "open" for entry in self.findings(name)),
        )

    def _state_of(self, name: str, *, is_running: bool) -> str:
        known = self.state.stories.get(name)
        if known is None:
            return "gone"
        if known.approved_at and known.state is State.DONE:
            return OPEN_FINDINGS
        if (name in self.state.unproven) if known.state is State.DONE else (known.grade == Grade.UNPROVEN):
            return "unproven"
        if is_running:
            return "in progress"
        return {State.TODO: "open", State.IN_PROGRESS: "open"}.get(known.state, known.state.value)

    def _running(self) -> Iterator[Activity]:
        return iter(self.state.parallel.open.values())

    def findings(self, story: str) -> tuple[Entry, ...]:
        return self.attempts.ledgers.get(story, ())

    def questions(self) -> dict[str, str]:
        """Story → what its agent asked, as far as the journal knows of no answer."""
        return {
            name: self.state.reasons.get(name, "")
            for name, story in self.state.stories.items()
            if story.state is State.BLOCKED
        }

    def events(self, start: int, count: int) -> list[EventLine]:
        """A page of the journal: what happened, one line or a few each."""
        numbers = range(max(start, 0), min(max(start, 0) + max(count, 0), self.count))
        records = records_at(self.journal, [self._offsets[number] for number in numbers])
        return [self._event(number, record) for number, record in zip(numbers, records, strict=True)]

    def _event(self, number: int, record: Record) -> EventLine:
        event = record.event
        line = self._lines.get(number, "")
        if isinstance(event, AgentSaid):
            line = describe(record, self.state, verbose=True)
        iteration = int(getattr(event, "iteration", 0) or 0)
        return EventLine(record.seq, record.t, type(event).__name__, iteration, unpainted(line))
