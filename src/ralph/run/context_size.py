"""What a session starts with, part by part, in tokens: the prompt, the files it is told to read, the learnings.

Every session reads all of it first, which leaves less room for the work."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct

from ralph.config.layers import Settings
from ralph.core.agent import Usage
from ralph.core.errors import RalphError
from ralph.core.events import AgentSaid, AgentStarted
from ralph.core.plan import Mode, Plan
from ralph.core.ports import Locations, PlanRef
from ralph.core.select import next_work
from ralph.host.files import read_bytes
from ralph.journal.records import pick
from ralph.plans.registry import traits
from ralph.prompts.session import build, built_in, instructions, memory_part
from ralph.run.session import About, Known, brief
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path, list_runs
from ralph.workspace.find import store_for

_ESTIMATE = 4.0
_FEWEST, _MOST = 2.0, 8.0
"""Characters per token. Ratios outside this range are not plausible for text."""
_ENOUGH = 3
_SPREAD = 1000
"""The minimum difference between prompts, in characters, to derive a ratio."""


class Sample(Struct, frozen=True):
    chars: int
    """Length of the prompt in characters."""
    context: int
    """Tokens the model had read with its first answer."""


class TokenEstimate(Struct, frozen=True):
    chars_per_token: float = _ESTIMATE
    overhead: int | None = None
    """Tokens the client adds to every prompt; None: unknown."""
    samples: int = 0
    """Sessions whose counts this is based on; 0: an estimate."""
    is_measured: bool = False
    """The ratio is measured as well."""

    def tokens(self, text: str) -> int:
        return self.of_length(len(text))

    def of_length(self, chars: int) -> int:
        return -int(-chars // self.chars_per_token)


def calibrate(samples: Iterable[Sample]) -> TokenEstimate:
    known = [sample for sample in samples if sample.chars > 0 and sample.context > 0]
    if not known:
        return TokenEstimate()
    ratio, is_measured = _ratio(known), True
    if ratio is None:
        ratio, is_measured = _ESTIMATE, False
    added = sorted(sample.context - sample.chars / ratio for sample in known)
    return TokenEstimate(ratio, max(int(added[len(added) // 2]), 0), len(known), is_measured)


def _ratio(samples: list[Sample]) -> float | None:
    """The slope of the line through the samples; None if they are too few, too similar or implausible."""
    lengths = [sample.chars for sample in samples]
    if len(samples) < _ENOUGH or max(lengths) - min(lengths) < _SPREAD:
        return None
    middle = sum(lengths) / len(samples)
    mean = sum(sample.context for sample in samples) / len(samples)
    rise = sum((sample.chars - middle) * (sample.context - mean) for sample in samples)
    if rise <= 0:
        return None
    ratio = sum((length - middle) ** 2 for length in lengths) / rise
    return ratio if _FEWEST <= ratio <= _MOST else None


_HOW = {
    "prompt": "shorten it; move what only some stories need into a document it names",
    "memory": "lower memory.prompt_tokens",
    "plan": "use one plan per feature, and `ralph plan archive` finished ones",
    "progress": "`ralph memory compact` keeps the learnings and archives the old entries",
    "learnings": "`ralph memory compact` summarises it and keeps the original",
    "requirements": "move details into documents that it names",
    "readme": "make it a lookup table: one line per document, without their text",
    "specs": "move finished specs out of the folder",
    "rules": "every session reads it; keep only what applies everywhere",
}
_MOST_RUNS = 5
_SAMPLES_A_RUN = 6
_LARGEST = 16 * 1024 * 1024
_MARKS = (b'"AgentStarted"', b'"usage"')


class Part(Struct, frozen=True):
    name: str
    file: str = ""
    """Relative to the workspace; empty: not a file."""
    tokens: int = 0
    budget: int = 0
    """Its own budget, if the layout has one."""

    @property
    def how(self) -> str:
        """How to make it smaller."""
        return _HOW.get(self.name, "")


class ContextSize(Struct, frozen=True):
    parts: tuple[Part, ...]
    budget: int
    """0: no budget."""
    estimate: TokenEstimate

    @property
    def total(self) -> int:
        return sum(part.tokens for part in self.parts)

    @property
    def over(self) -> int:
        return max(self.total - self.budget, 0) if self.budget else 0

    @property
    def to_cut(self) -> tuple[Part, ...]:
        """Parts over their own budget; else the largest ones, as many as it takes to get below the total budget."""
        beyond = [part for part in self.parts if part.budget and part.tokens > part.budget]
        if not self.over or beyond:
            return tuple(beyond)
        found, left = [], self.over
        for part in sorted((part for part in self.parts if part.how), key=lambda part: -part.tokens):
            found.append(part)
            left -= part.tokens // 2  # hardly more than half of anything can go
            if left <= 0:
                break
        return tuple(found)


def context_size(
    ref: PlanRef, settings: Settings, plan: Plan, env: Mapping[str, str], estimate: TokenEstimate | None = None
) -> ContextSize:
    estimate = measured(ref.root, env) if estimate is None else estimate
    config = settings.config
    where = store_for(ref, env).layout.locations(ref)
    work = next_work(plan, review=config.review.enabled)
    story, mode = work or (None, Mode.IMPLEMENT)
    about = About(plan=plan, source=read_bytes(ref.path, within=ref.root), story=story, mode=mode)
    briefing = brief(ref, config, about, Known(), {}, env)
    prompt, template, memory = build(briefing), instructions(briefing), memory_part(briefing)
    rest = len(prompt.text) + len(prompt.system) - len(template) - len(memory)
    own = briefing.traits.budgets
    file = briefing.template.name or f"(built in: {built_in(briefing.traits, mode)})"
    parts = [
        Part("prompt", file, estimate.tokens(template), own.get("prompt", 0)),
        Part("story", "", estimate.of_length(max(rest, 0))),
        Part("memory", briefing.notes.file if memory else "", estimate.tokens(memory)),
    ]
    for name, path in _files(ref, where, config.agent.name):
        tokens = estimate.of_length(_length(path, ref.root))
        parts.append(Part(name, os.path.relpath(path, ref.root), tokens, own.get(name, 0)))
    return ContextSize(tuple(part for part in parts if part.tokens), config.context.budget_tokens, estimate)


def _files(ref: PlanRef, where: Locations, agent: str) -> Iterator[tuple[str, Path]]:
    for name in traits(ref.layout).reads:
        path: Path | None = getattr(where, name)
        if path is not None and path.exists():
            yield name, path
    rules = ref.root / ("CLAUDE.md" if agent == "claude" else "AGENTS.md")  # clients read these by themselves
    if rules.is_file():
        yield "rules", rules


def _length(path: Path, root: Path) -> int:
    """Size in characters; for a folder, the sum of its files."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    total = 0
    for file in files:
        try:
            total += len(read_bytes(file, within=root, limit=_LARGEST).decode("utf-8", "replace"))
        except RalphError:
            continue
    return total


def measured(root: Path, env: Mapping[str, str]) -> TokenEstimate:
    """Calibrated by the token counts that agents reported in recent runs."""
    state = workspace_state(root, env)
    runs = reversed(list_runs(state)[-_MOST_RUNS:])
    return calibrate(sample for run in runs for sample in islice(_samples(journal_path(state, run)), _SAMPLES_A_RUN))


def _samples(journal: Path) -> Iterator[Sample]:
    chars = 0
    for record in pick(journal, _MARKS):
        match record.event:
            case AgentStarted(prompt=chars):
                pass
            case AgentSaid(event=Usage(context=context)) if chars and context:
                yield Sample(chars, context)
                chars = 0


def warning(ref: PlanRef, settings: Settings, plan: Plan, env: Mapping[str, str]) -> str:
    """Warning for the start of a run: how far over budget, and what to cut. Empty: within budget."""
    budget = settings.config.context.budget_tokens
    if not budget:
        return ""
    try:
        size = context_size(ref, settings, plan, env, TokenEstimate())
        if size.total > budget // 2:  # worth a look at what agents have counted
            size = context_size(ref, settings, plan, env)
    except (RalphError, OSError):  # the command that needs it reports it better
        return ""
    beyond = size.to_cut
    if not beyond:
        return ""
    cuts = "; ".join(f"{part.file or part.name} {part.tokens:,} ({part.how})" for part in beyond[:3])
    if not size.over:
        return f"over its own token budget: {cuts}"
    total = f"every session starts with about {size.total:,} tokens, {size.over:,} over context.budget_tokens"
    return f"{total}; to cut: {cuts}"
