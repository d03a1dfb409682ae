"""The verdict on an iteration, and what it costs."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from ralph.core.changes import Change


class Kind(StrEnum):
    ACCEPTED = "accepted"
    PARTIAL = "partial"
    """Sound work without a claim: kept, and the story stays open."""
    REJECTED = "rejected"
    BLOCKED = "blocked"
    LIMIT = "limit"
    TRANSPORT = "transport"
    CRASHED = "crashed"
    TIMED_OUT = "timed-out"
    MISCONFIGURED = "misconfigured"
    INTERRUPTED = "interrupted"
    RETURNED = "returned"
    """Accepted by itself, but it does not go together with what was merged meanwhile: back to the same story."""

    @property
    def uses_attempt(self) -> bool:
        return self in (Kind.ACCEPTED, Kind.PARTIAL, Kind.REJECTED, Kind.CRASHED, Kind.TIMED_OUT)

    @property
    def feeds_breaker(self) -> bool:
        return self in (Kind.PARTIAL, Kind.REJECTED, Kind.CRASHED, Kind.TIMED_OUT)

    @property
    def keeps_work(self) -> bool:
        return self in (Kind.ACCEPTED, Kind.PARTIAL)


class Verdict(Struct, frozen=True):
    kind: Kind
    reasons: tuple[str, ...] = ()
    """Sentences; the first one is the headline."""
    changes: tuple[Change, ...] = ()
    """Legal changes to the plan: the agent's, and Ralph's own mark."""
    notices: tuple[str, ...] = ()
    """What was restored; reported to the next iteration and to the user."""
    fingerprint: str = ""
    """Identity of the error, without what varies from run to run."""
    resets_at: float | None = None
    question: str = ""
    completes: bool = False
    """This completes the story."""
    is_cut: bool = False
    """A budget ended the session before its work was complete: no attempt is used."""
    grade: str = ""
    """How well the story is proven; empty: not judged."""

    @property
    def headline(self) -> str:
        return self.reasons[0] if self.reasons else self.kind.value
