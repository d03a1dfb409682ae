"""Judge a review: it says approved or changes requested and must change nothing else. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ralph.core.changes import Delta, Edited, SetFields
from ralph.core.evidence import Evidence
from ralph.core.plan import Mode, State, Story
from ralph.core.proof import Grade
from ralph.core.review import AT_CAP, AT_STALEMATE, Heard, Ledger, OnCap, Review, ReviewStatus, close, findings_of, hear
from ralph.core.transitions import Violation, illegal_edits
from ralph.core.verdict import Kind, Verdict

_LONGEST = 8000
_FIXED = {
    "title": "title",
    "description": "description",
    "criteria": "criteria",
    "depends_on": "dependencies",
    "verify": "check commands",
    "touches": "touched paths",
}


def rewritten(edited: Edited) -> list[str]:
    """The changed fields that define a story. Agents must not change any of them."""
    return [said for name, said in _FIXED.items() if getattr(edited.new, name) != getattr(edited.old, name)]


def put_right(found: Violation) -> str:
    return f"{found} (corrected)"


def review_given(evidence: Evidence, story: Story) -> Review | None:
    """The reviewer's conclusion, from the request file or else from the plan's review fields."""
    if evidence.answer is not None:
        return evidence.answer.review(story.review.count + 1)
    edited = _edited(evidence, story)
    if edited is None or edited.new.review.status in (None, ReviewStatus.NEEDS_REVIEW):
        return None
    given = edited.new.review
    return Review(given.status, given.count, given.feedback[:_LONGEST])


def put_right_of_review(evidence: Evidence, story: Story) -> list[str]:
    """Notices for a review that wrote wrong values but whose verdict is clear."""
    edited = _edited(evidence, story)
    if edited is None or not evidence.has_review_fields or edited.new.review == edited.old.review:
        return []
    return [put_right(each) for each in illegal_edits(Delta(edited=(edited,)), Mode.REVIEW)]


def meddling(evidence: Evidence, story: Story) -> Iterator[str]:
    """What a review did to the plan besides its verdict. A review of changed criteria proves nothing."""
    made = evidence.delta or Delta()
    others = [e.new.id for e in made.edited if e.new.id != story.id]
    marked = [e.new.id for e in made.edited if (e.new.state, e.new.review) != (e.old.state, e.old.review)]
    if touched := [name for name in others if name in marked]:
        yield f"a review may only change the one story it reviews, not {', '.join(touched[:5])}"
    for edited in made.edited:
        for name in rewritten(edited):
            yield f"a review must not change the {name} of story {edited.new.id}"
    if made.added:
        yield f"a review must not add stories: {', '.join(each.story.id for each in made.added[:5])}; report a finding"
    if made.removed:
        yield f"a review must not remove stories: {', '.join(made.removed[:5])}"
    if made.checks_changed:
        yield "a review must not change the plan's check commands"


def _edited(evidence: Evidence, story: Story) -> Edited | None:
    return evidence.delta.of(story.id) if evidence.delta is not None else None


def objections(evidence: Evidence, story: Story, given: Review, failing: list[str]) -> Iterator[str]:
    """Why a review is not accepted."""
    yield from meddling(evidence, story)
    if evidence.changed:
        yield f"a review must not change files: {', '.join(evidence.changed[:5])}"
    if evidence.repository_trouble:
        yield evidence.repository_trouble
    if given.status is ReviewStatus.CHANGES_REQUESTED and not _says_which(evidence, story, given):
        yield "changes requested, but none described"
    if given.status is ReviewStatus.APPROVED:
        yield from failing


def _says_which(evidence: Evidence, story: Story, given: Review) -> bool:
    """An ID that is not in the ledger is ignored."""
    heard = hear(story.ledger, findings_of(evidence.answer, given), evidence.reviewer, story.review.count + 1)
    return bool(given.feedback.strip() and (heard.asked or heard.refused))


def conclude(evidence: Evidence, story: Story, given: Review, failing: list[str]) -> Verdict:
    """The verdict on an accepted review. Ralph counts the reviews; the number the reviewer wrote is ignored.

    With several reviewers, only the last of a round settles the story; by that time one ledger holds all findings.
    """
    count = story.review.count + 1
    heard = hear(story.ledger, findings_of(evidence.answer, given), evidence.reviewer, count)
    fields: dict[str, object] = {"ledger": heard.ledger}
    if (edited := _edited(evidence, story)) is not None and edited.new.notes != edited.old.notes:
        fields["notes"] = edited.new.notes
    if left := [name for name in evidence.rules.reviewers if name not in heard.ledger.heard]:
        return _on_to_the_next(evidence.reviewer, left, heard, story, fields)
    overruled = "" if failing or given.status is ReviewStatus.APPROVED else _overruled(heard)
    if (given.status is ReviewStatus.APPROVED or overruled) and not heard.ledger.open:
        text = "" if overruled else given.feedback
        fields |= {"review": Review(ReviewStatus.APPROVED, count, text), "ledger": close(heard.ledger)}
        headline = f"approved{overruled}"
        return _verdict(headline, story, fields | {"state": State.DONE}, completes=True, grade=_grade(evidence))
    feedback = _feedback(evidence, given, heard)
    fields |= {"review": Review(ReviewStatus.CHANGES_REQUESTED, count, feedback), "ledger": _next_round(heard.ledger)}
    if why := _stalemate(heard):
        return _unsettled(
            _Unsettled(evidence.rules.on_stalemate, AT_STALEMATE, why), story, fields, feedback, count, failing
        )
    if count >= evidence.rules.review_cap:
        why = f"not approved after {_reviews(count)}"
        return _unsettled(_Unsettled(evidence.rules.on_cap, AT_CAP, why), story, fields, feedback, count, failing)
    notices = tuple(f"{name} was rejected before and is repeated without new evidence" for name in heard.refused)
    return _verdict(f"changes requested: {feedback.strip()[:200]}", story, fields, notices=notices)


def _overruled(heard: Heard) -> str:
    """A reviewer that repeats only what the user has rejected, without new evidence, has nothing against the story."""
    entries = [entry for name in heard.refused if (entry := heard.ledger.get(name)) is not None]
    is_settled = bool(entries) and not heard.asked and all(entry.by_user for entry in entries)
    return f": you rejected {', '.join(entry.id for entry in entries)}" if is_settled else ""


def _on_to_the_next(reviewer: str, left: list[str], heard: Heard, story: Story, fields: dict[str, object]) -> Verdict:
    said = f"asks for {len(heard.asked)} change{'s' if len(heard.asked) != 1 else ''}" if heard.asked else "approves"
    return _verdict(f"{reviewer} {said}; {left[0]} reviews next", story, fields)


def _feedback(evidence: Evidence, given: Review, heard: Heard) -> str:
    """The feedback for the plan: the reviewer's own words, or all changes requested by several reviewers."""
    if len(evidence.rules.reviewers) < 2 and given.status is ReviewStatus.CHANGES_REQUESTED:
        return given.feedback
    return "\n".join(f"- {entry}" for entry in heard.ledger.open) or given.feedback


def _next_round(ledger: Ledger) -> Ledger:
    return Ledger(ledger.entries)


def _stalemate(heard: Heard) -> str:
    """Why another round would give the same result; empty: it might not."""
    if not heard.ledger.open:
        names = ", ".join(heard.refused)
        return f"the reviewer repeats {names}, which was rejected with a reason, without new evidence"
    if not heard.ledger.has_moved:
        return f"two reviews in a row request the same changes: {', '.join(entry.id for entry in heard.ledger.open)}"
    return ""


class _Unsettled(Struct, frozen=True):
    policy: OnCap
    prefix: str
    why: str


def _unsettled(
    end: _Unsettled, story: Story, fields: dict[str, object], feedback: str, count: int, failing: list[str]
) -> Verdict:
    """Settle a story that another review is unlikely to settle. A story whose checks fail is never approved."""
    if end.policy is OnCap.APPROVE and not failing:
        text = feedback if feedback.startswith(end.prefix) else f"{end.prefix} {feedback}"
        approved = fields | {"review": Review(ReviewStatus.APPROVED, count, text), "state": State.DONE}
        where = f"the cap of {_reviews(count)}" if end.prefix == AT_CAP else "a stalemate"
        return _verdict(f"approved at {where} with open concerns", story, approved, completes=True)
    if end.policy is OnCap.HUMAN:
        question = f"{end.why}: {feedback.strip()[:300]}"
        return Verdict(Kind.BLOCKED, (f"asks: {question}",), (SetFields(story.id, fields),), question=question)
    why = f"{end.why}; the checks fail" if failing else end.why
    return _verdict(f"failed: {why}", story, fields | {"state": State.FAILED})


def _grade(evidence: Evidence) -> str:
    """An approval proves a story that no check is about. Empty: nobody asked for a proof."""
    if evidence.proof is None and evidence.minimum is Grade.UNPROVEN:
        return ""
    return (evidence.grade if evidence.grade.reaches(Grade.REVIEWED) else Grade.REVIEWED).value


def _reviews(count: int) -> str:
    return f"{count} review{'s' if count != 1 else ''}"


def _verdict(
    headline: str,
    story: Story,
    fields: dict[str, object],
    *,
    completes: bool = False,
    notices: tuple[str, ...] = (),
    grade: str = "",
) -> Verdict:
    fields = fields | {"grade": grade} if grade else fields
    changed = {name: value for name, value in fields.items() if name != "ledger" or value != story.ledger}
    changes = (SetFields(story.id, changed),) if changed else ()
    return Verdict(Kind.ACCEPTED, (headline,), changes, notices, completes=completes, grade=grade)
