"""What sessions on other plans of the same repository learned: plans that are there, and archived ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ralph.core.errors import RalphError
from ralph.core.learning import Learning, distinct
from ralph.core.ports import PlanRef
from ralph.memory.store import Memory, memory_of, recent_learnings
from ralph.plans.registry import layout
from ralph.workspace.archives import archives
from ralph.workspace.find import Choice, find_plans

_MOST_ARCHIVES = 10
_LOGS = ("progress.txt", "progress.md")
_NOTES = "learnings.md"


def learnings_elsewhere(ref: PlanRef, memory: Memory, env: Mapping[str, str]) -> tuple[Learning, ...]:
    """From accepted work only. Never raises: a plan that cannot be read has nothing to say."""
    found: list[Learning] = []
    try:
        refs = find_plans(ref.root, Choice())
    except (RalphError, OSError):
        refs = []
    seen = {memory.path}
    for name, other in _memories(ref, refs, env):
        if other.path in seen:
            continue
        seen.add(other.path)
        found += (_elsewhere(one, name) for one in recent_learnings(other) if one.accepted)
    return distinct(found)


def _elsewhere(learning: Learning, plan: str) -> Learning:
    """Its story belongs to another plan, and what was curated there need not hold here."""
    story = f"{plan}/{learning.story}" if learning.story else plan
    return msgspec.structs.replace(learning, story=story, curated=False, date=learning.date or "undated")


def _memories(ref: PlanRef, refs: Sequence[PlanRef], env: Mapping[str, str]) -> Iterator[tuple[str, Memory]]:
    for other in refs:
        if other.path != ref.path:
            yield other.name, memory_of(other, layout(other.layout).locations(other), env)
    try:
        latest = archives(ref.root, refs)[-_MOST_ARCHIVES:]
    except (RalphError, OSError):
        return
    for archive in latest:
        name = archive.manifest.name if archive.manifest else archive.name
        for file in (*_LOGS, _NOTES):
            path: Path = archive.path / file
            if path.is_file():
                yield name, Memory(path, file in _LOGS, archive.path, archive.path)
