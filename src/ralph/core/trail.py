"""What a reviewer needs to know about a story's history: its commits, checks and suspicions. Pure.

A fold over the journal. It holds what was kept for unfinished stories, and nothing else.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ralph.core.events import AnyEvent, IterationEnded, IterationStarted, Judged, Settling
from ralph.core.evidence import CheckResult
from ralph.core.plan import Mode
from ralph.core.proof import Proof
from ralph.core.suspicion import Suspicion


class Span(Struct, frozen=True):
    """From the commit before an iteration to the commit after it. Empty: there was none.

    If nothing is committed, the trees before and after it.
    """

    base: str
    commit: str


class Trail(Struct, frozen=True):
    spans: tuple[Span, ...] = ()
    checks: tuple[CheckResult, ...] = ()
    """From the last iteration that was kept."""
    doubts: tuple[Suspicion, ...] = ()
    proof: Proof | None = None


class Trails(Struct, frozen=True):
    stories: dict[str, Trail] = {}
    started: IterationStarted | None = None
    judged: Judged | None = None
    tree: str = ""
    """As the iteration left it."""


def follow(trails: Trails, event: AnyEvent) -> Trails:
    match event:
        case IterationStarted():
            return Trails(trails.stories, event)
        case Judged():
            return Trails(trails.stories, trails.started, event)
        case Settling():
            return msgspec.structs.replace(trails, tree=event.tree)
        case IterationEnded():
            return Trails(_after(trails, event))
        case _:
            return trails


def _after(trails: Trails, ended: IterationEnded) -> dict[str, Trail]:
    others = {story: trail for story, trail in trails.stories.items() if story != ended.story}
    if ended.completes:
        return others
    started, judged = trails.started, trails.judged
    is_work = ended.mode in (Mode.IMPLEMENT, Mode.FIX) and ended.kind.keeps_work
    if not is_work or started is None or judged is None or started.iteration != ended.iteration:
        return trails.stories
    known = trails.stories.get(ended.story, Trail())
    span = Span(str(started.checkpoint.get("head") or ""), ended.commit)
    if not ended.commit and started.checkpoint.get("tree"):
        span = Span(str(started.checkpoint["tree"]), trails.tree)
    evidence = judged.evidence
    doubts = dict.fromkeys((*known.doubts, *evidence.suspicions))
    return others | {ended.story: Trail(_joined(known.spans, span), evidence.checks, tuple(doubts), evidence.proof)}


def _joined(spans: tuple[Span, ...], span: Span) -> tuple[Span, ...]:
    """Whether an iteration directly follows the last one and belongs to it."""
    if span.base == span.commit:  # nothing was changed
        return spans
    if spans and spans[-1].commit and spans[-1].commit == span.base and span.commit:
        return (*spans[:-1], msgspec.structs.replace(spans[-1], commit=span.commit))
    return (*spans, span)
