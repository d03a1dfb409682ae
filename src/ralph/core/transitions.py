"""Which changes of state and review fields are legal, for users and for each mode of an iteration. Pure.

The same functions are used by the Stop hook, `judge`, `ralph task` and `ralph explain transitions`, so a change refused
in one place is refused in all.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from ralph.core.changes import Delta, delta
from ralph.core.errors import IllegalChange
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.review import NO_REVIEW, ReviewStatus

MOVES: dict[State, frozenset[State]] = {
    State.TODO: frozenset({State.IN_PROGRESS, State.DONE, State.FAILED, State.BLOCKED}),
    State.IN_PROGRESS: frozenset({State.TODO, State.DONE, State.FAILED, State.BLOCKED}),
    State.BLOCKED: frozenset({State.TODO, State.IN_PROGRESS, State.FAILED, State.DONE}),
    State.FAILED: frozenset({State.TODO}),
    State.DONE: frozenset({State.TODO}),
}
"""What a user may do. Done and failed stories must be reopened before any other change."""


class Violation(Struct, frozen=True):
    """An illegal change: the exact field, old → new, and what to do instead."""

    story: str
    field: str
    old: str
    new: str
    message: str

    def __str__(self) -> str:
        change = f"{self.old} → {self.new}" if self.old != self.new else f"is {self.new}"
        return f"story {self.story}: {self.field} {change}: {self.message}"


def check_move(story: Story, new: State) -> None:
    """Raise IllegalChange if a user may not move `story` to `new`."""
    if new is story.state or new in MOVES[story.state]:
        return
    raise IllegalChange(
        f"story {story.id} is {story.state.value} and cannot become {new.value}",
        hint=f"run `ralph task reopen {story.id}` first",
    )


def broken_invariants(plan: Plan, review_cap: int) -> list[Violation]:
    """What is wrong with the current review fields, independent of their author."""
    found = []
    for story in plan.stories:
        status, passes = story.review.status, story.is_done
        if passes and status is not ReviewStatus.APPROVED:
            found.append(
                _violation(
                    story,
                    "passes",
                    "true",
                    f"reviewStatus is {_word(status)}, not 'approved'; set passes back to false or finish the review",
                )
            )
        if status is ReviewStatus.APPROVED and not passes:
            found.append(
                _violation(
                    story, "reviewStatus", "approved", "approved and passes are out of sync: set both, or neither"
                )
            )
        if status is ReviewStatus.CHANGES_REQUESTED and not story.review.feedback.strip():
            found.append(
                _violation(story, "reviewFeedback", '""', "feedback is required: say what has to change, and where")
            )
        if not 0 <= story.review.count <= review_cap + 1:
            found.append(
                _violation(story, "reviewCount", str(story.review.count), f"must be between 0 and {review_cap + 1}")
            )
    return found


def illegal_transitions(before: Plan, after: Plan, mode: Mode) -> list[Violation]:
    """Changes by an agent in one iteration that its mode does not allow."""
    return illegal_edits(delta(before, after), mode)


def illegal_edits(made: Delta, mode: Mode) -> list[Violation]:
    """The same, from the difference alone."""
    found = [
        Violation(story, "story", "present", "removed", "stories cannot be removed; split them or leave them")
        for story in made.removed
    ]
    for added in made.added:
        found += _new_story(added.story, mode)
    changed = [(each.old, each.new) for each in made.edited if _review_fields(each.old) != _review_fields(each.new)]
    rules = {Mode.REVIEW: _review, Mode.FIX: _fix}.get(mode, _implement)
    return found + list(rules(changed))


def _review_fields(story: Story) -> tuple[object, ...]:
    return story.is_done, story.review.status, story.review.count, story.review.feedback


def _new_story(story: Story, mode: Mode) -> list[Violation]:
    found = []
    if mode is Mode.REVIEW:
        found.append(
            Violation(
                story.id, "story", "absent", "added", "a review cannot add stories; report what is missing as a finding"
            )
        )
    if story.is_done:
        found.append(Violation(story.id, "passes", "(new)", "true", "a new story starts with passes false"))
    if story.review != NO_REVIEW:
        found.append(
            Violation(story.id, "review", "(new)", _word(story.review.status), "a new story starts without a review")
        )
    return found


def _implement(changed: list[tuple[Story, Story]]) -> Iterator[Violation]:
    submitted = 0
    for old, new in changed:
        if new.is_done != old.is_done:
            yield _changed(old, new, "passes", "implement iterations cannot set passes; only a review approves")
        if new.review.count != old.review.count:
            yield _changed(old, new, "reviewCount", "implement iterations cannot change reviewCount")
        if new.review.feedback != old.review.feedback:
            yield _changed(old, new, "reviewFeedback", "implement iterations cannot change reviewFeedback")
        if new.review.status is old.review.status:
            continue
        if old.review.status is None and new.review.status is ReviewStatus.NEEDS_REVIEW:
            submitted += 1
            if submitted > 1:
                yield _changed(old, new, "reviewStatus", "one story per iteration may be submitted for review")
        elif new.review.status is ReviewStatus.APPROVED:
            yield _changed(old, new, "reviewStatus", "implement iterations cannot approve; only a review approves")
        else:
            yield _changed(old, new, "reviewStatus", "implement iterations may only go from null to needs_review")


def _review(changed: list[tuple[Story, Story]]) -> Iterator[Violation]:
    if not changed:
        yield Violation("", "reviewCount", "unchanged", "unchanged", "a review must increment reviewCount by 1")
    for position, (old, new) in enumerate(changed):
        if position:
            yield _changed(old, new, "review", "a review may only change the one story it reviews")
            continue
        if new.review.count != old.review.count + 1:
            yield _changed(old, new, "reviewCount", "a review must increment reviewCount by 1")
        if old.review.status is not ReviewStatus.NEEDS_REVIEW:
            yield _changed(old, new, "reviewStatus", "only a story that needs review can be reviewed")
        if new.review.status is ReviewStatus.APPROVED:
            if not new.is_done:
                yield _changed(old, new, "passes", "an approved story has passes true")
        elif new.review.status is ReviewStatus.CHANGES_REQUESTED:
            if new.is_done:
                yield _changed(old, new, "passes", "a story with requested changes has passes false")
            if not new.review.feedback.strip():
                yield _changed(old, new, "reviewFeedback", "say what has to change, and where")
        else:
            yield _changed(old, new, "reviewStatus", "a review ends in approved or changes_requested")


def _fix(changed: list[tuple[Story, Story]]) -> Iterator[Violation]:
    for position, (old, new) in enumerate(changed):
        if position:
            yield _changed(old, new, "review", "a fix may only change the one story it fixes")
            continue
        if new.is_done != old.is_done:
            yield _changed(old, new, "passes", "a fix cannot approve; the story goes back to review")
        if new.review.count != old.review.count:
            yield _changed(old, new, "reviewCount", "a fix cannot change reviewCount")
        legal = (ReviewStatus.CHANGES_REQUESTED, ReviewStatus.NEEDS_REVIEW)
        if (old.review.status, new.review.status) != legal:
            yield _changed(old, new, "reviewStatus", "a fix goes from changes_requested to needs_review")
        elif new.review.feedback.strip():
            yield _changed(old, new, "reviewFeedback", "clear the feedback once it is addressed")


def _violation(story: Story, field: str, value: str, message: str) -> Violation:
    return Violation(story.id, field, value, value, message)


def _changed(old: Story, new: Story, field: str, message: str) -> Violation:
    return Violation(new.id, field, _value(old, field), _value(new, field), message)


def _value(story: Story, field: str) -> str:
    match field:
        case "passes":
            return "true" if story.is_done else "false"
        case "reviewCount":
            return str(story.review.count)
        case "reviewFeedback":
            return repr(story.review.feedback[:40])
        case _:
            return _word(story.review.status)


def _word(status: ReviewStatus | None) -> str:
    return "null" if status is None else f"'{status.value}'"
