"""Larger operations on a plan, as lists of plain changes: split a story, move one. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ralph.core.changes import AddStory, Change, MoveStory, SetFields, position
from ralph.core.errors import IllegalChange
from ralph.core.ids import next_id
from ralph.core.plan import NO_REVIEW, Order, Plan, State


def split(plan: Plan, story_id: str, titles: Sequence[str]) -> list[Change]:
    """Cut a story into parts. The first keeps the id; each part waits for the one before it.

    Nothing is lost: every part starts with the whole description and criteria, to be cut down by hand. What
    waited for the story now waits for its last part.
    """
    story = plan.stories[position(plan.stories, story_id)]
    if not story.is_open:
        raise IllegalChange(f"story {story_id} is {story.state.value}; only open stories can be split")
    if len(titles) < 2:
        raise IllegalChange("a split needs at least two titles", hint=f"`ralph task split {story_id} 'first' 'second'`")
    changes: list[Change] = [SetFields(story_id, {"title": titles[0]})]
    taken = [s.id for s in plan.stories]
    last = story_id
    for title in titles[1:]:
        part = msgspec.structs.replace(
            story,
            id=next_id(taken),
            title=title,
            depends_on=(last,),
            state=State.TODO,
            review=NO_REVIEW,
            attempts=0,
            notes="",
            ref="",
        )
        taken.append(part.id)
        changes.append(AddStory(part, after=last))
        last = part.id
    for other in plan.stories:
        if story_id in other.depends_on and other.id != story_id:
            waits = tuple(last if d == story_id else d for d in other.depends_on)
            changes.append(SetFields(other.id, {"depends_on": waits}))
    return changes


def move(plan: Plan, story_id: str, before: str | None) -> list[Change]:
    """Put a story before another, or at the end. Where priority decides, it takes over its new neighbour's."""
    story = plan.stories[position(plan.stories, story_id)]
    if before == story_id:
        return []
    changes: list[Change] = [MoveStory(story_id, before)]
    if plan.order is Order.PRIORITY:
        if before is not None:
            priority = plan.stories[position(plan.stories, before)].priority
        else:
            priority = max(s.priority for s in plan.stories)
        if priority != story.priority:
            changes.append(SetFields(story_id, {"priority": priority}))
    return changes
