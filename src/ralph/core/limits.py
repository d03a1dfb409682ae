"""The bounds of a run, as plain values taken from the settings."""

from __future__ import annotations

from msgspec import Struct

from ralph.core.spending import Budget


class Limits(Struct, frozen=True):
    max_iterations: int = 20
    max_attempts: int = 5
    """Per story; 0: no limit."""
    no_progress: int = 3
    same_error: int = 5
    rate_per_hour: int = 0
    """Agent starts within any hour; 0: no limit."""
    max_transport: int = 5
    once: bool = False
    exit_on_limit: bool = False
    longest_wait: float = 8 * 24 * 3600.0
    """A reset further away than this is not believed."""
    unknown_reset_wait: float = 15 * 60.0
    """How long to wait at a usage limit that does not say when it ends."""
    budget: Budget = Budget()
