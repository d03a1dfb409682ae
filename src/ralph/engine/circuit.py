"""The circuit breaker of a step: closed, open after failures in a row, half-open after a while. Pure."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Position(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


class Circuit(Struct, frozen=True):
    threshold: int
    reset_after: float
    failures: int = 0
    opened_at: float | None = None

    def position(self, now: float) -> Position:
        if self.opened_at is None:
            return Position.CLOSED
        # A clock that was set back must not keep the circuit open for longer than it says.
        waited = abs(now - self.opened_at)
        return Position.HALF_OPEN if waited >= self.reset_after else Position.OPEN

    def left(self, now: float) -> float:
        """Seconds until the step may be tried again."""
        return 0.0 if self.opened_at is None else max(self.reset_after - abs(now - self.opened_at), 0.0)

    def after(self, ok: bool, now: float) -> Circuit:
        """The circuit after one execution. A failed trial reopens it at once."""
        if ok:
            return Circuit(self.threshold, self.reset_after)
        failures = self.failures + 1
        opens = failures >= self.threshold or self.opened_at is not None
        return Circuit(self.threshold, self.reset_after, failures, now if opens else None)
