"""Larger plan edits as lists of plain changes: insert, split or move a story. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import chain, count

import msgspec

from ralph.core.changes import AddStory, Change, MoveStory, SetFields, position
from ralph.core.errors import IllegalChange
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import Order, Plan, State, Story
from ralph.core.review import NO_REVIEW

_NUMBERED = lazy_pattern(r"(.*?)([0-9]+)", re.DOTALL)


def next_id(taken: Iterable[str], first: str = "US-001", *, like: str = "") -> str:
    """The next numbered ID after the highest of its kind: US-009 → US-010, 2.3 → 2.4.

    Follows the style of `like` if that is numbered, else of the last numbered ID.
    """
    ids = list(taken)
    numbered = [match for match in map(_NUMBERED.fullmatch, ids) if match]
    model = _NUMBERED.fullmatch(like) or (numbered[-1] if numbered else None)
    if model is None:
        return next(name for name in chain([first], (f"{first}-{n}" for n in count(2))) if name not in ids)
    prefix, digits = model.groups()
    highest = max((int(match[2]) for match in numbered if match[1] == prefix), default=int(digits))
    return f"{prefix}{highest + 1:0{len(digits)}}"


def insert(plan: Plan, story: Story, after: str | None = None) -> AddStory:
    """Insert a new story after another or at the end, but before an open step that reviews the steps above it.

    Without an ID it gets one in the style of its neighbour. Without a priority (0), where priority decides, it takes
    its neighbour's, or the lowest one at the end.
    """
    neighbour = plan.stories[position(plan.stories, after)] if after is not None else _last_before_review(plan)
    if not story.id:
        story = msgspec.structs.replace(story, id=_fresh_id(plan, neighbour))
    if plan.order is Order.PRIORITY and not story.priority:
        lowest = max((s.priority for s in plan.stories), default=1)
        story = msgspec.structs.replace(story, priority=neighbour.priority if after and neighbour else lowest)
    return AddStory(story, neighbour.id if neighbour else None)


def _fresh_id(plan: Plan, neighbour: Story | None) -> str:
    """Reviews have IDs of a different kind, so a story after a review is numbered like the story before it."""
    like = ""
    for story in plan.stories:
        like = like if has_review_id(story) else story.id
        if story is neighbour:
            break
    return next_id([s.id for s in plan.stories if not has_review_id(s)], like=like)


def has_review_id(story: Story) -> bool:
    """`1.R` of a spec. Other steps can be reviews by title or mode, with an ordinary ID."""
    return story.is_review_step and ".R" in story.id


def _last_before_review(plan: Plan) -> Story | None:
    """The story that a new one at the end comes after. A finished review does not cover stories added later."""
    at = len(plan.stories)
    while at and plan.stories[at - 1].is_review_step and not plan.stories[at - 1].is_done:
        at -= 1
    return plan.stories[at - 1] if at else plan.stories[-1] if plan.stories else None


def split(plan: Plan, story_id: str, titles: Sequence[str]) -> list[Change]:
    """Split a story into parts. The first keeps the ID; each part depends on the one before it.

    Nothing is lost: every part starts with the whole description and criteria, for the user to trim. Stories that
    depended on the original now depend on its last part.
    """
    story = plan.stories[position(plan.stories, story_id)]
    _refuse_unfit_for_split(story)
    if len(titles) < 2:
        raise IllegalChange("a split needs at least two titles", hint=f"`ralph task split {story_id} 'first' 'second'`")
    changes: list[Change] = [SetFields(story_id, {"title": titles[0]})]
    taken = [s.id for s in plan.stories if not has_review_id(s)]
    last = story_id
    for title in titles[1:]:
        part = msgspec.structs.replace(
            story,
            id=next_id(taken, like=story_id),
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


def _refuse_unfit_for_split(story: Story) -> None:
    if story.is_review_step:
        raise IllegalChange(
            f"step {story.id} is a review and cannot be split", hint="split the steps it reviews instead"
        )
    if not story.is_open:
        raise IllegalChange(f"story {story.id} is {story.state.value}; only open stories can be split")
    if story.review.status is not None:
        raise IllegalChange(
            f"story {story.id} is under review ({story.review.status.value.replace('_', ' ')})",
            hint=f"finish the review first, or start over with `ralph task reopen {story.id}`",
        )


def move(plan: Plan, story_id: str, before: str | None = None, *, after: str | None = None) -> list[Change]:
    """Move a story before or after another, or to the end. Where priority decides, it takes its neighbour's."""
    story = plan.stories[position(plan.stories, story_id)]
    if story_id in (before, after):
        raise IllegalChange(f"story {story_id} cannot be moved before or after itself")
    neighbour = before if after is None else after
    if neighbour is not None:
        priority = plan.stories[position(plan.stories, neighbour)].priority
    else:
        priority = max(s.priority for s in plan.stories)
    if after is not None:
        before = _following(plan, after, but=story_id)
    changes: list[Change] = []
    if before != _following(plan, story_id):
        changes.append(MoveStory(story_id, before))
    if plan.order is Order.PRIORITY and priority != story.priority:
        changes.append(SetFields(story_id, {"priority": priority}))
    return changes


def move_first(plan: Plan, story_id: str) -> list[Change]:
    """Before every other story, in the file and in priority."""
    story = plan.stories[position(plan.stories, story_id)]
    first = plan.stories[0].id
    changes: list[Change] = [MoveStory(story_id, first)] if first != story_id else []
    priority = min(s.priority for s in plan.stories)
    if plan.order is Order.PRIORITY and priority != story.priority:
        changes.append(SetFields(story_id, {"priority": priority}))
    return changes


def _following(plan: Plan, story_id: str, but: str = "") -> str | None:
    at = position(plan.stories, story_id) + 1
    return next((story.id for story in plan.stories[at:] if story.id != but), None)
