"""Every attempt at every story: what was claimed, what was checked and proven, what came of it and what it cost.

A fold over the journal. Pure. An attempt is one iteration; its times are for a timeline.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from enum import StrEnum

import msgspec
from msgspec import Struct

from ralph.core.agent import Denial, Outcome, Tokens
from ralph.core.changes import SetFields
from ralph.core.events import (
    AgentEnded,
    AgentStarted,
    AnyEvent,
    Baseline,
    Charged,
    CheckEnded,
    CheckStarted,
    Committed,
    FindingDecided,
    Guided,
    HookAnswered,
    HostRefused,
    IterationEnded,
    IterationStarted,
    Judged,
    Landing,
    Paused,
    Proved,
    Queued,
    QueueProved,
    QueueProving,
    Record,
    RescueSaved,
    Resumed,
    RunEnded,
    Settling,
    StepEnded,
    WaitEnded,
    WaitStarted,
)
from ralph.core.evidence import CheckResult, Ended, Evidence
from ralph.core.money import Basis, micros
from ralph.core.plan import Mode
from ralph.core.proof import Proof
from ralph.core.review import Entry, Finding, Ledger, Reply, ReviewStatus
from ralph.core.text import one_line
from ralph.core.verdict import Verdict

_MOST_CHECKS = 200
_MOST_LINES = 100
"""How many refused calls, hosts and steps of one attempt are kept."""
_MOST_SPANS = 20_000
_OF_RUN = ("baseline", "final")
"""Checks that belong to no iteration."""
FAILED = "failed"
"""The label of a proof that did not pass."""
_PAUSE = 5.0
"""Seconds between two checks that count as one stretch of time."""


class Check(Struct, frozen=True):
    """A check that has ended. `when`: baseline, checkout, story, proof or final."""

    when: str
    result: CheckResult
    at: float = 0


class AgentSession(Struct):
    step: str
    agent: str
    since: float
    until: float | None = None
    model: str = ""
    ended: Ended | None = None
    tokens: Tokens = Tokens()
    turns: int = 0
    tools: int = 0
    detail: str = ""
    """Why it could not work."""


class SpanKind(StrEnum):
    AGENT = "agent"
    """A session that writes: set-up, acceptance tests, implementation, exam."""
    REVIEW = "review"
    FIX = "fix"
    CHECKS = "checks"
    PROOF = "proof"
    """Checks on a merged tree, for the merge queue."""
    QUEUE = "queue"
    """Accepted work waits to be merged."""
    WAIT = "wait"
    PAUSE = "pause"


class Span(Struct):
    """A stretch of time for a timeline. `until` is None while it lasts."""

    kind: SpanKind
    since: float
    until: float | None = None
    iteration: int = 0
    worker: int = 0
    story: str = ""
    label: str = ""


class Attempt(Struct, kw_only=True):
    """One iteration. What is not known yet is empty."""

    iteration: int
    story: str
    title: str
    mode: Mode
    number: int
    """Which attempt at the story it is."""
    since: float
    worker: int = 0
    choice: str = ""
    base: str = ""
    """All files as they were when it started, the user's uncommitted ones too; of a worker, a commit."""
    head: str = ""
    """The commit that its own commit continues."""
    sessions: list[AgentSession] = []
    checks: list[Check] = []
    refused: list[str] = []
    """Calls that a hook or the client refused, hosts that the sandbox refused, steps that failed."""
    notes: list[str] = []
    """Notes from the user in its prompt."""
    claim: str = ""
    question: str = ""
    said: str = ""
    """The end of the agent's last message."""
    changed: tuple[str, ...] = ()
    proof: Proof | None = None
    objections: tuple[str, ...] = ()
    answer: ReviewStatus | None = None
    """The verdict of a reviewer."""
    reviewer: str = ""
    findings: tuple[Finding, ...] = ()
    replies: tuple[Reply, ...] = ()
    tree: str = ""
    """The candidate, to compare with `base`."""
    message: str = ""
    """Of the commit."""
    trailers: dict[str, tuple[str, ...]] = {}
    """What the commit says about its proof."""
    commit: str = ""
    rescue: str = ""
    rescue_commit: str = ""
    queued: float | None = None
    merged: QueueProved | None = None
    """The last proof of the merge queue."""
    spent: float | None = None
    is_estimated: bool = False
    is_unknown: bool = False
    """A session's cost is not known."""
    tokens: Tokens = Tokens()
    ended: IterationEnded | None = None
    until: float | None = None

    @property
    def cost_usd(self) -> float | None:
        if self.ended is not None and self.ended.cost_usd is not None and self.spent is None:
            return self.ended.cost_usd
        return self.spent

    @property
    def failing(self) -> list[Check]:
        return [check for check in self.checks if not check.result.passed]

    @property
    def verdict(self) -> str:
        return self.ended.kind.value if self.ended else ""


class Attempts:
    """Feed it the records in order."""

    def __init__(self) -> None:
        self.by_iteration: dict[int, Attempt] = {}
        self.of_run: list[Check] = []
        """The baseline and the final checks."""
        self.ledgers: dict[str, tuple[Entry, ...]] = {}
        """Story → the findings of its reviews, and what became of each."""
        self.spans: list[Span] = []
        self._open: dict[tuple[str, int], Span] = {}
        """Spans that last, by what they are of and the iteration."""
        self._checking: dict[int, CheckStarted] = {}
        self._checked: dict[int, Span | None] = {}
        """The last stretch of checks of an open iteration."""
        self._reported: dict[int, float] = {}

    def of(self, story: str) -> Iterator[Attempt]:
        """The attempts at a story, in the order of their start."""
        return (attempt for attempt in self.by_iteration.values() if attempt.story == story)

    def add(self, record: Record) -> None:
        event, t = record.event, record.t
        match event:
            case IterationStarted():
                self._start(event, t)
            case CheckStarted(iteration=number):
                self._checking[number] = event
                self._check(0 if event.when in _OF_RUN else number, t, one_line(event.name, 100))
            case CheckEnded(iteration=number) if number in self._checking and self._checking[number].when in _OF_RUN:
                del self._checking[number]  # the run names its last iteration
                self._end("checks", 0, t)
            case Baseline(results=results):
                self._end("checks", 0, t)
                self.of_run += [Check("baseline", result, t) for result in results]
            case Proved(results=results):
                self._end_checks(t)
                self.of_run = [each for each in self.of_run if each.when != "final"]
                self.of_run += [Check("final", result, t) for result in results]
            case WaitStarted(why=why):
                self._begin("wait", 0, SpanKind.WAIT, t, one_line(why, 200))
            case WaitEnded():
                self._end("wait", 0, t)
            case Paused():
                self._begin("pause", 0, SpanKind.PAUSE, t, "paused")
            case Resumed():
                self._end("pause", 0, t)
            case FindingDecided():
                known = self.ledgers.get(event.story, ())
                self.ledgers[event.story] = tuple(_decided(entry, event) for entry in known)
            case QueueProving(iterations=numbers):
                for number in numbers:
                    self._begin("proof", number, SpanKind.PROOF, t, worker=event.worker)
            case QueueProved(iterations=numbers, passed=passed):
                for number in numbers:
                    if (span := self._open.get(("proof", number))) is not None and not passed:
                        span.label = FAILED
                    self._end("proof", number, t)
                    if (attempt := self.by_iteration.get(number)) is not None:
                        attempt.merged = event
            case RunEnded():
                for what, number in list(self._open):
                    self._end(what, number, t)
            case _:
                attempt = self.by_iteration.get(getattr(event, "iteration", 0))
                if attempt is not None:
                    self._add(attempt, event, t)

    def _start(self, event: IterationStarted, t: float) -> None:
        self._end_checks(t, 0)
        self._checked.pop(0, None)
        known = self.by_iteration.get(event.iteration)
        if known is not None and known.ended is None and known.worker:  # a worker's work lands in the run's own tree
            return
        self.by_iteration[event.iteration] = Attempt(
            iteration=event.iteration,
            story=event.story,
            title=event.title,
            mode=event.mode,
            number=event.attempt,
            since=t,
            worker=event.worker,
            choice=event.choice,
            base=event.base or str(event.checkpoint.get("tree") or ""),
            head=event.base or str(event.checkpoint.get("head") or ""),
            sessions=[],
            checks=[],
            refused=[],
            notes=[],
        )

    def _add(self, attempt: Attempt, event: AnyEvent, t: float) -> None:
        number = attempt.iteration
        match event:
            case AgentStarted():
                attempt.sessions.append(AgentSession(event.step, event.agent, t))
                kind = _KINDS.get(attempt.mode, SpanKind.AGENT)
                self._begin("agent", number, kind, t, event.agent)
            case AgentEnded(outcome=outcome):
                self._end("agent", number, t)
                self._session_ended(attempt, event, t)
                attempt.refused += [_refused(denial) for denial in outcome.denials]
                del attempt.refused[_MOST_LINES:]
            case Charged():
                self._charge(attempt, event)
            case HookAnswered(answer="deny" | "block") if len(attempt.refused) < _MOST_LINES:
                what = f"{one_line(event.tool, 40)} {one_line(event.subject, 120)}".strip() or event.hook
                attempt.refused.append(f"{what}: {one_line(event.reason, 300)}")
            case HostRefused(host=host, port=port, why=why) if len(attempt.refused) < _MOST_LINES:
                attempt.refused.append(f"the sandbox refused {one_line(host, 80)}:{port}: {one_line(why, 200)}")
            case StepEnded(ok=False) if event.kind != "agent" and len(attempt.refused) < _MOST_LINES:
                why = event.skipped or event.detail or "failed"
                attempt.refused.append(f"step {one_line(event.step, 60)}: {one_line(why, 300)}")
            case Guided(text=text):
                attempt.notes.append(text)
            case CheckEnded(result=result):
                self._end("checks", number, t)
                started = self._checking.pop(number, None)
                if len(attempt.checks) < _MOST_CHECKS:
                    attempt.checks.append(Check(started.when if started else "", result, t))
            case Judged(evidence=evidence, verdict=verdict):
                self._end("checks", number, t)
                _judge(attempt, evidence)
                if evidence.story is not None:
                    self.ledgers[evidence.story.id] = evidence.story.ledger.entries
                self.ledgers |= _changed_ledgers(verdict)
            case Settling():
                attempt.tree, attempt.message = event.tree or attempt.tree, event.message
                attempt.trailers = event.proof
            case RescueSaved(ref=ref, commit=commit):
                attempt.rescue, attempt.rescue_commit = ref, commit
            case Committed(commit=commit):
                attempt.commit = commit
            case Landing():
                attempt.base, attempt.head = str(event.checkpoint.get("tree") or attempt.base), event.onto
            case Queued():
                attempt.queued, attempt.tree = t, event.commit
                self._begin("queue", number, SpanKind.QUEUE, t)
            case IterationEnded():
                for what in ("agent", "checks", "queue", "proof"):
                    self._end(what, number, t)
                attempt.ended, attempt.until = event, t
                attempt.question = event.question or attempt.question
                attempt.commit = event.commit or attempt.commit
                attempt.rescue = event.rescue or attempt.rescue
                self._reported.pop(number, None)
                self._checked.pop(number, None)

    def _session_ended(self, attempt: Attempt, event: AgentEnded, t: float) -> None:
        outcome: Outcome = event.outcome
        attempt.tokens += outcome.used
        attempt.said = outcome.text
        reported = outcome.cost_usd if micros(outcome.cost_usd) is not None else None
        self._reported[attempt.iteration] = reported or 0
        if reported is not None:
            attempt.spent = (attempt.spent or 0) + reported
        session = next((each for each in reversed(attempt.sessions) if each.step == event.step), None)
        if session is not None:
            session.until, session.ended, session.model = t, event.ended, outcome.model
            session.tokens, session.turns, session.tools = outcome.used, outcome.turns, outcome.tools
            session.detail = outcome.detail

    def _charge(self, attempt: Attempt, event: Charged) -> None:
        if event.basis is Basis.ESTIMATED and event.usd is not None:
            attempt.spent = (attempt.spent or 0) + event.usd - self._reported.get(attempt.iteration, 0)
            attempt.is_estimated = True
        elif event.basis is Basis.UNKNOWN:
            attempt.is_unknown = True

    def _begin(self, what: str, number: int, kind: SpanKind, t: float, label: str = "", worker: int = 0) -> None:
        self._end(what, number, t)
        if len(self.spans) >= _MOST_SPANS:
            return
        attempt = self.by_iteration.get(number)
        by = worker or (attempt.worker if attempt else 0)
        span = Span(kind, t, None, number, by, attempt.story if attempt else "", label)
        self._open[what, number] = span
        self.spans.append(span)

    def _check(self, number: int, t: float, label: str) -> None:
        """Checks that follow one another are one stretch of time, and those of a proof are a part of it."""
        if ("proof", number) in self._open:
            return
        before = self._checked.get(number)
        if before is not None and t - (before.until or t) < _PAUSE:
            before.until, before.label = None, label
            self._open["checks", number] = before
        else:
            self._begin("checks", number, SpanKind.CHECKS, t, label)
            self._checked[number] = self._open.get(("checks", number))

    def _end(self, what: str, number: int, t: float) -> None:
        if (span := self._open.pop((what, number), None)) is not None:
            span.until = t

    def _end_checks(self, t: float, only: int | None = None) -> None:
        for what, number in list(self._open):
            if what == "checks" and only in (None, number):
                self._end(what, number, t)


_KINDS = {Mode.REVIEW: SpanKind.REVIEW, Mode.FIX: SpanKind.FIX}


def _refused(denial: Denial) -> str:
    return f"the client refused {one_line(denial.tool, 40)} {one_line(denial.subject, 120)}".rstrip() + (
        f": {one_line(denial.remedy, 300)}" if denial.remedy else ""
    )


def _decided(entry: Entry, event: FindingDecided) -> Entry:
    if entry.id != event.finding:
        return entry
    return msgspec.structs.replace(entry, fate=event.fate, reason=event.reason, by_user=True)


def _changed_ledgers(verdict: Verdict) -> dict[str, tuple[Entry, ...]]:
    """The findings as the verdict leaves them. Changes are recorded as plain data."""
    found = {}
    for change in verdict.changes:
        if isinstance(change, SetFields) and "ledger" in change.fields:
            with contextlib.suppress(msgspec.ValidationError):
                found[change.story] = msgspec.convert(change.fields["ledger"], Ledger).entries
    return found


def _judge(attempt: Attempt, evidence: Evidence) -> None:
    attempt.claim = evidence.claim.value if evidence.claim else ""
    attempt.question = evidence.question
    attempt.changed = evidence.changed
    attempt.proof = evidence.proof
    attempt.objections = evidence.objections
    attempt.reviewer = evidence.reviewer
    attempt.replies = evidence.replies
    if evidence.answer is not None:
        attempt.answer, attempt.findings = evidence.answer.verdict, evidence.answer.findings
