"""Values that a plan's format has no field for (attempts, a failed state, a review), kept in the state folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.core.plan import Plan, State, Story
from ralph.core.review import Ledger, Review
from ralph.host.files import keep_aside, make_folder, read_bytes, write_bytes
from ralph.host.redaction import redact


class Beside(Struct, frozen=True, omit_defaults=True):
    """The values of one story that its format has no field for."""

    state: State | None = None
    review: Review | None = None
    ledger: Ledger | None = None
    attempts: int | None = None
    grade: str | None = None
    notes: str | None = None
    verify: tuple[str, ...] | None = None
    description: str | None = None
    criteria: tuple[str, ...] | None = None
    depends_on: tuple[str, ...] | None = None
    priority: float | None = None
    why: str | None = None
    """Why the story failed or is blocked, in one sentence."""
    key: str | None = None
    """The story's content when this was written: the values belong to that content, not to the ID alone."""
    settings: str | None = None
    """The checks and settings it was tried with."""


NOT_OF_STORY = frozenset({"why", "key", "settings"})


class Sidecar(Struct, frozen=True):
    """The values of one plan, by story ID."""

    version: int = 1
    stories: dict[str, Beside] = {}

    def get(self, story_id: str) -> Beside:
        return self.stories.get(story_id, Beside())

    def with_fields(self, story_id: str, fields: dict[str, Any]) -> Sidecar:
        """Set fields; None removes a field."""
        entry = msgspec.structs.replace(self.get(story_id), **fields)
        stories = {key: value for key, value in self.stories.items() if key != story_id}
        if entry != Beside():
            stories[story_id] = entry
        return Sidecar(self.version, stories)

    def without(self, story_id: str) -> Sidecar:
        return Sidecar(self.version, {key: value for key, value in self.stories.items() if key != story_id})


def merge(plan: Plan, sidecar: Sidecar) -> Plan:
    """The plan as readers see it. The file takes precedence: a story it marks as done is done."""
    if not sidecar.stories:
        return plan
    return plan.with_stories(_merge_one(story, sidecar.stories.get(story.id)) for story in plan.stories)


def _merge_one(story: Story, beside: Beside | None) -> Story:
    if beside is None:
        return story
    values = msgspec.structs.asdict(beside)
    fields = {name: value for name, value in values.items() if value is not None and name not in NOT_OF_STORY}
    if story.is_done:
        fields.pop("state", None)
    return msgspec.structs.replace(story, **fields)


def read(path: Path) -> tuple[Sidecar, str]:
    """The sidecar, and a notice if a damaged one was moved out of the way. A missing file is empty."""
    if not path.exists():
        return Sidecar(), ""
    try:
        sidecar = msgspec.json.decode(read_bytes(path), type=Sidecar)
        if sidecar.version < 1:
            raise msgspec.ValidationError(f"unknown version {sidecar.version}")
        if sidecar.version == 1:
            return sidecar, ""
        newer = sidecar.version
    except msgspec.DecodeError as error:
        newer = _version(path)
        if newer <= 1:
            aside = keep_aside(path)
            return Sidecar(), f"{path.name} was damaged ({error}); it was moved to {aside}"
    raise SetupError(
        f"{path} was written by a newer version of Ralph (format {newer}; this one reads 1)",
        hint="use that version, or move the file away: failed stories and attempts are then forgotten",
    )


def _version(path: Path) -> int:
    """Of a file whose other values cannot be read."""
    try:
        found = msgspec.json.decode(read_bytes(path))
    except msgspec.DecodeError:
        return 0
    version = found.get("version") if isinstance(found, dict) else 0
    return version if isinstance(version, int) else 0


def write(path: Path, sidecar: Sidecar) -> None:
    make_folder(path.parent, private=True)
    write_bytes(path, msgspec.json.format(redact(msgspec.json.encode(sidecar)), indent=1) + b"\n")
