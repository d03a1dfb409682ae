"""What happens to changed expectations, and the suspicions in the journals of older versions. Values."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Tamper(StrEnum):
    """What happens when the checks pass only with changed tests."""

    REVIEW = "review"
    """A review has to approve it. Without one, the work is rejected."""
    REJECT = "reject"
    OFF = "off"


class Suspicion(Struct, frozen=True):
    """A weakened test or an edited check, as older versions recorded it."""

    code: str
    path: str
    message: str
    line: int = 0
    is_grave: bool = True
    is_decisive: bool = False
    """The checks pass only because of it, and the story does not ask for it: nothing is left to review."""

    def __str__(self) -> str:
        return f"{self.path}{f':{self.line}' if self.line else ''}: {self.message}"
