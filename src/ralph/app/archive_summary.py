"""`summary.md` of an archive: what was done, by when, and what it took. Pure."""

from __future__ import annotations

from msgspec import Struct

from ralph.core.plan import Plan, State, Story
from ralph.core.text import one_line


class Dates(Struct, frozen=True):
    """ISO 8601; empty when not known."""

    first: str = ""
    last: str = ""
    archived: str = ""


def summary(plan: Plan, layout: str, dates: Dates) -> str:
    done = plan.count(State.DONE)
    reviews = [story.review.count for story in plan.stories]
    facts = [
        ("Stories done", f"{done} of {len(plan.stories)}"),
        *((f"Stories {state.value.replace('_', ' ')}", str(n)) for state in _UNDONE if (n := plan.count(state))),
        ("Layout", layout),
        ("Branch", f"`{plan.branch}`" if plan.branch else ""),
        ("Started", dates.first),
        ("Last change", dates.last),
        ("Archived", dates.archived),
        ("Reviews", f"{sum(reviews)} in all, at most {max(reviews)} for one story" if any(reviews) else ""),
    ]
    lines = [f"# {one_line(plan.name) or 'Plan'}", ""]
    if plan.description.strip():
        lines += [one_line(plan.description), ""]
    lines += [f"- {name}: {one_line(value)}" for name, value in facts if value]
    lines += ["", "| Story | Title | State | Reviews | Attempts |", "|---|---|---|---|---|"]
    lines += [_row(story) for story in plan.stories]
    remarks = [f"- {one_line(s.id)}: {one_line(s.review.feedback)}" for s in plan.stories if s.review.feedback.strip()]
    if remarks:
        lines += ["", "## Left by reviews", "", *remarks]
    return "\n".join(lines) + "\n"


_UNDONE = (State.IN_PROGRESS, State.TODO, State.FAILED, State.BLOCKED)


def _row(story: Story) -> str:
    cells = [story.id, story.title, story.state.value.replace("_", " "), str(story.review.count), str(story.attempts)]
    return "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in cells) + " |"
