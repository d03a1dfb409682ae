"""The workers of a run, their iterations and the merge queue: a fold over its journal. Pure and bounded.

A run without workers has one open iteration at a time, and the same values describe it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from ralph.core.agent import Tokens, ToolUse
from ralph.core.events import (
    AgentEnded,
    AgentSaid,
    AgentStarted,
    AnyEvent,
    CheckEnded,
    CheckStarted,
    IterationEnded,
    IterationStarted,
    Judged,
    Landing,
    Queued,
    QueueProved,
    QueueProving,
    WorkerLost,
    WorkerStarted,
)
from ralph.core.money import micros
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.core.worker import CANDIDATES

_KEPT = 200
RED_MERGED = "green alone, red merged"
"""How the headline begins of an iteration whose checks pass on its own base and fail on the merged tree."""


class Activity(Struct):
    """What happens in one iteration, or between iterations: its session and its checks."""

    started: IterationStarted | None = None
    since: float = 0
    agent: AgentStarted | None = None
    """The running session."""
    call: str = ""
    """The last tool call of the session."""
    check: CheckStarted | None = None
    """The running check."""
    checks_since: float | None = None
    """When the running check started, or, between checks, when the agent or the last check ended."""
    checks: deque[CheckEnded] = deque()
    judged: Judged | None = None
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    is_estimated: bool = False
    """A part of the cost is: its agent reports tokens only."""
    reported: float = 0
    """The cost that the last session reported."""
    landed: int = 0
    """How many iterations had been merged when this one started."""

    def add(self, event: AnyEvent, t: float) -> None:
        match event:
            case AgentStarted():
                self.agent, self.call = event, ""
                self.check = self.checks_since = None
            case AgentSaid(event=ToolUse(name, summary)):
                self.call = one_line(summary or name, 300)
            case AgentEnded(outcome=outcome):
                self.agent = None
                self.tokens += outcome.used
                self.reported = (outcome.cost_usd or 0) if micros(outcome.cost_usd) is not None else 0
                self._pause(t)
            case CheckStarted():
                self.check, self.checks_since = event, t
            case CheckEnded():
                self.checks.append(event)
                self._pause(t)
            case Judged():
                self.judged = event
                self.check = self.checks_since = None

    def spend(self, usd: float, *, is_estimated: bool = False) -> None:
        self.cost_usd = (self.cost_usd or 0) + usd
        self.is_estimated |= is_estimated

    def _pause(self, t: float) -> None:
        self.check, self.checks_since = None, t if self.started else None


def begin(started: IterationStarted | None = None, t: float = 0, landed: int = 0) -> Activity:
    return Activity(started, t, checks=deque(maxlen=20), landed=landed)


class WorkerState(StrEnum):
    IDLE = "idle"
    WORKING = "working"
    PROVING = "proving"
    """It runs the checks on a merged tree, for the queue."""
    LOST = "lost"


class Worker(Struct):
    number: int
    since: float
    """When it entered its state."""
    started: WorkerStarted | None = None
    iteration: int = 0
    """That it works on; 0: none."""
    proving: tuple[int, ...] = ()
    """Iterations whose merged tree it proves."""
    lost: str | None = None
    """Why it is gone."""
    iterations: int = 0
    proofs: int = 0

    @property
    def state(self) -> WorkerState:
        if self.lost is not None:
            return WorkerState.LOST
        if self.iteration:
            return WorkerState.WORKING
        return WorkerState.PROVING if self.proving else WorkerState.IDLE

    @property
    def is_prover(self) -> bool:
        """It was started for proofs only."""
        return bool(self.proofs) and not self.iterations

    @property
    def is_busy(self) -> bool:
        return self.state in (WorkerState.WORKING, WorkerState.PROVING)


class EntryState(StrEnum):
    WAITING = "waiting"
    PROVING = "proving"
    PROVEN = "proven"
    """It waits for the entries before it."""
    RED = "red"
    LANDING = "landing"


class Entry(Struct):
    """A candidate in the merge queue."""

    iteration: int
    story: str
    queued: float
    state: EntryState = EntryState.WAITING
    since: float = 0
    """When it entered its state."""
    why: str = ""
    worker: int = 0
    """That proves it."""
    onto: str = ""
    merged: str = ""

    def enter(self, state: EntryState, t: float, why: str = "") -> None:
        self.state, self.since, self.why = state, t, why


class Clash(Struct, frozen=True):
    """An iteration whose work did not go together with what was merged meanwhile."""

    story: str
    iteration: int
    is_red: bool
    """Green alone, red merged: the merge was clean, and the proof failed on the merged tree. False: a text conflict."""
    why: str
    merged_meanwhile: tuple[str, ...] = ()
    """The stories it may clash with: one if that is known."""


class _Landed(Struct, frozen=True):
    story: str
    commit: str
    files: tuple[str, ...]


class Workers:
    """Feed it every event; its attributes can be read at any time."""

    def __init__(self) -> None:
        self.open: dict[int, Activity] = {}
        """The iterations that have not ended, by number."""
        self.known: dict[int, Worker] = {}
        self.queue: dict[int, Entry] = {}
        """By iteration, in order."""
        self.clashes: deque[Clash] = deque(maxlen=_KEPT)
        self.lost = 0
        """Workers that were lost."""
        self._between = begin()
        self._ended: deque[IterationStarted] = deque(maxlen=_KEPT)
        self._landed: deque[_Landed] = deque(maxlen=_KEPT)
        self._landings = 0

    def activity(self, event: AnyEvent | None = None) -> Activity:
        """The iteration that an event belongs to; without an event, the one that started last."""
        number = iteration_of(event)
        if number in self.open:
            return self.open[number]
        if self.open and (event is None or not self.known):  # baselines have no number, nor had checks at first
            return next(reversed(self.open.values()))
        return self._between

    def started(self, number: int) -> IterationStarted | None:
        """An iteration that is open or has ended recently."""
        if number in self.open:
            return self.open[number].started
        return next((each for each in reversed(self._ended) if each.iteration == number), None)

    def add(self, event: AnyEvent, t: float) -> None:
        match event:
            case WorkerStarted(worker=number):
                worker = self._worker(number, t)
                if worker.lost is not None:
                    worker = self.known[number] = Worker(number, t)
                worker.started = event  # it may have been given work before
            case WorkerLost(worker=number, why=why):
                worker = self._worker(number, t)
                worker.lost, worker.since, worker.proving = why, t, ()
                self.lost += 1
            case IterationStarted():
                self._start(event, t)
            case Queued(iteration=number, story=story):
                self.queue[number] = Entry(number, story, t, since=t)
                self._release(number, t)
            case QueueProving():
                self._prove(event, t)
            case QueueProved(iterations=numbers, merged=merged, passed=passed, why=why):
                self._stop_proving(numbers, t)
                for entry in self._entries(numbers):
                    if entry.merged == merged:
                        entry.enter(EntryState.PROVEN if passed else EntryState.RED, t, why)
            case Landing(iteration=number):
                for entry in self._entries((number,)):
                    entry.enter(EntryState.LANDING, t)
            case IterationEnded():
                self._end(event, t)
            case _:
                self.activity(event).add(event, t)

    def close(self) -> None:
        """The run has ended."""
        self.open.clear()
        self.queue.clear()
        self._between = begin()
        for worker in self.known.values():
            worker.iteration, worker.proving = 0, ()

    def rest(self) -> None:
        """The run's own checks have ended."""
        activity = self._between if self.known else self.activity()
        activity.check = activity.checks_since = None

    def _worker(self, number: int, t: float) -> Worker:
        return self.known.setdefault(number, Worker(number, t))

    def _entries(self, numbers: Iterable[int]) -> list[Entry]:
        return [self.queue[number] for number in numbers if number in self.queue]

    def _start(self, event: IterationStarted, t: float) -> None:
        if not event.worker:  # the run itself does one after the other
            self.open = {n: each for n, each in self.open.items() if each.started and each.started.worker}
            self._between = begin()
        self.open.pop(event.iteration, None)
        self.open[event.iteration] = begin(event, t, self._landings)
        if event.worker:
            worker = self._worker(event.worker, t)
            worker.iteration, worker.since, worker.proving, worker.lost = event.iteration, t, (), None
            worker.iterations += 1

    def _release(self, number: int, t: float) -> None:
        for worker in self.known.values():
            if worker.iteration == number:
                worker.iteration, worker.since = 0, t

    def _prove(self, event: QueueProving, t: float) -> None:
        self._stop_proving(event.iterations, t)  # a proof on a tree that was given up has no end record
        if event.worker:
            worker = self._worker(event.worker, t)
            worker.proving, worker.since = event.iterations, t
            worker.proofs += 1
        for entry in self._entries(event.iterations):
            entry.enter(EntryState.PROVING, t)
            entry.worker, entry.onto, entry.merged = event.worker, event.onto, event.merged

    def _stop_proving(self, numbers: tuple[int, ...], t: float) -> None:
        for worker in self.known.values():
            if set(worker.proving) & set(numbers):
                worker.proving, worker.since = (), t
        for number in numbers:
            if number in self.open:
                self.open[number].check = self.open[number].checks_since = None

    def _end(self, event: IterationEnded, t: float) -> None:
        activity = self.open.pop(event.iteration, None)
        entry = self.queue.get(event.iteration)
        if event.kind is Kind.RETURNED:
            self.clashes.append(self._clash(event, activity, entry))
        self.queue.pop(event.iteration, None)
        if activity is not None and activity.started is not None:
            self._ended.append(activity.started)
            if activity.started.worker and event.commit:
                self._landed.append(_Landed(event.story, event.commit, event.files))
                self._landings += 1
        self._release(event.iteration, t)
        if not self.known:
            self.open.clear()
            self._between = begin()

    def _merged_since(self, activity: Activity | None) -> list[_Landed]:
        """What was merged after the commit that an iteration started from."""
        landed = list(self._landed)
        if activity is None or activity.started is None:
            return []
        for at, each in enumerate(landed):
            if each.commit == activity.started.base:
                return landed[at + 1 :]
        count = self._landings - activity.landed
        return landed[-count:] if count else []

    def _clash(self, event: IterationEnded, activity: Activity | None, entry: Entry | None) -> Clash:
        is_red = event.headline.startswith(RED_MERGED) or (entry is not None and entry.state is EntryState.RED)
        others = self._merged_since(activity)
        if not is_red:  # the headline of a conflict names the files
            others = [each for each in others if any(path in event.headline for path in each.files)] or others
        names = [each.story for each in others]
        by_merge = {each.merged: each for each in self.queue.values() if each.merged and each is not entry}
        while is_red and entry is not None and (before := by_merge.pop(entry.onto, None)) is not None:
            names.append(before.story)
            entry = before
        own = tuple(dict.fromkeys(name for name in names if name != event.story))
        return Clash(event.story, event.iteration, is_red, event.headline, own)


def is_rescued(event: IterationEnded) -> bool:
    """Its work was undone and saved. A candidate that was not merged is kept elsewhere, for the next session."""
    return bool(event.rescue) and not event.rescue.startswith(CANDIDATES)


def iteration_of(event: AnyEvent | None) -> int:
    """The number of the iteration that an event belongs to; 0: none, or several."""
    match event:
        case QueueProving(iterations=(number,)) | QueueProved(iterations=(number,)):
            return int(number)
        case WorkerLost():
            return 0
    number = getattr(event, "iteration", 0)
    return number if isinstance(number, int) else 0
