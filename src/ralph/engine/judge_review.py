"""Judge a review: it says approved or changes requested, and changes nothing else. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from ralph.core.changes import SetFields
from ralph.core.delta import Edited
from ralph.core.evidence import Evidence
from ralph.core.plan import Review, ReviewStatus, State, Story
from ralph.core.reviews import AT_CAP, OnCap
from ralph.core.verdict import Kind, Verdict


def review_given(evidence: Evidence, story: Story) -> Review | None:
    """What the reviewer concluded: by the request file, else in the plan's own fields."""
    if evidence.answer is not None:
        return evidence.answer.review(story.review.count + 1)
    edited = _edited(evidence, story)
    if edited is None or edited.new.review.status in (None, ReviewStatus.NEEDS_REVIEW):
        return None
    return edited.new.review


def _edited(evidence: Evidence, story: Story) -> Edited | None:
    return evidence.delta.of(story.id) if evidence.delta is not None else None


def objections(evidence: Evidence, story: Story, given: Review, failing: list[str]) -> Iterator[str]:
    """Why a review cannot be believed."""
    edits = evidence.delta.edited if evidence.delta is not None else ()
    others = [e.new.id for e in edits if e.new.id != story.id and e.new.review != e.old.review]
    if others:
        yield f"a review may only change the one story it reviews, not {', '.join(others)}"
    if evidence.changed:
        yield f"a review must not change files: {', '.join(evidence.changed[:5])}"
    if evidence.repository_trouble:
        yield evidence.repository_trouble
    if given.status is ReviewStatus.CHANGES_REQUESTED and not given.feedback.strip():
        yield "changes were requested without saying which"
    if given.status is ReviewStatus.APPROVED:
        yield from failing


def conclude(evidence: Evidence, story: Story, given: Review, failing: list[str]) -> Verdict:
    """The verdict on a review that can be believed. Each one counts, whatever number it wrote itself."""
    count = story.review.count + 1
    fields: dict[str, object] = {"review": Review(given.status, count, given.feedback)}
    if (edited := _edited(evidence, story)) is not None and edited.new.notes != edited.old.notes:
        fields["notes"] = edited.new.notes
    if given.status is ReviewStatus.APPROVED:
        return _verdict("approved", story, fields | {"state": State.DONE}, completes=True)
    wanted = f"changes requested: {given.feedback.strip()[:200]}"
    if count < evidence.review_cap:
        return _verdict(wanted, story, fields)
    return _at_cap(evidence.on_cap, story, fields, given, count, failing)


def _at_cap(
    policy: OnCap, story: Story, fields: dict[str, object], given: Review, count: int, failing: list[str]
) -> Verdict:
    """So many reviews have not settled it: another one is unlikely to. Checks that fail are never approved away."""
    if policy is OnCap.APPROVE and not failing:
        feedback = given.feedback if given.feedback.startswith(AT_CAP) else f"{AT_CAP} {given.feedback}"
        approved = fields | {"review": Review(ReviewStatus.APPROVED, count, feedback), "state": State.DONE}
        return _verdict(f"approved at the cap of {count} reviews, with concerns left", story, approved, completes=True)
    if policy is OnCap.HUMAN:
        question = f"{count} reviews, and not approved yet: {given.feedback.strip()[:300]}"
        changes = (SetFields(story.id, fields),)
        return Verdict(Kind.BLOCKED, (f"asks: {question}",), changes, question=question)
    why = "the checks fail" if failing else "it is still not approved"
    return _verdict(f"failed: {count} reviews, and {why}", story, fields | {"state": State.FAILED})


def _verdict(headline: str, story: Story, fields: dict[str, object], *, completes: bool = False) -> Verdict:
    return Verdict(Kind.ACCEPTED, (headline,), (SetFields(story.id, fields),), completes=completes)
