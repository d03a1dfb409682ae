"""A reviewer's answer, however it was given: in the plan's own fields, or in the request file. Pure."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from ralph.core.plan import Review, ReviewStatus
from ralph.core.text import clean

AT_CAP = "[AUTO-APPROVED AT CAP]"


class OnCap(StrEnum):
    """What happens to a story that has used up its reviews and still is not approved."""

    APPROVE = "approve"
    FAIL = "fail"
    HUMAN = "human"


class Finding(Struct, frozen=True):
    """One thing a reviewer wants changed."""

    text: str
    place: str = ""
    severity: str = ""
    criterion: str = ""

    def __str__(self) -> str:
        where = f"{self.place}: " if self.place else ""
        about = f" (criterion: {self.criterion})" if self.criterion else ""
        rank = f"[{self.severity}] " if self.severity else ""
        return f"{rank}{where}{self.text}{about}"


class Answer(Struct, frozen=True):
    verdict: ReviewStatus
    feedback: str = ""
    findings: tuple[Finding, ...] = ()

    def review(self, count: int) -> Review:
        """As it is kept with the story."""
        listed = "\n".join(f"- {finding}" for finding in self.findings)
        text = "\n".join(part for part in (self.feedback.strip(), listed) if part)
        return Review(self.verdict, count, clean(text))
