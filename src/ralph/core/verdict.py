"""What the loop concludes from evidence, and what that costs."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from ralph.core.changes import Change


class Kind(StrEnum):
    ACCEPTED = "accepted"
    PARTIAL = "partial"
    """Sound work without a claim: kept, and the story goes on."""
    REJECTED = "rejected"
    BLOCKED = "blocked"
    LIMIT = "limit"
    TRANSPORT = "transport"
    CRASHED = "crashed"
    TIMED_OUT = "timed-out"
    MISCONFIGURED = "misconfigured"
    INTERRUPTED = "interrupted"

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
    """Legal changes to the plan: the agent's own, and the mark the loop makes."""
    notices: tuple[str, ...] = ()
    """What was put back, told to the next iteration and to people."""
    fingerprint: str = ""
    """Identity of the error, without what varies from run to run."""
    resets_at: float | None = None
    question: str = ""
    completes: bool = False
    """The story is done with this."""

    @property
    def headline(self) -> str:
        return self.reasons[0] if self.reasons else self.kind.value
