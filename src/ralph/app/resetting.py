"""`--reset-circuit`: what earlier runs gave up on gets another chance."""

from __future__ import annotations

from ralph.app.editing import reasons, reopen
from ralph.core.events import Noted
from ralph.core.plan import Plan, State
from ralph.core.text import one_line
from ralph.plans.store import PlanStore

_SHOWN = 8


def open_again(store: PlanStore) -> tuple[Plan, list[Noted]]:
    """The plan with its failed stories open, their attempts forgotten, and what there is to say about it."""
    reading = store.load()
    failed = [story.id for story in reading.plan.stories if story.state is State.FAILED]
    if not failed:
        return reading.plan, [Noted("no story has been given up: there is nothing to reset")]
    changes = [reopen(reading.plan, story) for story in failed]
    after = store.planned(reading, changes, reasons(changes, ""))
    store.write(after)
    named = ", ".join(one_line(story, 40) for story in failed[:_SHOWN]) + (" …" if len(failed) > _SHOWN else "")
    return after.plan, [Noted(f"opened again after having been given up: {named}")]
