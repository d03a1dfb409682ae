"""The plan in the journal: complete the first time, then only the differences. Keeps a long run's journal small."""

from __future__ import annotations

from ralph.core.events import PlanSeen, SeenStory
from ralph.core.plan import Plan, Story
from ralph.core.reviews import approved_at


class Seen:
    def __init__(self) -> None:
        self._stories: dict[str, SeenStory] | None = None

    def news(self, plan: Plan) -> PlanSeen | None:
        """The event to write, or None if nothing changed."""
        now = {story.id: seen(story) for story in plan.stories}
        before, self._stories = self._stories, now
        if before is None:
            return PlanSeen(whole=True, stories=tuple(now.values()), order=plan.order)
        changed = tuple(story for name, story in now.items() if before.get(name) != story)
        removed = tuple(name for name in before if name not in now)
        moved = list(now) != list(before)
        if not (changed or removed or moved):
            return None
        return PlanSeen(
            whole=False, stories=changed, removed=removed, ids=tuple(now) if moved else None, order=plan.order
        )


def seen(story: Story) -> SeenStory:
    return SeenStory(
        story.id,
        story.title,
        story.state,
        story.priority,
        story.depends_on,
        story.review.status,
        story.attempts,
        story.review.count,
        approved_at(story.review),
        story.grade,
    )
