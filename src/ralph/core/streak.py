"""Iterations without progress and repetitions of the same error, for a run or one story. Pure."""

from __future__ import annotations

from msgspec import Struct

from ralph.core.limits import Limits


class Streak(Struct, frozen=True):
    no_progress: int = 0
    """Iterations in a row that proved nothing new. By the newer rule (`Limits.same_only`), only those count that
    failed like the one before or changed no file: failures of different kinds are bad luck.
    """
    same_error: int = 0
    """How often the last error occurred in a row."""
    error: str = ""
    """Its fingerprint."""
    said: str = ""
    """Its text the last time."""
    idle: bool = False
    """The last iteration changed no file."""

    def after_failure(
        self, error: str, said: str, *, progress: bool, idle: bool = False, same_only: bool = False
    ) -> Streak:
        """Progress does not reset the error count: the same error may keep coming back."""
        is_same = bool(error) and error == self.error
        counts_on = is_same or idle or not same_only
        no_progress = 0 if progress else self.no_progress + 1 if counts_on else 1
        return Streak(no_progress, self.same_error + 1 if is_same else 1, error, said, idle)

    def once_less(self) -> Streak:
        less = max(self.no_progress - 1, 0), max(self.same_error - 1, 0)
        return Streak(*less, self.error, self.said, self.idle)

    def trip(self, limits: Limits) -> str:
        """Why this has gone on for too long; empty if it has not."""
        if limits.same_error and self.same_error >= limits.same_error:
            return f"the same error {self.same_error} times in a row"
        if limits.no_progress and self.no_progress >= limits.no_progress:
            return f"{self.no_progress} iterations in a row without progress"
        return ""
