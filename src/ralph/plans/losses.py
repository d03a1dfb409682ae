"""What changed when a plan was written in another layout: every value that differs, and no others. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec
from msgspec import Struct

from ralph.core.plan import Plan, Story
from ralph.core.text import one_line

_UNCOMPARED = ("id", "line")
_PLAN_FIELDS = ("name", "description", "branch", "verify", "extra")


class Fate(StrEnum):
    LOST = "lost"
    CHANGED = "changed"
    FILLED = "filled"
    """It was empty, and the format requires a value."""
    RENAMED = "renamed"
    BESIDE = "beside"
    """The format has no field for it; it is kept in the state folder."""


class Loss(Struct, frozen=True):
    """`story` is its previous ID; empty: it concerns the whole plan."""

    story: str
    field: str
    fate: Fate
    detail: str = ""


def losses(before: Plan, after: Plan, ids: Mapping[str, str]) -> list[Loss]:
    """`ids`: old ID → new ID, in the order of the new plan."""
    found = list(_of_plan(before, after))
    if [ids[story.id] for story in before.stories] != [story.id for story in after.stories]:
        found.append(Loss("", "order", Fate.CHANGED, "the stories are in order of priority"))
    now = {story.id: story for story in after.stories}
    moved = before.verify if not after.verify else ()
    for story in before.stories:
        found += _of_story(story, now[ids[story.id]], ids, moved)
    return found


def kept_beside(in_file: Plan, merged: Plan, ids: Mapping[str, str]) -> list[Loss]:
    """Values that are not in the file."""
    old = {new: story_id for story_id, new in ids.items()}
    found = []
    for alone, whole in zip(in_file.stories, merged.stories, strict=True):
        for name in Story.__struct_fields__:
            if getattr(alone, name) != getattr(whole, name):
                found.append(Loss(old[whole.id], name, Fate.BESIDE))
    return found


def _of_plan(before: Plan, after: Plan) -> Iterator[Loss]:
    nothing = Plan(name="", stories=())
    for name in _PLAN_FIELDS:
        old, new = getattr(before, name), getattr(after, name)
        if name == "verify" and old and not new:
            yield Loss("", name, Fate.CHANGED, "now repeated as commands of each story")
        elif name == "extra":
            if gone := sorted(key for key in old if old[key] != new.get(key)):
                yield Loss("", name, Fate.LOST, ", ".join(gone))
        elif old != new:
            yield Loss("", name, _fate(old, new, getattr(nothing, name)), _short(new))


def _of_story(before: Story, after: Story, ids: Mapping[str, str], moved: tuple[str, ...]) -> Iterator[Loss]:
    """`moved`: the plan's commands that became each story's own, reported once for the plan."""
    if before.id != after.id:
        yield Loss(before.id, "id", Fate.RENAMED, after.id)
    nothing = Story(id="", title="")
    renamed = msgspec.structs.replace(before, depends_on=tuple(ids[d] for d in before.depends_on))
    for name in Story.__struct_fields__:
        if name in _UNCOMPARED:
            continue
        old, new = getattr(renamed, name), getattr(after, name)
        if name == "extra":
            if gone := sorted(key for key in old if key not in new or old[key] != new[key]):
                yield Loss(before.id, name, Fate.LOST, ", ".join(gone))
        elif old != new and not (name == "verify" and moved and new == tuple(dict.fromkeys((*moved, *old)))):
            yield Loss(before.id, name, _fate(old, new, getattr(nothing, name)), _detail(old, new))


def _fate(old: object, new: object, nothing: object) -> Fate:
    if new == nothing:
        return Fate.LOST
    return Fate.FILLED if old == nothing else Fate.CHANGED


def _detail(old: object, new: object) -> str:
    """The old and the new value, if short."""
    if isinstance(old, int | float) and isinstance(new, int | float) and not isinstance(old, bool):
        return f"{old:g} → {new:g}"
    return f"{old} → {new}" if isinstance(old, StrEnum) else ""


def _short(value: object) -> str:
    return one_line(value, 60) if isinstance(value, str) else ""
