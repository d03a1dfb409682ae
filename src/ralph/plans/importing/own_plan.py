"""A plan in one of Ralph's layouts, as a source of stories for another plan."""

from __future__ import annotations

from ralph.core.plan import Order, Plan, Story
from ralph.plans.importing import wording
from ralph.plans.importing.found import Batch, Item, plain_key
from ralph.plans.registry import layout


def read(data: bytes, file: str, name: str) -> Batch:
    """`name` is that of the layout. Raises PlanError."""
    plan = layout(name).parse(data, file)
    home = wording.line(plan.name) or file.rpartition("/")[2]
    items = [
        Item(
            key=_key(home, story.id),
            title=story.title,
            description=story.description,
            criteria=story.criteria,
            priority=story.priority,
            depends_on=tuple(_key(home, needed) for needed in story.depends_on),
            state=story.state,
            notes=story.notes,
            verify=story.verify,
            ref=story.ref,
            line=story.line,
        )
        for story in _in_turn(plan)
    ]
    return Batch(kind=name, file=file, items=tuple(items), name=plan.name, verify=plan.verify)


def _key(home: str, story_id: str) -> str:
    return plain_key(f"plan:{home}#{story_id}")


def _in_turn(plan: Plan) -> list[Story]:
    by_priority = plan.order is Order.PRIORITY
    return sorted(plan.stories, key=lambda story: story.priority) if by_priority else list(plan.stories)
