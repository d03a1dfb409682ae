"""What stories took, what reviews found, and what both cost: a fold over journals. Pure."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.changes import SetFields
from ralph.core.events import (
    AgentEnded,
    AgentStarted,
    Charged,
    IterationEnded,
    IterationStarted,
    Judged,
    Record,
    RunStarted,
)
from ralph.core.money import Basis
from ralph.core.plan import Mode, State
from ralph.core.review import AT_CAP, AT_STALEMATE, Finding, Ledger, ReviewStatus
from ralph.core.verdict import Kind

_MOST_CRITERIA = 10


class Effort(Struct, frozen=True):
    """The effort of agents, without the checks that Ralph ran."""

    calls: int = 0
    seconds: float = 0
    tokens: int = 0
    usd: float | None = None
    is_estimated: bool = False
    """A part of the cost is estimated at list prices."""
    unknown: int = 0
    """Sessions whose cost is unknown; their tokens are included."""

    def __add__(self, other: Effort) -> Effort:
        known = [usd for usd in (self.usd, other.usd) if usd is not None]
        return Effort(
            self.calls + other.calls,
            round(self.seconds + other.seconds, 3),
            self.tokens + other.tokens,
            round(sum(known), 6) if known else None,
            self.is_estimated or other.is_estimated,
            self.unknown + other.unknown,
        )


class Reviews(Struct, frozen=True):
    count: int = 0
    """Reviews that gave a verdict; several reviewers in one round count as one."""
    not_believed: int = 0
    """Reviews that changed files, approved failing work, or gave no verdict."""
    stories: int = 0
    """Stories that a review approved or sent back."""
    at_first: int = 0
    """Of these, approved without requested changes."""

    @property
    def per_story(self) -> float:
        return self.count / self.stories if self.stories else 0.0


class FindingCounts(Struct, frozen=True):
    count: int = 0
    severities: dict[str, int] = {}
    criteria: dict[str, int] = {}
    fates: dict[str, int] = {}


class Figures(Struct, frozen=True, kw_only=True):
    runs: int = 0
    iterations: int = 0
    finished: int = 0
    given_up: int = 0
    attempts: dict[int, int] = {}
    """Attempts → number of finished stories that took that many."""
    verdicts: dict[str, int] = {}
    reviews: Reviews = Reviews()
    findings: FindingCounts = FindingCounts()
    effort: dict[str, Effort] = {}
    """By mode."""

    @property
    def attempts_per_story(self) -> float:
        stories = sum(self.attempts.values())
        return sum(tried * count for tried, count in self.attempts.items()) / stories if stories else 0.0

    @property
    def work(self) -> Effort:
        """The effort that reviews are compared with: implementing and fixing."""
        return self.effort.get(Mode.IMPLEMENT.value, Effort()) + self.effort.get(Mode.FIX.value, Effort())

    @property
    def review(self) -> Effort:
        return self.effort.get(Mode.REVIEW.value, Effort())


class _Story:
    """What is known about one story of one plan."""

    def __init__(self) -> None:
        self.attempts = 0
        self.reviews = 0
        self.sent_back = 0
        self.by_review = False
        self.state: State | None = None
        self.ledger = Ledger()
        self.earlier: frozenset[str] | None = None
        """Findings from runs that are not counted here."""
        self.found: list[Finding] = []
        """From journals without a ledger of findings."""


class Tally:
    """Feed it the records, one run after another."""

    def __init__(self) -> None:
        self._stories: dict[tuple[str, str], _Story] = {}
        self._plan = ""
        self._modes: dict[int, Mode] = {}
        self._reported: dict[int, float] = {}
        """By iteration: the cost that its last session reported."""
        self._verdicts: dict[int, Judged] = {}
        self._runs = self._iterations = self._not_believed = 0
        self._kinds: Counter[str] = Counter()
        self._effort: dict[str, Effort] = {}

    def add(self, record: Record) -> None:
        match event := record.event:
            case RunStarted(plan=plan):
                self._plan = plan
                self._modes, self._verdicts, self._reported = {}, {}, {}
                self._runs += 1
            case IterationStarted(iteration=number, mode=mode):
                self._modes[number] = mode
                self._verdicts.pop(number, None)
            case AgentStarted(iteration=number):
                self._spend(number, Effort(calls=1))
            case AgentEnded(iteration=number, ended=ended, outcome=outcome):
                self._spend(number, Effort(0, ended.seconds, outcome.used.total, outcome.cost_usd))
                self._reported[number] = outcome.cost_usd or 0
            case Charged(iteration=number, basis=Basis.ESTIMATED, usd=usd) if usd is not None:
                self._spend(number, Effort(usd=usd - self._reported.get(number, 0), is_estimated=True))
            case Charged(iteration=number, basis=Basis.UNKNOWN):
                self._spend(number, Effort(unknown=1))
            case Judged(iteration=number):
                self._verdicts[number] = event
            case IterationEnded():
                self._finish(event, self._verdicts.pop(event.iteration, None))

    def _spend(self, iteration: int, effort: Effort) -> None:
        name = self._modes.get(iteration, Mode.IMPLEMENT).value
        self._effort[name] = self._effort.get(name, Effort()) + effort

    def _finish(self, event: IterationEnded, judged: Judged | None) -> None:
        self._iterations += 1
        self._kinds[event.kind.value] += 1
        if not event.story:
            return
        story = self._stories.setdefault((self._plan, event.story), _Story())
        story.state = event.story_state
        self._meet(story, judged)
        if event.mode is Mode.REVIEW:
            self._review(story, event, judged)
        elif event.kind.uses_attempt and event.mode is not Mode.ACCEPTANCE:
            story.attempts += 1
        fields = _fields(judged, event)
        if "ledger" in fields:
            story.ledger = msgspec.convert(fields["ledger"], Ledger)

    def _meet(self, story: _Story, judged: Judged | None) -> None:
        """A story may have been reviewed in runs that are not counted here."""
        before = judged.evidence.story if judged is not None else None
        if story.earlier is None and before is not None:
            story.earlier = frozenset(entry.id for entry in before.ledger.entries)
            story.sent_back += before.review.count > 0

    def _review(self, story: _Story, event: IterationEnded, judged: Judged | None) -> None:
        if event.kind not in (Kind.ACCEPTED, Kind.BLOCKED):
            self._not_believed += event.kind.uses_attempt
            return
        story.by_review = story.by_review or event.completes
        given = _fields(judged, event).get("review") or {}
        story.reviews += bool(given)  # several reviewers make one review
        is_waved_through = str(given.get("feedback", "")).startswith((AT_CAP, AT_STALEMATE))
        story.sent_back += given.get("status") == ReviewStatus.CHANGES_REQUESTED.value or is_waved_through
        if judged is not None and judged.evidence.answer is not None:
            story.found += judged.evidence.answer.findings

    def figures(self) -> Figures:
        stories = self._stories.values()
        done = [story for story in stories if story.state is State.DONE]
        settled = [story for story in stories if story.by_review or story.sent_back]
        return Figures(
            runs=self._runs,
            iterations=self._iterations,
            finished=len(done),
            given_up=sum(story.state is State.FAILED for story in stories),
            attempts=dict(sorted(Counter(story.attempts for story in done).items())),
            verdicts=dict(self._kinds.most_common()),
            reviews=Reviews(
                sum(story.reviews for story in stories),
                self._not_believed,
                len(settled),
                sum(story.by_review and not story.sent_back for story in settled),
            ),
            findings=_count_findings(list(stories)),
            effort=dict(self._effort),
        )


def _fields(judged: Judged | None, event: IterationEnded) -> dict[str, Any]:
    """The fields the verdict set on the story, as plain data: a record that was just written still holds values."""
    if judged is None:
        return {}
    fields: dict[str, Any] = {}
    for change in judged.verdict.changes:
        if isinstance(change, SetFields) and change.story == event.story:
            fields |= msgspec.to_builtins({n: v for n, v in change.fields.items() if n in ("review", "ledger")})
    return fields


def _count_findings(stories: list[_Story]) -> FindingCounts:
    entries = [entry for story in stories for entry in story.ledger.entries if entry.id not in (story.earlier or ())]
    loose = [finding for story in stories if not story.ledger.entries for finding in story.found]
    findings = [*(entry.finding for entry in entries), *loose]
    severities = Counter(finding.severity.strip().lower() or "unrated" for finding in findings)
    criteria = Counter(finding.criterion.strip() for finding in findings if finding.criterion.strip())
    return FindingCounts(
        len(findings),
        dict(severities.most_common()),
        dict(criteria.most_common(_MOST_CRITERIA)),
        dict(Counter(entry.fate.value for entry in entries).most_common()),
    )
