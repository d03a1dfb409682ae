"""Changes that people and agents make to a plan by command: legal ones only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ralph.core.changes import SetFields, position
from ralph.core.errors import IllegalChange
from ralph.core.ids import next_id
from ralph.core.plan import NO_REVIEW, Plan, Review, ReviewStatus, State, Story
from ralph.core.transitions import check_move


def is_agent(env: Mapping[str, str]) -> bool:
    """The command was called by an agent inside a loop: what it says is a claim."""
    return env.get("RALPH_LOOP") == "1"


def find_story(plan: Plan, story_id: str) -> Story:
    return plan.stories[position(plan.stories, story_id)]


def finish(plan: Plan, story_id: str, note: str, *, agent: bool, force: bool = False) -> SetFields:
    """Mark a story done. In a reviewed plan an agent submits it for review; a person approves it."""
    story = find_story(plan, story_id)
    check_move(story, State.DONE)
    waiting = [d for d in story.depends_on if (other := plan.story(d)) is not None and not other.is_done]
    if waiting and not force:
        raise IllegalChange(
            f"story {story_id} depends on {', '.join(waiting)}, not done yet",
            hint="finish that first, or use --force",
        )
    fields: dict[str, Any] = {}
    if note:
        fields["notes"] = f"{story.notes}\n{note}".strip()
    if not plan.reviewed:
        return SetFields(story_id, fields | {"state": State.DONE})
    if agent:
        status = story.review.status
        if status not in (None, ReviewStatus.CHANGES_REQUESTED):
            raise IllegalChange(f"story {story_id} is already {status.value.replace('_', ' ') if status else ''}")
        return SetFields(story_id, fields | {"review": Review(ReviewStatus.NEEDS_REVIEW, story.review.count)})
    if not (note or story.notes.strip()):
        raise IllegalChange(
            f"story {story_id} needs a note on what was done",
            hint=f'`ralph task done {story_id} --note "what was done"`',
        )
    approved = Review(ReviewStatus.APPROVED, story.review.count, story.review.feedback)
    return SetFields(story_id, fields | {"state": State.DONE, "review": approved})


def reopen(plan: Plan, story_id: str, *, agent: bool) -> SetFields:
    story = find_story(plan, story_id)
    if agent:
        raise IllegalChange("an agent cannot reopen a story", hint="write down why it should be; a person decides")
    fields: dict[str, Any] = {"state": State.TODO, "attempts": 0}
    if story.review != NO_REVIEW:
        fields["review"] = Review(None, story.review.count)
    return SetFields(story_id, fields)


def change_state(plan: Plan, story_id: str, state: State, *, agent: bool, note: str, force: bool) -> SetFields:
    if state is State.DONE:
        return finish(plan, story_id, note, agent=agent, force=force)
    story = find_story(plan, story_id)
    check_move(story, state)
    if state is State.TODO:
        return reopen(plan, story_id, agent=agent) if not story.is_open else SetFields(story_id, {"state": state})
    return SetFields(story_id, {"state": state})


def new_story(plan: Plan, title: str, story_id: str = "", **fields: Any) -> Story:
    """A story with a fresh id, after the others in priority."""
    taken = [s.id for s in plan.stories if not s.is_review_step]
    fields.setdefault("priority", max((s.priority for s in plan.stories), default=1))
    return Story(id=story_id or next_id(taken), title=title, **fields)
