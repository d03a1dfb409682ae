"""Changes to a plan, as values. `apply` defines what they mean; a layout's `edit` must agree with it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.errors import IllegalChange
from ralph.core.plan import Plan, Story

EDITABLE = frozenset(
    {
        "title",
        "description",
        "criteria",
        "priority",
        "depends_on",
        "state",
        "review",
        "ledger",
        "notes",
        "verify",
        "attempts",
        "touches",
        "grade",
    }
)


class SetFields(Struct, frozen=True, tag=True):
    """New values for fields of one story. The keys are names of `Story` fields from `EDITABLE`."""

    story: str
    fields: dict[str, Any]


class AddStory(Struct, frozen=True, tag=True):
    """A new story, placed after the story named `after`, or at the end."""

    story: Story
    after: str | None = None


class RemoveStory(Struct, frozen=True, tag=True):
    story: str


class MoveStory(Struct, frozen=True, tag=True):
    """Move a story right before another one, or to the end."""

    story: str
    before: str | None = None


Change = SetFields | AddStory | RemoveStory | MoveStory


def apply(plan: Plan, changes: Iterable[Change]) -> Plan:
    stories = list(plan.stories)
    for change in changes:
        stories = _apply_one(stories, change)
    return plan.with_stories(stories)


def _apply_one(stories: list[Story], change: Change) -> list[Story]:
    match change:
        case SetFields(story_id, fields):
            if unknown := set(fields) - EDITABLE:
                raise IllegalChange(f"story {story_id}: {sorted(unknown)[0]} cannot be edited")
            at = position(stories, story_id)
            return [*stories[:at], msgspec.structs.replace(stories[at], **fields), *stories[at + 1 :]]
        case AddStory(story, after):
            if any(s.id == story.id for s in stories):
                raise IllegalChange(f"story {story.id} is already in the plan")
            at = len(stories) if after is None else position(stories, after) + 1
            return [*stories[:at], story, *stories[at:]]
        case RemoveStory(story_id):
            at = position(stories, story_id)
            return [*stories[:at], *stories[at + 1 :]]
        case MoveStory(story_id, before):
            at = position(stories, story_id)
            rest = [*stories[:at], *stories[at + 1 :]]
            to = len(rest) if before is None else position(rest, before)
            return [*rest[:to], stories[at], *rest[to:]]


def position(stories: Sequence[Story], story_id: str) -> int:
    for at, story in enumerate(stories):
        if story.id == story_id:
            return at
    raise IllegalChange(
        f"no story {story_id} in the plan",
        hint="`ralph task list` shows the IDs",
    )


class Edited(Struct, frozen=True):
    old: Story
    new: Story


class Added(Struct, frozen=True):
    story: Story
    after: str | None
    """The story it comes after; None: at the end."""


class Delta(Struct, frozen=True):
    edited: tuple[Edited, ...] = ()
    added: tuple[Added, ...] = ()
    removed: tuple[str, ...] = ()
    checks_changed: bool = False
    """The plan's check commands changed."""

    def of(self, story_id: str) -> Edited | None:
        return next((edited for edited in self.edited if edited.new.id == story_id), None)


def delta(before: Plan, after: Plan) -> Delta:
    old = {story.id: story for story in before.stories}
    new = {story.id for story in after.stories}
    edited = []
    added = []
    previous: str | None = None
    for story in after.stories:
        known = old.get(story.id)
        if known is None:
            added.append(Added(story, previous))
        elif not _same(known, story):
            edited.append(Edited(known, story))
        previous = story.id
    return Delta(
        edited=tuple(edited),
        added=tuple(added),
        removed=tuple(story.id for story in before.stories if story.id not in new),
        checks_changed=before.verify != after.verify,
    )


_COMPARED = tuple(name for name in Story.__struct_fields__ if name != "line")


def _same(one: Story, other: Story) -> bool:
    return one is other or all(getattr(one, name) == getattr(other, name) for name in _COMPARED)
