"""Adds proposed stories to a plan in any layout: IDs of the plan's kind, order, dependencies. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.changes import Change, RemoveStory, SetFields, apply
from ralph.core.plan import Order, Plan, Story
from ralph.planning.answer import DraftStory
from ralph.plans.lint import is_example
from ralph.plans.plan_edits import has_review_id, insert, move_first, next_id


class Composed(Struct, frozen=True):
    changes: tuple[Change, ...]
    ids: dict[str, str]
    """Label of each new story → its id in the plan."""

    @property
    def new(self) -> tuple[str, ...]:
        return tuple(self.ids.values())


def is_untouched(plan: Plan) -> bool:
    """Only the examples of a new plan, so nothing can be lost."""
    return any(map(is_example, plan.stories)) and all(s.is_review_step or is_example(s) for s in plan.stories)


def compose(plan: Plan, stories: Sequence[DraftStory], *, taken: Iterable[str] = (), first: bool = False) -> Composed:
    """The changes that add these stories, in the given order. Examples are replaced.

    `taken`: ids that are no longer in the plan but must not be reused. `first`: before every other story.
    """
    examples = [story.id for story in plan.stories if is_example(story)]
    now, changes, ids = plan, list[Change](), dict[str, str]()
    used = [*taken]
    for number, draft in enumerate(stories, 1):
        fields = _fields(draft, ids, plan, number)
        if examples:
            ids[draft.id] = examples.pop(0)
            change: Change = SetFields(ids[draft.id], fields)
        else:
            ids[draft.id] = _fresh_id(now, used)
            fresh = is_untouched(plan)
            story = Story(id=ids[draft.id], **fields)
            if not fresh:  # beside existing stories, a new one gets the lowest priority
                story = msgspec.structs.replace(story, priority=0)
            change = insert(now, story)
        now = apply(now, [change])
        changes.append(change)
    changes += [RemoveStory(example) for example in examples]
    if first:
        for story_id in reversed(ids.values()):
            moves = move_first(now, story_id)
            now = apply(now, moves)
            changes += moves
    return Composed(tuple(changes), ids)


def _fields(draft: DraftStory, ids: dict[str, str], plan: Plan, number: int) -> dict[str, Any]:
    """Labels of earlier stories become ids; ids in the plan stay. A dependency on an archived story is dropped."""
    known = {story.id for story in plan.stories}
    waits = [ids.get(label, label if label in known else "") for label in draft.depends_on]
    fields: dict[str, Any] = {
        "title": draft.title.strip(),
        "description": _prose(draft.description),
        "criteria": tuple(line.strip() for line in draft.acceptance_criteria),
        "depends_on": tuple(dict.fromkeys(filter(None, waits))),
        "verify": tuple(line.strip() for line in draft.verify),
    }
    return fields | ({"priority": number} if plan.order is Order.PRIORITY else {})


def _prose(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.replace("\r\n", "\n").strip().split("\n"))


def _fresh_id(plan: Plan, taken: Sequence[str]) -> str:
    own = [story.id for story in plan.stories if not has_review_id(story)]
    return next_id([*taken, *own], like=own[-1] if own else "")
