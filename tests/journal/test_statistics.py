"""Figures from journals: what stories took, what reviews found, what they cost."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ralph.core.agent import Outcome, Tokens
from ralph.core.changes import SetFields
from ralph.core.events import (
    AgentEnded,
    AgentStarted,
    AnyEvent,
    IterationEnded,
    IterationStarted,
    Judged,
    Record,
    RunStarted,
)
from ralph.core.evidence import Ended, Evidence, How
from ralph.core.plan import Mode, State, Story
from ralph.core.review import Answer, Entry, Fate, Finding, Ledger, Review, ReviewStatus
from ralph.core.verdict import Kind, Verdict
from ralph.journal.statistics import Effort, Figures, Tally

MAJOR = Finding("nobody is greeted", "greet.py:3", "Major", "greet('') is 'Hello, you.'")
MINOR = Finding("a long line", "greet.py:9", "minor")


class Run:
    """Records of a run, made one iteration after the other."""

    def __init__(self, plan: str = "/shop/prd.json") -> None:
        self.number = 0
        self.events: list[AnyEvent] = [RunStarted(run="r", workspace="/shop", layout="feature", plan=plan, pid=1)]

    def iterate(
        self, story: str, mode: Mode, kind: Kind = Kind.ACCEPTED, *, answer: Answer | None = None, **fields: Any
    ) -> Run:
        self.number += 1
        completes = fields.get("state") is State.DONE
        ended = Ended(How.EXITED, code=0, seconds=2.0)
        outcome = Outcome(finished=True, ok=True, tokens=Tokens(90, 10), cost_usd=0.05)
        changes = (SetFields(story, fields),) if fields else ()
        evidence = Evidence(mode=mode, story=Story(id=story, title=story), ended=ended, outcome=outcome, answer=answer)
        at = self.number
        self.events += [
            IterationStarted(iteration=at, story=story, title=story, mode=mode, attempt=1),
            AgentStarted(iteration=at, step="agent", pid=2, start="1"),
            AgentEnded(iteration=at, step="agent", ended=ended, outcome=outcome),
            Judged(at, evidence, Verdict(kind, changes=changes, completes=completes)),
            IterationEnded(
                iteration=at,
                story=story,
                mode=mode,
                kind=kind,
                story_state=fields.get("state", State.TODO),
                completes=completes,
            ),
        ]  # fmt: skip
        return self

    def work(self, story: str, kind: Kind = Kind.ACCEPTED, mode: Mode = Mode.IMPLEMENT, **fields: Any) -> Run:
        return self.iterate(story, mode, kind, **fields)

    def approve(self, story: str) -> Run:
        given = Answer(ReviewStatus.APPROVED)
        return self.iterate(story, Mode.REVIEW, answer=given, review=Review(ReviewStatus.APPROVED, 1), state=State.DONE)

    def send_back(self, story: str, *findings: Finding, fate: Fate = Fate.OPEN) -> Run:
        given = Answer(ReviewStatus.CHANGES_REQUESTED, "no", findings)
        entries = tuple(Entry(id=f"F{n}", finding=one, fate=fate) for n, one in enumerate(findings, 1))
        review = Review(ReviewStatus.CHANGES_REQUESTED, 1, "no")
        return self.iterate(story, Mode.REVIEW, answer=given, review=review, ledger=Ledger(entries))


def figures(*runs: Run) -> Figures:
    """The same from the records as they were written and as they are read again."""
    live, again = Tally(), Tally()
    decoder = msgspec.json.Decoder(Record)
    for run in runs:
        for record in _records(run.events):
            live.add(record)
            again.add(decoder.decode(msgspec.json.encode(record)))
    assert live.figures() == again.figures()
    return live.figures()


def _records(events: Iterable[AnyEvent]) -> list[Record]:
    return [Record(number, float(number), event) for number, event in enumerate(events, 1)]


def test_the_review_cycle_in_figures() -> None:
    run = Run().work("A").send_back("A", MAJOR, MINOR).work("A", mode=Mode.FIX).approve("A").work("B").approve("B")
    found = figures(run)
    assert (found.finished, found.iterations, found.attempts) == (2, 6, {1: 1, 2: 1})
    assert found.attempts_per_story == 1.5
    assert (found.reviews.count, found.reviews.stories, found.reviews.at_first) == (3, 2, 1)
    assert found.reviews.per_story == 1.5
    assert found.findings.count == 2
    assert found.findings.severities == {"major": 1, "minor": 1}
    assert found.findings.criteria == {"greet('') is 'Hello, you.'": 1}
    assert found.findings.fates == {"open": 2}


def test_reviews_are_set_against_the_work() -> None:
    found = figures(Run().work("A").send_back("A", MAJOR).work("A", mode=Mode.FIX).approve("A"))
    assert found.review == Effort(2, 4.0, 200, 0.1)
    assert found.work == Effort(2, 4.0, 200, 0.1)
    assert set(found.effort) == {"implement", "review", "fix"}


def test_a_finding_counts_once_however_often_it_is_asked_for() -> None:
    run = Run().work("A").send_back("A", MAJOR).work("A", mode=Mode.FIX).send_back("A", MAJOR, fate=Fate.REJECTED)
    found = figures(run)
    assert (found.findings.count, found.findings.fates) == (1, {"rejected": 1})
    assert found.reviews.at_first == 0


def test_a_review_that_was_not_believed_is_no_review() -> None:
    run = Run().work("A").iterate("A", Mode.REVIEW, Kind.REJECTED).approve("A")
    found = figures(run)
    assert (found.reviews.count, found.reviews.not_believed, found.reviews.at_first) == (1, 1, 1)
    assert found.verdicts == {"accepted": 2, "rejected": 1}


def test_only_what_uses_an_attempt_is_one() -> None:
    run = Run().work("A", Kind.LIMIT).work("A", Kind.TRANSPORT).work("A", Kind.CRASHED).work("A", state=State.DONE)
    assert figures(run).attempts == {2: 1}


def test_a_story_that_took_two_runs_counts_once() -> None:
    first, second = Run().work("A", Kind.REJECTED), Run().work("A", state=State.DONE)
    found = figures(first, second)
    assert (found.runs, found.finished, found.attempts) == (2, 1, {2: 1})


def test_stories_of_two_plans_with_the_same_name_are_two() -> None:
    one, other = Run("/shop/a.json").work("A", state=State.DONE), Run("/shop/b.json").work("A", state=State.DONE)
    assert figures(one, other).attempts == {1: 2}


def test_findings_of_a_journal_without_a_ledger_are_counted_too() -> None:
    given = Answer(ReviewStatus.CHANGES_REQUESTED, "no", (MAJOR,))
    review = Review(ReviewStatus.CHANGES_REQUESTED, 1, "no")
    found = figures(Run().work("A").iterate("A", Mode.REVIEW, answer=given, review=review))
    assert (found.findings.count, found.findings.fates) == (1, {})


def test_what_earlier_runs_found_is_not_found_in_this_one() -> None:
    """The figures of one run alone: its story has been sent back before."""
    later = Run().work("A", mode=Mode.FIX).approve("A")
    entries = (Entry(id="F1", finding=MAJOR, fate=Fate.FIXED),)
    reviewed = Story(id="A", title="A", review=Review(ReviewStatus.CHANGES_REQUESTED, 1, "no"), ledger=Ledger(entries))
    later.events = [
        msgspec.structs.replace(event, evidence=msgspec.structs.replace(event.evidence, story=reviewed))
        if isinstance(event, Judged)
        else event
        for event in later.events
    ]
    found = figures(later)
    assert (found.reviews.count, found.reviews.stories, found.reviews.at_first, found.findings.count) == (1, 1, 0, 0)


def test_what_was_waved_through_at_the_cap_was_not_approved_at_first() -> None:
    review = Review(ReviewStatus.APPROVED, 1, "[AUTO-APPROVED AT CAP] more")
    found = figures(Run().work("A").iterate("A", Mode.REVIEW, review=review, state=State.DONE))
    assert (found.reviews.stories, found.reviews.at_first) == (1, 0)


def test_several_reviewers_make_one_review() -> None:
    found = figures(Run().work("A").iterate("A", Mode.REVIEW).iterate("A", Mode.REVIEW).approve("A"))
    assert (found.reviews.count, found.reviews.per_story, found.review.calls) == (1, 1.0, 3)


def test_nothing_gives_nothing() -> None:
    assert figures() == Figures()
