"""`summary.md` of an archive: what was done, when, and how many attempts it took. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ralph.core.events import IterationEnded, Record, RunStarted
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.text import one_line


class Dates(Struct, frozen=True):
    """ISO 8601; empty if unknown."""

    first: str = ""
    last: str = ""
    archived: str = ""


def attempts_in(records: Iterable[Record], plan: str, since: float = 0) -> dict[str, int]:
    """Attempts per story in these runs. The plan itself does not keep the attempts of a done story."""
    counted: dict[str, int] = {}
    is_ours = False
    for record in records:
        match event := record.event:
            case RunStarted():
                is_ours = event.plan == plan
            case IterationEnded(story=story, mode=mode, kind=kind) if is_ours and story and record.t >= since:
                if mode not in (Mode.REVIEW, Mode.ACCEPTANCE) and kind.uses_attempt:
                    counted[story] = counted.get(story, 0) + 1
    return counted


def summary(plan: Plan, layout: str, dates: Dates, attempts: Mapping[str, int] | None = None) -> str:
    done = plan.count(State.DONE)
    reviews = [story.review.count for story in plan.stories]
    counted = {story.id: max(story.attempts, (attempts or {}).get(story.id, 0)) for story in plan.stories}
    tried = list(counted.values())
    facts = [
        ("Stories done", f"{done} of {len(plan.stories)}"),
        *((f"Stories {state.value.replace('_', ' ')}", str(n)) for state in _UNDONE if (n := plan.count(state))),
        ("Layout", layout),
        ("Branch", f"`{plan.branch}`" if plan.branch else ""),
        ("Started", dates.first),
        ("Last change", dates.last),
        ("Archived", dates.archived),
        ("Attempts", f"{sum(tried)} total, up to {max(tried)} for one story" if any(tried) else ""),
        ("Reviews", f"{sum(reviews)} total, up to {max(reviews)} for one story" if any(reviews) else ""),
    ]
    lines = [f"# {one_line(plan.name) or 'Plan'}", ""]
    if plan.description.strip():
        lines += [one_line(plan.description), ""]
    lines += [f"- {name}: {one_line(value)}" for name, value in facts if value]
    lines += ["", "| Story | Title | State | Reviews | Attempts |", "|---|---|---|---|---|"]
    lines += [_row(story, counted[story.id]) for story in plan.stories]
    remarks = [f"- {one_line(s.id)}: {one_line(s.review.feedback)}" for s in plan.stories if s.review.feedback.strip()]
    if remarks:
        lines += ["", "## Review feedback", "", *remarks]
    return "\n".join(lines) + "\n"


_UNDONE = (State.IN_PROGRESS, State.TODO, State.FAILED, State.BLOCKED)


def _row(story: Story, attempts: int) -> str:
    cells = [story.id, story.title, story.state.value.replace("_", " "), str(story.review.count), str(attempts)]
    return "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in cells) + " |"
