"""Sort the changes that an agent made to the plan into those that are kept and those that are undone. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ralph.core.changes import AddStory, Change, SetFields
from ralph.core.delta import Edited
from ralph.core.evidence import Evidence
from ralph.core.plan import NO_REVIEW, State, Story
from ralph.core.transitions import illegal_edits
from ralph.engine.judge_review import put_right, rewritten

_FREE_TO_EDIT = ("notes", "priority")


def sort_plan_edits(evidence: Evidence) -> tuple[list[Change], list[str]]:
    """Sort the agent's plan edits: legal ones become changes, the others are undone with a notice."""
    if evidence.delta is None:
        return [], [f"the plan could not be read and was restored: {evidence.plan_problem}"]
    changes: list[Change] = []
    notices = [evidence.outcome.note] if evidence.outcome.note else []
    if evidence.plan_problem:
        notices.append(f"an edit made the plan unreadable; it was repaired: {evidence.plan_problem}")
    notices += _missing_note(evidence)
    illegal = illegal_edits(evidence.delta, evidence.mode) if evidence.review and evidence.has_review_fields else []
    notices += [put_right(each) for each in illegal]
    told = {each.story for each in illegal}
    notices += promised_too_soon(evidence)
    for edited in evidence.delta.edited:
        legal = {n: getattr(edited.new, n) for n in _FREE_TO_EDIT if getattr(edited.new, n) != getattr(edited.old, n)}
        if legal:
            changes.append(SetFields(edited.new.id, legal))
        notices += _illegal_edits(edited, evidence, is_told=edited.new.id in told)
    refused: dict[str, str | None] = {}
    """New stories that are not kept → the story before them."""
    for added in evidence.delta.added:
        story, after = added.story, refused.get(added.after or "", added.after)
        if story.state is State.TODO and story.review == NO_REVIEW:
            changes.append(AddStory(story, after))
            continue
        refused[story.id] = after
        if story.id not in told:
            notices.append(f"new story {story.id} was marked {_mark(story)}; new stories start open")
    notices += [f"story {story} was removed; restored" for story in evidence.delta.removed if story not in told]
    if evidence.delta.checks_changed:
        notices.append("the plan's check commands were changed; restored")
    return changes, notices


def _missing_note(evidence: Evidence) -> Iterator[str]:
    """Seed 001 requires notes on every finished story. A claim without them still counts."""
    story = evidence.story
    edited = evidence.delta.of(story.id) if evidence.delta and story and evidence.has_review_fields else None
    if edited is not None and edited.new.is_done and not edited.new.notes.strip() and not evidence.review:
        yield f"story {edited.new.id} was claimed with empty notes; describe what was done in its notes"


def promised_too_soon(evidence: Evidence) -> Iterator[str]:
    if evidence.outcome.promised and evidence.promises_all and evidence.open_after:
        left = f"{evidence.open_after} stor{'y is' if evidence.open_after == 1 else 'ies are'} still open"
        yield f"the agent claimed everything is complete; {left}"


def _illegal_edits(edited: Edited, evidence: Evidence, *, is_told: bool) -> Iterator[str]:
    old, new = edited.old, edited.new
    own = evidence.story is not None and new.id == evidence.story.id
    if (new.state, new.review) != (old.state, old.review) and not own and not is_told:
        yield f"story {new.id} was marked {_mark(new)}; restored to {_mark(old)}: one story per iteration"
    for name in rewritten(edited):
        yield f"{name} of story {new.id} changed; restored"


def _mark(story: Story) -> str:
    """A story's mark: its review status if it has one, else its state."""
    return story.review.status.value if story.review.status and not story.is_done else story.state.value
