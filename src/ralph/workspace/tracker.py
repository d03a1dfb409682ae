"""The beads that the steps of a spec name: found through the settings, shown, and updated with their steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.config.schema import Config
from ralph.core.errors import RalphError
from ralph.core.events import Noted
from ralph.core.evidence import CheckResult
from ralph.core.plan import Plan, State, Story
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host.git.command import git
from ralph.host.git.repo import Repo
from ralph.plans.beads import EXPORT, FOLDER, Bead, Beads, compare, find
from ralph.plans.registry import traits

_CHECK = "verify-sync"
_STATUS = {
    State.TODO: "open",
    State.IN_PROGRESS: "in_progress",
    State.BLOCKED: "blocked",
    State.FAILED: "open",
    State.DONE: "closed",
}


class Told(Struct, frozen=True):
    text: str
    is_warning: bool = False


class Tracking:
    """Without a tool, or in another layout, the spec is used on its own; steps that name a bead get a notice."""

    def __init__(self, ref: PlanRef, config: Config, env: Mapping[str, str]) -> None:
        self._root = ref.root
        self.applies = traits(ref.layout).has_tracker and config.beads != "off"
        self._tool = "" if config.beads in ("auto", "off") else config.beads
        self._beads: Beads | None = find(env, ref.root, self._tool) if self.applies else None

    @property
    def is_in_use(self) -> bool:
        """Whether a tool is installed, and this workspace has beads or names the tool."""
        return self._beads is not None and (bool(self._tool) or (self._root / FOLDER).is_dir())

    def settle(self, story: Story) -> Noted | None:
        """After an iteration: close the bead of an accepted step, and reopen one that an agent closed too soon."""
        if not story.ref or self._beads is None or not self.is_in_use:
            return None
        try:
            is_closed = self._beads.show(story.ref).status == "closed"
        except RalphError as error:
            return Noted(f"bead {story.ref} could not be read: {error}", warning=True)
        if is_closed == story.is_done and story.state is not State.BLOCKED:
            return None
        told = self._move(self._beads, story)
        return Noted(told.text, warning=told.is_warning)

    def files(self, repo: Repo) -> tuple[Path, ...]:
        """The files of the beads that git tracks: they belong to the commit of the step."""
        path = self._root / EXPORT
        if not self.is_in_use or not path.is_relative_to(repo.root):
            return ()
        return (path,) if git(repo, "ls-files", "-z", "--", str(path)) else ()

    def agreement(self, plan: Plan) -> tuple[CheckResult, ...]:
        """`ralph plan sync` as a check of the final pass. Empty if no beads are used."""
        if self._beads is None or not self.is_in_use or not any(story.ref for story in plan.stories):
            return ()
        try:
            statuses = self._beads.statuses(story.ref for story in plan.stories if story.ref)
            wrong = [str(found) for found in compare(plan, statuses) if found.is_contradiction]
        except RalphError as error:
            wrong = [str(error)]
        code = 1 if wrong else 0
        return (CheckResult(_CHECK, f"ralph {_CHECK}", passed=not wrong, code=code, tail="\n".join(wrong)),)

    def bead(self, story: Story) -> tuple[Bead | None, Told | None]:
        """The bead of a step, or why it cannot be shown."""
        if not self.applies or not story.ref:
            return None, None
        if self._beads is None:
            return None, self._alone(story)
        try:
            return self._beads.show(story.ref), None
        except RalphError as error:
            return None, Told(f"the bead {story.ref} could not be shown: {error}", is_warning=True)

    def follow(self, before: Plan, after: Plan) -> Iterator[Told]:
        """Set the beads of changed steps to the status of their steps. Yields messages about it."""
        if not self.applies:
            return
        old = {story.id: story.state for story in before.stories}
        for story in after.stories:
            if story.ref and old.get(story.id, State.TODO) is not story.state:
                yield self._alone(story) if self._beads is None else self._move(self._beads, story)

    def _move(self, beads: Beads, story: Story) -> Told:
        wanted = _STATUS[story.state]
        try:
            if beads.show(story.ref).status == wanted:
                return Told(f"the bead {story.ref} is already {wanted}")
            if wanted == "closed":
                beads.close(
                    story.ref, one_line(story.notes.strip().rpartition("\n")[2], 200) or f"step {story.id} is done"
                )
            else:
                beads.set_status(story.ref, wanted)
        except RalphError as error:
            text = f"the bead {story.ref} could not be set to {wanted}: {error}; compare them with `ralph plan sync`"
            return Told(text, is_warning=True)
        return Told(f"the bead {story.ref} is now {wanted}")

    def _alone(self, story: Story) -> Told:
        missing = f"{self._tool} is not" if self._tool else "neither br nor bd is"
        return Told(f"{missing} on PATH: only the spec is updated, the bead {story.ref} is left as it is")
