"""The beads that the steps of a spec name: found by the settings, shown, and moved along with their steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct

from ralph.config.schema import Config
from ralph.core.errors import RalphError
from ralph.core.plan import Plan, State, Story
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.plans.beads import Bead, Beads, find

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
    """Without a tool, or in another layout, a spec stands alone; that is said for steps that name a bead."""

    def __init__(self, ref: PlanRef, config: Config, env: Mapping[str, str]) -> None:
        self.applies = ref.layout == "spec.md" and config.beads != "off"
        self._tool = "" if config.beads in ("auto", "off") else config.beads
        self._beads: Beads | None = find(env, ref.root, self._tool) if self.applies else None

    def bead(self, story: Story) -> tuple[Bead | None, Told | None]:
        """The bead of a step, and why it cannot be shown when it cannot."""
        if not self.applies or not story.ref:
            return None, None
        if self._beads is None:
            return None, self._alone(story)
        try:
            return self._beads.show(story.ref), None
        except RalphError as error:
            return None, Told(f"the bead {story.ref} cannot be shown: {error}", is_warning=True)

    def follow(self, before: Plan, after: Plan) -> Iterator[Told]:
        """Give the beads of steps that changed the status their steps have now, and tell about it."""
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
                return Told(f"the bead {story.ref} is {wanted} already")
            if wanted == "closed":
                beads.close(
                    story.ref, one_line(story.notes.strip().rpartition("\n")[2], 200) or f"step {story.id} is done"
                )
            else:
                beads.set_status(story.ref, wanted)
        except RalphError as error:
            text = f"the bead {story.ref} could not be set to {wanted}: {error}; `ralph verify-sync` compares them"
            return Told(text, is_warning=True)
        return Told(f"the bead {story.ref} is {wanted} now")

    def _alone(self, story: Story) -> Told:
        missing = f"{self._tool} is not" if self._tool else "neither br nor bd is"
        return Told(f"{missing} on PATH: the spec stands alone, and the bead {story.ref} is left as it is")
