"""Somebody else works in the same tree: what they change is neither committed nor undone with the agent's work."""

from __future__ import annotations

import time

import msgspec

from ralph.core.authorship import Session, Span
from ralph.engine.ground import Attempt, Ground


def share(
    ground: Ground, attempt: Attempt, *, files: bool = True, rules: bool = True
) -> tuple[Attempt, tuple[str, ...]]:
    """The attempt without what somebody else changed in its working tree meanwhile, and notices about that.

    Without `rules`, the rules are left out: they are restored, unless a person committed them.
    """

    def is_ours(path: str) -> bool:
        return ground.is_bookkeeping(path) or (not rules and ground.is_rule(path))

    shared = ground.tree.share(attempt.checkpoint, is_ours, files=files)
    if shared.committed:
        ground.accept_rules(shared.committed)
    return msgspec.structs.replace(attempt, checkpoint=shared.checkpoint, shared=shared), shared.notices


def note_checks(ground: Ground, begun: float) -> None:
    """What changed since then may be the work of commands that the loop started."""
    now = time.time()  # as files have it; the run's own clock is ahead of it after the system's was set back
    ground.tree.note_session(Session(life=Span(now - (ground.clock() - begun), now), is_agent=False))
