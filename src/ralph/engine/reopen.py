"""Reopen stories that only a review shows to be done, once a story that was given up has changed their files.

Its work was kept for a review that never approved it, so what the other review saw may not hold any more.
"""

from __future__ import annotations

from typing import Any

from ralph.core.changes import Change, SetFields
from ralph.core.events import Noted
from ralph.core.plan import Plan, Review, State
from ralph.core.text import one_line
from ralph.engine.ground import Ground


def reopened(ground: Ground, plan: Plan, given_up: str) -> tuple[list[Change], dict[str, str]]:
    """The changes to the plan, and story → why."""
    changes: list[Change] = []
    why = {}
    for other, path in ground.prover.in_doubt(plan, given_up).items():
        story = plan.story(other)
        fields: dict[str, Any] = {"state": State.TODO, "attempts": 0, "grade": ""}
        if story is not None and story.review.status is not None:
            fields["review"] = Review(None, story.review.count)
        changes.append(SetFields(other, fields))
        why[other] = f"{given_up}, which was given up, changed {one_line(path, 80)} after {other} was approved"
        ground.journal.write(Noted(f"{other} is open again: {why[other]}", warning=True))
    return changes, why
