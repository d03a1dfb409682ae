"""A reason to doubt the proof of a change: a weakened test, an edited check. A value."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Tamper(StrEnum):
    """The consequence of a suspicion."""

    REVIEW = "review"
    """A review must look at it. Without a review, or if the checks fail without it, the work is rejected."""
    REJECT = "reject"
    OFF = "off"


class Suspicion(Struct, frozen=True):
    code: str
    path: str
    message: str
    line: int = 0
    is_grave: bool = True
    is_decisive: bool = False
    """The checks pass only because of it, and the story does not ask for it: nothing is left to review."""

    def __str__(self) -> str:
        return f"{self.path}{f':{self.line}' if self.line else ''}: {self.message}"
