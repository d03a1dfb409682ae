"""Stories and progress as text, for the commands that show them."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from ralph.cli.arguments import width
from ralph.cli.output import can_say, paint
from ralph.core.plan import Mode, Order, Plan, State, Story
from ralph.core.proof import MEANING, Grade
from ralph.core.review import OPEN_FINDINGS, approved_at
from ralph.core.text import clean, one_line
from ralph.views import columns
from ralph.views.columns import cells
from ralph.views.words import MARKS as MARKS
from ralph.views.words import grades_line as grades_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ralph.plans.beads import Bead

_WIDEST_ID = 16


def line_width() -> int | None:
    """The maximum width of a line: that of the terminal, or unlimited when the output is piped."""
    return width() if sys.stdout.isatty() else None


def fit(text: str, room: int | None) -> str:
    """On one line, cut to this many columns with an ellipsis."""
    return columns.fit(text, room, _ellipsis())


def cut(text: str, room: int | None) -> str:
    """Like `fit`, for a line whose columns are padded with spaces."""
    return columns.cut(text, room, _ellipsis())


def pad(text: str, room: int) -> str:
    return columns.pad(text, room, _ellipsis())


def _ellipsis() -> str:
    return "…" if can_say("…") else "..."


def mark(state: State) -> str:
    sign, style = MARKS[state]
    return paint(sign, style)


def story_lines(story: Story, width: int | None, id_width: int, why: str = "") -> Iterator[str]:
    """The line of a story, and the reason on a second line if it is stuck."""
    yield story_line(story, width, id_width)
    if why and story.state in (State.FAILED, State.BLOCKED):
        room = None if width is None else max(width - id_width - 3, 8)
        yield " " * (id_width + 3) + paint(fit(why, room), MARKS[story.state][1])


def story_line(story: Story, width: int | None, id_width: int = 8) -> str:
    tail = _tail(story)
    room = None if width is None else max(width - id_width - 3, 8)
    if room is not None and tail:
        tail = fit(tail, max(room // 2, room - cells(one_line(story.title)) - 2))
        room -= cells(tail) + 2
    text = f"{mark(story.state)} {pad(story.id, id_width)} {fit(story.title, room)}"
    return f"{text}  {paint(tail, 'dim')}" if tail else text.rstrip()


def _tail(story: Story) -> str:
    parts = []
    if story.state in (State.FAILED, State.BLOCKED):
        parts.append(story.state.value)
    if story.review.status is not None and not story.is_done:
        parts.append(story.review.status.value.replace("_", " "))
    if story.review.count:
        parts.append(f"{story.review.count} review{'s' if story.review.count > 1 else ''}")
    if approved_at(story.review):
        parts.append(OPEN_FINDINGS)
    if shown_grade(story):
        parts.append(story.grade)
    if story.attempts and not story.is_done:
        parts.append(f"{story.attempts} attempt{'s' if story.attempts > 1 else ''}")
    if story.depends_on and not story.is_done:
        more = " …" if story.depends_on[3:] else ""
        parts.append("after " + ", ".join(fit(d, 20) for d in story.depends_on[:3]) + more)
    return ", ".join(parts)


def id_width(plan: Plan) -> int:
    return min(max((cells(one_line(story.id)) for story in plan.stories), default=4), _WIDEST_ID)


def story_card(story: Story, plan: Plan, why: str = "", mode: Mode | None = None) -> Iterator[str]:
    """All details of a story. `mode`: what a run would do with it."""
    yield paint(f"{one_line(story.id)}  {one_line(story.title)}", "bold")
    is_stuck = story.state in (State.FAILED, State.BLOCKED)
    facts = {
        "state": story.state.value + (f": {why}" if why and is_stuck else ""),
        "mode": mode.value if mode else "",
        "priority": f"{story.priority:g}" if plan.order is Order.PRIORITY else "",
        "after": ", ".join(story.depends_on),
        "touches": ", ".join(story.touches),
        "review": _review(story),
        "reviews": str(story.review.count or ""),
        "grade": grade_in_words(shown_grade(story)),
        "attempts": str(story.attempts or ""),
        "tracker": story.ref,
    }
    for name, value in facts.items():
        if value:
            yield f"{name:<10} {one_line(value)}"
    yield from _section("description", clean(story.description).strip().splitlines())
    yield from _section("criteria", [f"- {one_line(item)}" for item in story.criteria])
    yield from _section("verify", [f"- {one_line(item)}" for item in story.verify])
    yield from _section("notes", clean(story.notes).strip().splitlines())
    yield from _section("feedback", clean(story.review.feedback).strip().splitlines())


def shown_grade(story: Story) -> str:
    """How well it is proven, if it is done or its work waits as unproven."""
    return story.grade if story.is_done or story.grade == Grade.UNPROVEN else ""


def grade_in_words(grade: str) -> str:
    """`witnessed: a test fails without the change`"""
    meaning = MEANING[Grade(grade)] if grade in list(Grade) else ""
    return f"{grade}: {meaning}" if meaning else grade


def _review(story: Story) -> str:
    if approved_at(story.review):
        return OPEN_FINDINGS
    return story.review.status.value.replace("_", " ") if story.review.status else ""


def bead_lines(bead: Bead) -> Iterator[str]:
    """The state of a step's bead in the tracker."""
    yield ""
    yield paint(f"bead {one_line(bead.id)}  {one_line(bead.title)}", "bold")
    yield f"{'status':<10} {one_line(bead.status)}"
    for name in ("description", "design", "acceptance_criteria", "notes"):
        yield from _section(name.replace("_", " "), clean(getattr(bead, name)).strip().splitlines())


def _section(title: str, lines: list[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in lines)


def as_json(story: Story, why: str = "") -> dict[str, object]:
    import msgspec

    value = msgspec.structs.asdict(story)
    value["review"] = msgspec.structs.asdict(story.review) | {"open_findings": bool(approved_at(story.review))}
    return value | {"why": why if story.state in (State.FAILED, State.BLOCKED) else ""}
