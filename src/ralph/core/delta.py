"""What changed in a plan: the difference between two readings of it. Pure."""

from __future__ import annotations

from msgspec import Struct

from ralph.core.plan import Plan, Story


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
