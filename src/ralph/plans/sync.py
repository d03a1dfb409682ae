"""Whether a spec and its beads agree: a step is ticked if and only if its bead is closed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from ralph.core.plan import Plan
from ralph.core.text import one_line


class Kind(StrEnum):
    DIFFERS = "differs"
    UNKNOWN = "unknown-bead"
    UNTRACKED = "untracked"
    """The step names no bead. That is not a contradiction."""


class Difference(Struct, frozen=True):
    step: str
    ref: str
    kind: Kind
    spec: str
    """The state in the spec: `done` or `open`."""
    beads: str
    """The status of the bead; empty if there is none."""

    @property
    def is_contradiction(self) -> bool:
        return self.kind is not Kind.UNTRACKED

    def __str__(self) -> str:
        return f"{one_line(self.step)}: {self.sentence}"

    @property
    def sentence(self) -> str:
        ref, status = one_line(self.ref), one_line(self.beads, 20)
        match self.kind:
            case Kind.UNTRACKED:
                return f"{self.spec} in the spec, names no bead"
            case Kind.UNKNOWN:
                return f"{self.spec} in the spec, but the bead {ref} {'was deleted' if status else 'does not exist'}"
            case _:
                return f"{self.spec} in the spec, but the bead {ref} is {status}"


def compare(plan: Plan, beads: Mapping[str, str]) -> list[Difference]:
    """The disagreements, in the order of the spec. `beads`: ID → status."""
    found = []
    for story in plan.stories:
        says = "done" if story.is_done else "open"
        status = beads.get(story.ref, "")
        if not story.ref:
            found.append(Difference(story.id, "", Kind.UNTRACKED, says, ""))
        elif status in ("", "tombstone"):  # a deleted bead leaves a tombstone
            found.append(Difference(story.id, story.ref, Kind.UNKNOWN, says, status))
        elif (status == "closed") != story.is_done:
            found.append(Difference(story.id, story.ref, Kind.DIFFERS, says, status))
    return found
