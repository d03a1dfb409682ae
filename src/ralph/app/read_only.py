"""Pages that agents follow and must not write: requirements, prompts, reviewer instructions.

An agent that could write its reviewer's prompt could approve its own work.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ralph.app.requirements_watch import RequirementsWatch
from ralph.config.schema import Config
from ralph.core.ports import Locations, PlanRef
from ralph.engine.ground import PageBack
from ralph.prompts.templates import REVIEWERS


class ReadOnlyPages:
    """`aside` is a folder that only the run uses; it keeps the agents' versions."""

    def __init__(self, ref: PlanRef, where: Locations, config: Config, aside: Path) -> None:
        prompts = dict.fromkeys(_prompts(ref, where, config))
        self._watches = [RequirementsWatch(where.requirements, ref.root, aside / "requirements")]
        for number, page in enumerate(page for page in prompts if page != where.requirements):
            self._watches.append(RequirementsWatch(page, ref.root, aside / "prompts" / str(number)))

    def by_people(self) -> list[str]:
        return [told for watch in self._watches for told in watch.by_people()]

    def put_back(self, iteration: int) -> PageBack:
        return sum((watch.put_back(iteration) for watch in self._watches), PageBack())


def _prompts(ref: PlanRef, where: Locations, config: Config) -> Iterator[Path]:
    """Includes files that do not exist yet: one that an agent creates would take effect."""
    yield from filter(None, (where.prompt, *where.other_prompts))
    named = [config.prompt, *(str(step.config.get("prompt_file") or "") for step in config.steps)]
    named += [name for name in config.review.reviewers if name not in REVIEWERS]
    for name in filter(None, named):
        page = ref.root / name
        if page.is_relative_to(ref.root) and ".." not in page.parts:
            yield page
