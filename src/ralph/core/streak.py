"""How long it has gone without progress, and how often the same error has come: of a run, or of one story. Pure."""

from __future__ import annotations

from msgspec import Struct

from ralph.core.limits import Limits


class Streak(Struct, frozen=True):
    no_progress: int = 0
    """Iterations in a row in which nothing was proven that had not been. By the newer rule (`Limits.same_only`) only
    those count that failed as the one before or changed no file: failures of different kinds are bad luck."""
    same_error: int = 0
    """How often in a row the last error has come."""
    error: str = ""
    """Its fingerprint."""
    said: str = ""
    """What it said the last time."""
    idle: bool = False
    """In the last iteration no file was changed."""

    def after_failure(
        self, error: str, said: str, *, progress: bool, idle: bool = False, same_only: bool = False
    ) -> Streak:
        """A step forward does not make an error another one: it may still come back again and again."""
        is_same = bool(error) and error == self.error
        counts_on = is_same or idle or not same_only
        no_progress = 0 if progress else self.no_progress + 1 if counts_on else 1
        return Streak(no_progress, self.same_error + 1 if is_same else 1, error, said, idle)

    def once_less(self) -> Streak:
        less = max(self.no_progress - 1, 0), max(self.same_error - 1, 0)
        return Streak(*less, self.error, self.said, self.idle)

    def trip(self, limits: Limits) -> str:
        """Why this has gone on for too long, or nothing."""
        if limits.same_error and self.same_error >= limits.same_error:
            return f"the same error {self.same_error} times in a row"
        if limits.no_progress and self.no_progress >= limits.no_progress:
            return f"{self.no_progress} iterations in a row without progress"
        return ""
