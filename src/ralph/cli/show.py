"""How stories and progress look on a terminal, for the commands that show them."""

from __future__ import annotations

from ralph.cli.output import paint
from ralph.core.plan import Plan, State, Story
from ralph.core.text import one_line

MARKS = {
    State.TODO: ("·", "dim"),
    State.IN_PROGRESS: ("▶", "cyan"),
    State.DONE: ("✓", "green"),
    State.FAILED: ("✗", "red"),
    State.BLOCKED: ("?", "yellow"),
}
BAR = 20


def progress_bar(done: int, total: int, width: int = BAR) -> str:
    """`[████████░░] 4/6`. Full only when everything is done, empty only when nothing is."""
    filled = width * done // total if total else 0
    if done > 0 and filled == 0:
        filled = 1
    return f"[{'█' * filled}{'░' * (width - filled)}] {done}/{total}"


def story_line(story: Story, width: int, id_width: int = 8) -> str:
    mark, style = MARKS[story.state]
    tail = _tail(story)
    room = max(width - id_width - 5 - (len(tail) + 2 if tail else 0), 20)
    text = f"{paint(mark, style)} {one_line(story.id):<{id_width}} {one_line(story.title, room)}"
    return f"{text}  {paint(tail, 'dim')}" if tail else text


def _tail(story: Story) -> str:
    parts = []
    if story.state in (State.FAILED, State.BLOCKED):
        parts.append(story.state.value)
    if story.review.status is not None and not story.is_done:
        parts.append(story.review.status.value.replace("_", " "))
    if story.review.count:
        parts.append(f"{story.review.count} review{'s' if story.review.count > 1 else ''}")
    if story.attempts and not story.is_done:
        parts.append(f"{story.attempts} attempt{'s' if story.attempts > 1 else ''}")
    if story.depends_on and not story.is_done:
        parts.append("after " + ", ".join(one_line(d, 20) for d in story.depends_on[:3]))
    return ", ".join(parts)


def id_width(plan: Plan) -> int:
    return min(max((len(story.id) for story in plan.stories), default=4), 16)


def as_json(story: Story) -> dict[str, object]:
    import msgspec

    value = msgspec.structs.asdict(story)
    value["review"] = msgspec.structs.asdict(story.review)
    return value
