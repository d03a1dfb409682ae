"""Write a complete new Markdown plan. `story_edit` changes an existing one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ralph.core.plan import Plan, Story
from ralph.core.text import one_line
from ralph.plans.markdown_edit import write_body
from ralph.plans.markdown_stories import FIELDS, escape

_LIKE_A_STORY = re.compile(r"[\W_]*(?:US-|\[[ xX]\])", re.IGNORECASE)


def plan_md(plan: Plan, phases: Mapping[str, str]) -> str:
    """A checklist, and one block per story. A phase is a heading in the checklist."""
    listed: list[str] = []
    blocks: list[str] = []
    phase = ""
    for story in plan.stories:
        if (now := phases.get(story.id, "")) != phase:
            phase = now
            listed += ["", f"### {_heading(phase) or 'More'}", ""]
        listed.append(f"- {_box(story)} {story.id}: {story.title}")
        blocks += ["", f"### {story.id}: {story.title}", *write_body(_values(story), "", in_block=True)]
    lines = [*_top(plan), "## Stories", "", *listed, "", "## Details", *blocks]
    return "\n".join(_without_double_blanks(lines)) + "\n"


def spec_md(plan: Plan, phases: Mapping[str, str]) -> str:
    """An index of steps, with their details nested below them."""
    lines = _top(plan)
    phase: str | None = None
    for story in plan.stories:
        if (now := phases.get(story.id, "")) != phase:
            phase = now
            lines += ["", f"## {_heading(phase) or 'Steps'}", ""]
        ref = f" [{story.ref}]" if story.ref else ""
        lines.append(f"- {_box(story)} **{story.id}** {story.title}{ref}")
        lines += write_body(_values(story), "  ", in_block=False)
    return "\n".join(_without_double_blanks(lines)) + "\n"


def _top(plan: Plan) -> list[str]:
    lines = [f"# {_heading(plan.name) or 'Plan'}", ""]
    if plan.description.strip():
        lines += [*(escape(line.strip()) if line.strip() else "" for line in plan.description.splitlines()), ""]
    return lines


def _heading(words: str) -> str:
    """On one line, and not mistakable for the heading of a story."""
    line = one_line(words).rstrip("#").rstrip()
    return f"Part {line}" if _LIKE_A_STORY.match(line) else line


def _values(story: Story) -> dict[str, Any]:
    return {name: getattr(story, name) for name in FIELDS}


def _box(story: Story) -> str:
    return "[x]" if story.is_done else "[ ]"


def _without_double_blanks(lines: Sequence[str]) -> list[str]:
    return [line for at, line in enumerate(lines) if line or not at or lines[at - 1]]
