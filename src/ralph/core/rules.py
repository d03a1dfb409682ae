"""The rules of a run: one value, made once from the settings, that every verb obeys."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ralph.core.limits import Limits
from ralph.core.proof import Grade, Tamper
from ralph.core.review import OnCap


class Patience(Struct, frozen=True):
    """How long an agent may take. Seconds; None: no limit."""

    total: float | None = 900
    idle: float | None = 600
    grace: float = 10
    linger: float | None = 15


class VerdictRules(Struct, frozen=True):
    """What `judge` obeys. The journal has it beside the evidence, so that a replay judges alike."""

    minimum: Grade = Grade.UNPROVEN
    """The least proof with which a story is done."""
    may_review: bool = False
    """A review can be started for work that nothing else proves."""
    tamper: Tamper = Tamper.REVIEW
    review: bool = False
    """Every story is reviewed."""
    review_cap: int = 5
    on_cap: OnCap = OnCap.APPROVE
    on_stalemate: OnCap = OnCap.HUMAN
    reviewers: tuple[str, ...] = ()
    """All required reviewers, in this order. Empty: one, without a name."""
    promises_all: bool = False
    """The promise tag refers to the whole plan, not to one story."""
    claim_is_implied: bool = False
    """A successful session with a change counts as a claim (seed 000: the loop marks)."""


UNRECORDED = VerdictRules()
"""Evidence in older journals has these fields itself; see `journal.records`."""


class Rules(Struct, frozen=True, kw_only=True):
    limits: Limits
    """For `decide`."""
    verdict: VerdictRules
    """For `judge`."""
    patience: Patience
    commits: bool
    """Accepted work is committed, whether a step asks for that or not."""
    setup_markers: tuple[Path, ...] = ()
    """Files that mark the set-up as done."""
