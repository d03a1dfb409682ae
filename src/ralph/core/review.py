"""The findings of a story's reviews with the status of each, and a reviewer's verdict. Pure.

Reviewers and fixers share no session. The ledger is what they share: every finding has an ID, a fix states for each
whether it was fixed or why it is not a problem, and a rejected finding can be raised again only with new evidence.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from enum import StrEnum

import msgspec
from msgspec import Struct

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import clean

_MOST_ENTRIES = 200
_MOST_POINTS = 50
_LONGEST_POINT = 2000


class ReviewStatus(StrEnum):
    NEEDS_REVIEW = "needs_review"
    CHANGES_REQUESTED = "changes_requested"
    APPROVED = "approved"


class Review(Struct, frozen=True):
    status: ReviewStatus | None = None
    count: int = 0
    feedback: str = ""


NO_REVIEW = Review()


class Fate(StrEnum):
    OPEN = "open"
    """Raised, and not yet addressed."""
    FIXED = "fixed"
    """Reported as fixed; the next review verifies it."""
    REJECTED = "rejected"
    """Rejected by a fix or by the user, with a reason."""
    CLOSED = "closed"
    """A later review no longer raises it."""


class Finding(Struct, frozen=True):
    """One change that a reviewer requests."""

    text: str
    place: str = ""
    severity: str = ""
    criterion: str = ""
    id: str = ""
    """ID of the known finding it refers to; empty: a new one."""
    evidence: str = ""
    """Evidence: an input, an output, a failing command."""

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        about = f" (criterion: {self.criterion})" if self.criterion else ""
        rank = f"[{self.severity}] " if self.severity else ""
        return f"{rank}{where}{self.text or self.id}{about}"


class Reply(Struct, frozen=True):
    """A fix's answer to one finding."""

    id: str
    fate: Fate
    reason: str = ""


class Entry(Struct, frozen=True, kw_only=True):
    id: str
    finding: Finding
    fate: Fate = Fate.OPEN
    reason: str = ""
    reviewer: str = ""
    review: int = 0
    """The number of the review that last raised it."""
    by_user: bool = False
    """The user decided its fate. One that the user confirmed (open, or fixed since) cannot be rejected by a fix, and
    is closed only by a review after a fix."""

    @property
    def is_confirmed(self) -> bool:
        return self.by_user and self.fate in (Fate.OPEN, Fate.FIXED)

    def __str__(self) -> str:
        shown = f" Evidence: {self.finding.evidence}" if self.finding.evidence else ""
        return f"{self.id} {self.finding}{shown}"


class Ledger(Struct, frozen=True):
    entries: tuple[Entry, ...] = ()
    heard: tuple[str, ...] = ()
    """Reviewers that have answered in the current round."""
    has_moved: bool = False
    """One of them raised something new, or dropped something it raised before."""

    def get(self, entry_id: str) -> Entry | None:
        return next((entry for entry in self.entries if entry.id.lower() == entry_id.strip().lower()), None)

    @property
    def open(self) -> tuple[Entry, ...]:
        return tuple(entry for entry in self.entries if entry.fate is Fate.OPEN)


NO_LEDGER = Ledger()


class Heard(Struct, frozen=True):
    """The result of entering a review in the ledger."""

    ledger: Ledger
    asked: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    """Findings that were rejected before and are raised again without new evidence."""


def hear(ledger: Ledger, findings: Sequence[Finding], reviewer: str, review: int) -> Heard:
    """Enter one reviewer's findings. Those it raised before and no longer raises are closed."""
    entries = list(ledger.entries)
    before = _last_round(ledger, reviewer)
    asked: dict[str, None] = {}
    refused: dict[str, None] = {}
    is_new = False
    for finding in findings:
        known = _known(entries, finding)
        if known is None and (not finding.text or len(entries) >= _MOST_ENTRIES):
            continue
        if known is None:
            known = Entry(id=f"F{len(entries) + 1}", finding=finding, reviewer=reviewer)
            entries.append(known)
            is_new = True
        elif _says_more(known, finding):
            is_new = True
        elif known.fate is Fate.REJECTED:
            refused[known.id] = None
            continue
        asked[known.id] = None
        entries[entries.index(known)] = _raised(known, finding, reviewer, review)
    closed = [_close(entry) if _lapses(entry, asked, reviewer) else entry for entry in entries]
    has_moved = ledger.has_moved or is_new or before != {*asked, *refused}
    turned_away = tuple(name for name in refused if name not in asked)
    return Heard(Ledger(tuple(closed), (*ledger.heard, reviewer), has_moved), tuple(asked), turned_away)


def _raised(known: Entry, finding: Finding, reviewer: str, review: int) -> Entry:
    joined = _joined(known.finding, finding)
    return msgspec.structs.replace(
        known, finding=joined, fate=Fate.OPEN, reviewer=reviewer, review=review, by_user=known.is_confirmed
    )


def _last_round(ledger: Ledger, reviewer: str) -> set[str]:
    """The findings this reviewer raised in its last review."""
    own = [entry for entry in ledger.entries if entry.reviewer == reviewer]
    last = max((entry.review for entry in own), default=0)
    return {entry.id for entry in own if entry.review == last}


def answer(ledger: Ledger, replies: Sequence[Reply]) -> tuple[Ledger, tuple[str, ...]]:
    """Enter a fix's answers; returns the findings it leaves unanswered. A fix that names none has fixed them all."""
    if not replies:
        return _all(ledger, Fate.OPEN, Fate.FIXED), ()
    by_id = {entry.id: reply for reply in replies if (entry := ledger.get(reply.id)) is not None}
    entries = []
    silent = []
    for entry in ledger.entries:
        reply = by_id.get(entry.id)
        if entry.fate is not Fate.OPEN:
            entries.append(entry)
        elif reply is None or (reply.fate is Fate.REJECTED and (entry.by_user or not reply.reason.strip())):
            entries.append(entry)
            silent.append(entry.id)
        else:
            entries.append(msgspec.structs.replace(entry, fate=reply.fate, reason=reply.reason.strip()))
    return Ledger(tuple(entries)), tuple(silent)


def overrule(ledger: Ledger, entry_id: str, fate: Fate, reason: str = "") -> Ledger:
    """The user decides: a finding is rejected, or confirmed (open). A confirmed one starts a new round of reviews."""
    decided = tuple(
        msgspec.structs.replace(entry, fate=fate, reason=reason, by_user=True) if entry.id == entry_id else entry
        for entry in ledger.entries
    )
    return Ledger(decided, () if fate is Fate.OPEN else ledger.heard, ledger.has_moved)


def rejects_all(ledger: Ledger, replies: Sequence[Reply]) -> bool:
    """Whether a fix rejects every open finding with a reason: then there is nothing to change."""
    after, silent = answer(ledger, replies)
    turned_down = {entry.id for entry in after.entries if entry.fate is Fate.REJECTED}
    return bool(ledger.open) and not silent and turned_down.issuperset(entry.id for entry in ledger.open)


def close(ledger: Ledger) -> Ledger:
    """Approved: close all findings."""
    return Ledger(tuple(_close(entry) if entry.fate is not Fate.REJECTED else entry for entry in ledger.entries))


_BULLET = lazy_pattern(r"^\s*(?:[-*+•]|\d{1,3}[.)])\s+(?=\S)")
_LINE = lazy_pattern(r"(\.[a-z]\w{0,9}):\d+(?:[:-]\d+)?|\b(?:lines?|L)\s*\d+(?:\s*[-–]\s*L?\d+)?\b", re.IGNORECASE)
"""A line number: `src/cart.py:12`, `line 12`, `lines 3-7`, `L12`."""
_NAMED = lazy_pattern(r"^(F\d{1,4})\b[:.]?\s*", re.IGNORECASE)


def findings_in(text: str) -> tuple[Finding, ...]:
    """The findings of a review that is plain text: one for each list item, or the whole text."""
    points: list[list[str]] = []
    for line in text.splitlines():
        if _BULLET.match(line) and not line.startswith((" ", "\t")):
            points.append([_BULLET.sub("", line)])
        elif points and line.strip():
            points[-1].append(line.strip())
    texts = [" ".join(point).strip() for point in points] or ([text.strip()] if text.strip() else [])
    return tuple(_from_text(each[:_LONGEST_POINT]) for each in texts[:_MOST_POINTS] if each)


def _from_text(text: str) -> Finding:
    named = _NAMED.match(text)
    return Finding(text[named.end() :] or text, id=named.group(1).upper()) if named else Finding(text)


def _known(entries: Sequence[Entry], finding: Finding) -> Entry | None:
    """The finding it names, else the one with the same text."""
    wanted, same = finding.id.strip().lower(), _identity(finding)
    named = next((entry for entry in entries if entry.id.lower() == wanted), None)
    if named is not None or not finding.text:
        return named
    return next((entry for entry in entries if _identity(entry.finding) == same), None)


def _identity(finding: Finding) -> str:
    """The same text about the same file is the same finding, even if the line moved.

    All other numbers count: "answers 500, not 400" and "answers 404, not 401" are two findings.
    """
    text = _LINE.sub(lambda match: f"{match[1] or ''} ", f"{finding.place.partition(':')[0]} {finding.text}")
    return " ".join(_words(text))


def _says_more(known: Entry, finding: Finding) -> bool:
    """Whether the finding should be looked at again. A rejected one needs evidence that is not just a rewording."""
    if not finding.evidence.strip():
        is_same = not finding.text or _identity(finding) == _identity(known.finding)
        return known.fate is not Fate.REJECTED and not is_same
    said = f"{known.finding.text} {known.finding.evidence} {known.reason}"
    return not set(_words(finding.evidence)) <= set(_words(said))


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def _joined(known: Finding, again: Finding) -> Finding:
    return Finding(
        again.text or known.text,
        again.place or known.place,
        again.severity or known.severity,
        again.criterion or known.criterion,
        evidence=again.evidence or known.evidence,
    )


def _lapses(entry: Entry, asked: Container[str], reviewer: str) -> bool:
    if entry.reviewer != reviewer or entry.id in asked:
        return False
    return entry.fate is Fate.FIXED or (entry.fate is Fate.OPEN and not entry.by_user)


def _close(entry: Entry) -> Entry:
    return msgspec.structs.replace(entry, fate=Fate.CLOSED)


def _all(ledger: Ledger, old: Fate, new: Fate) -> Ledger:
    return Ledger(
        tuple(msgspec.structs.replace(entry, fate=new) if entry.fate is old else entry for entry in ledger.entries)
    )


OPEN_FINDINGS = "approved with open findings"
LOST_REVIEWS = "reviews in a row gave no usable verdict"
AT_CAP = "[AUTO-APPROVED AT CAP]"
AT_STALEMATE = "[AUTO-APPROVED AT STALEMATE]"


class OnCap(StrEnum):
    """What happens to a story that reviews do not settle: it reached the limit, or the reviews go round in circles."""

    APPROVE = "approve"
    FAIL = "fail"
    HUMAN = "human"


class Answer(Struct, frozen=True):
    verdict: ReviewStatus
    feedback: str = ""
    findings: tuple[Finding, ...] = ()

    def review(self, count: int) -> Review:
        """In the form that is stored with the story."""
        listed = "\n".join(f"- {finding}" for finding in self.findings)
        text = "\n".join(part for part in (self.feedback.strip(), listed) if part)
        return Review(self.verdict, count, clean(text))


def approved_at(review: Review) -> str:
    """`cap` or `stalemate` if that approved the story with findings open, not a reviewer. Else empty."""
    if review.status is not ReviewStatus.APPROVED:
        return ""
    notes = {AT_CAP: "cap", AT_STALEMATE: "stalemate"}
    return next((where for note, where in notes.items() if review.feedback.startswith(note)), "")


def findings_of(answer: Answer | None, given: Review) -> tuple[Finding, ...]:
    """The findings of a review, one by one; parsed from its text if it is only text."""
    if given.status is not ReviewStatus.CHANGES_REQUESTED:
        return ()
    return answer.findings if answer is not None and answer.findings else findings_in(given.feedback)
