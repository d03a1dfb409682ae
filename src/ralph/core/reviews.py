"""A reviewer's verdict, from the plan's fields or from the request file. Pure."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from ralph.core.findings import Finding, findings_in
from ralph.core.plan import Review, ReviewStatus
from ralph.core.text import clean

OPEN_FINDINGS = "approved with open findings"
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
