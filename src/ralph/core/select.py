"""Which story comes next. Pure, and the same for every layout."""

from __future__ import annotations

from collections.abc import Container, Iterator

from ralph.core.plan import Mode, Order, Plan, State, Story
from ralph.core.review import ReviewStatus

_SHOWN = 5
_MODES = {ReviewStatus.CHANGES_REQUESTED: Mode.FIX, ReviewStatus.NEEDS_REVIEW: Mode.REVIEW}
"""Modes that follow from a review, in their order."""


def next_work(plan: Plan, *, review: bool, skip: Container[str] = ()) -> tuple[Story, Mode] | None:
    """The next story of a run and its mode; with `review`, stories under review go before new work."""
    if review and (found := _in_review(plan, skip)):
        return found
    story = next_story(plan, skip)
    return (story, Mode.IMPLEMENT) if story else None


def in_order(plan: Plan, *, review: bool, skip: Container[str] = ()) -> Iterator[tuple[Story, Mode]]:
    """Each story that is ready with its mode, the next one first. More than the first costs sorting."""
    first = next_work(plan, review=review, skip=skip)
    if first is None:
        return
    yield first
    seen = {first[0].id}
    for status, mode in _MODES.items() if review else ():
        for story in plan.stories:
            if story.review.status is status and story.is_open and story.id not in skip and story.id not in seen:
                seen.add(story.id)
                yield story, mode
    done = {story.id for story in plan.stories if story.is_done}
    ready = (story for story in plan.stories if story.is_open and story.id not in skip and story.id not in seen)
    rest = [story for story in ready if done.issuperset(story.depends_on)]
    if plan.order is not Order.FILE:
        rest.sort(key=lambda story: story.priority)
    for story in rest:
        yield story, Mode.IMPLEMENT


def _in_review(plan: Plan, skip: Container[str]) -> tuple[Story, Mode] | None:
    """Requested changes come first, then pending reviews."""
    for status, mode in _MODES.items():
        for story in plan.stories:
            if story.review.status is status and story.is_open and story.id not in skip:
                return story, mode
    return None


def mode_of(story: Story, *, review: bool) -> Mode:
    """The next mode for this story."""
    return _MODES.get(story.review.status, Mode.IMPLEMENT) if review and story.review.status else Mode.IMPLEMENT


def next_story(plan: Plan, skip: Container[str] = ()) -> Story | None:
    """The ready story with the best priority; among equals the first in the file.

    A story is ready when it is open and everything it depends on is done. Plans that go by file order
    take the first ready one.
    """
    # Looked up once: a plan may have 100,000 stories, and a member of an enum costs more than the rest of the loop.
    finished, todo, begun = State.DONE, State.TODO, State.IN_PROGRESS
    by_file = plan.order is Order.FILE
    done: set[str] | None = None
    best: Story | None = None
    for story in plan.stories:
        state = story.state
        if state is not todo and state is not begun:
            continue
        if best is not None and story.priority >= best.priority:
            continue
        if story.id in skip:
            continue
        if story.depends_on:
            if done is None:
                done = {s.id for s in plan.stories if s.state is finished}
            if not done.issuperset(story.depends_on):
                continue
        if by_file:
            return story
        best = story
    return best


def waiting_for(plan: Plan) -> dict[str, tuple[str, ...]]:
    """Open stories that are not ready, and which of their dependencies are not done."""
    done = {story.id for story in plan.stories if story.is_done}
    waits = {s.id: tuple(d for d in s.depends_on if d not in done) for s in plan.stories if s.is_open}
    return {story: missing for story, missing in waits.items() if missing}


def why_nothing_is_ready(plan: Plan, skip: Container[str] = (), unless: Container[str] = ()) -> str:
    """One sentence for each story that is neither done nor ready: what it waits for. `unless`: stories to leave out."""
    done = {s.id for s in plan.stories if s.state is State.DONE}
    if len(done) == len(plan.stories):
        return "every story is done"
    reasons = []
    for story in plan.stories:
        if story.id in unless:
            continue
        missing = [d for d in story.depends_on if d not in done]
        if story.state is State.FAILED:
            reasons.append(f"{story.id} failed")
        elif story.state is State.BLOCKED:
            reasons.append(f"{story.id} is blocked")
        elif story.id in skip:
            reasons.append(f"{story.id} is set aside")
        elif story.is_open and missing:
            reasons.append(f"{story.id} is waiting for {_some(missing, ', ')}")
    return _some(reasons, "; ")


def _some(words: list[str], between: str) -> str:
    shown = between.join(words[:_SHOWN])
    return f"{shown}{between}and {len(words) - _SHOWN} more" if len(words) > _SHOWN else shown
