"""Which changes of a story are legal, for users and for each mode: computed by asking the rules about every change.

The rules are not repeated here. A change in `core.transitions` changes the table.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import msgspec
from msgspec import Struct

from ralph.core.errors import IllegalChange
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.review import Review, ReviewStatus
from ralph.core.transitions import Violation, broken_invariants, check_move, illegal_transitions

PEOPLE = "people"
_CAP = 9
_COUNT = 1
_WORDS = "what has to change"


class Change(Struct, frozen=True):
    """One change and the verdict of the rules."""

    by: str
    old: str
    new: str
    legal: bool
    condition: str = ""
    """What a legal change also requires."""
    why: str = ""
    """Why it is illegal, or what has to happen first."""


def table() -> list[Change]:
    of_modes = (change for mode in (Mode.IMPLEMENT, Mode.REVIEW, Mode.FIX) for change in _of_mode(mode))
    return [*of_modes, *_of_people()]


def _of_people() -> Iterator[Change]:
    for old, new in product(State, State):
        if old is new:
            continue
        try:
            check_move(Story(id="ID", title="", state=old), new)
        except IllegalChange as error:
            yield Change(PEOPLE, old.value, new.value, legal=False, why=error.hint)
        else:
            yield Change(PEOPLE, old.value, new.value, legal=True)


def _of_mode(mode: Mode) -> Iterator[Change]:
    for old, new in product(_standings(), _standings()):
        tried = {how: _violations(old, new, how, mode) for how in _hows(old, new)}
        allowed = [how for how, found in tried.items() if not found]
        nearest = min(tried.values(), key=len)
        yield Change(
            mode.value,
            _name(old),
            _name(new),
            legal=bool(allowed),
            condition=_condition(allowed, list(tried)) if allowed else "",
            why="" if allowed else "; ".join(dict.fromkeys(_parts(nearest))),
        )


class _How(Struct, frozen=True):
    """What happens to the fields other than the state."""

    counted: int
    feedback: str


def _standings() -> list[Story]:
    """Every valid state of a reviewed story."""
    found = []
    for status, state in product((None, *ReviewStatus), (State.TODO, State.DONE)):
        feedback = _WORDS if status is ReviewStatus.CHANGES_REQUESTED else ""
        story = Story(id="ID", title="", state=state, review=Review(status, _COUNT, feedback))
        if not broken_invariants(_plan(story), _CAP):
            found.append(story)
    return found


def _hows(old: Story, new: Story) -> list[_How]:
    if old == new:
        return [_How(counted, old.review.feedback) for counted in (0, 1)]
    return [_How(counted, feedback) for counted in (0, 1) for feedback in ("", _WORDS)]


def _violations(old: Story, new: Story, how: _How, mode: Mode) -> list[Violation]:
    review = msgspec.structs.replace(new.review, count=_COUNT + how.counted, feedback=how.feedback)
    after = msgspec.structs.replace(new, review=review)
    return illegal_transitions(_plan(old), _plan(after), mode)


def _plan(story: Story) -> Plan:
    return Plan(name="", stories=(story,), reviewed=True)


def _parts(found: list[Violation]) -> Iterator[str]:
    """Split at semicolons, because several messages share their second part."""
    for violation in found:
        yield from violation.message.split("; ")


def _condition(allowed: list[_How], tried: list[_How]) -> str:
    """What all allowed changes have in common and the others lack."""
    parts = []
    counts = {how.counted for how in allowed}
    if counts != {how.counted for how in tried}:
        parts.append("reviewCount + 1" if counts == {1} else "reviewCount stays")
    texts = {how.feedback for how in allowed}
    if texts != {how.feedback for how in tried}:
        parts.append("without feedback" if texts == {""} else "with feedback")
    return ", ".join(parts)


def _name(story: Story) -> str:
    return "null" if story.review.status is None else story.review.status.value
