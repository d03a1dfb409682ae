"""Prompts for agents that write a plan, extend one, or write a story for a bug. Pure."""

from __future__ import annotations

import re

from msgspec import Struct

from ralph.core.text import clean, one_line
from ralph.prompts.foreign import fenced, has_markup
from ralph.prompts.templates import library, render

_MOST_STORIES = 300


class Exchange(Struct, frozen=True):
    """A question from the agent, and the user's answer."""

    question: str
    answer: str


class PlanBriefing(Struct, frozen=True, kw_only=True):
    """Everything a planning prompt is built from."""

    kind: str
    """`plan`, `add` or `fix`."""
    name: str
    idea: str = ""
    requirements: str = ""
    requirements_path: str = ""
    writes_requirements: bool = False
    dialogue: tuple[Exchange, ...] = ()
    may_ask: bool = True
    checks: tuple[str, ...] = ()
    stories: tuple[str, ...] = ()
    """The stories of the existing plan, one line each."""
    schema: str = ""
    previous: str = ""
    """The previous answer."""
    problems: tuple[str, ...] = ()
    feedback: str = ""


_TEMPLATES = {"plan": "plan", "add": "add", "fix": "fix-story"}


def build_plan_prompt(briefing: PlanBriefing) -> str:
    rules = render(
        library("plan-rules"),
        {
            "CHECKS": list(briefing.checks),
            "PLAN": list(briefing.stories[-_MOST_STORIES:]),
            "PREVIOUS": _material(briefing.previous),
            "PROBLEMS": list(briefing.problems),
            "FEEDBACK": _material(briefing.feedback),
            "MAY_ASK": briefing.may_ask,
            "SCHEMA": briefing.schema,
        },
        "plan-rules.md",
    )
    name = _TEMPLATES[briefing.kind]
    text = render(
        library(name),
        {
            "PROJECT_NAME": briefing.name,
            "IDEA": _material(briefing.idea),
            "REQUIREMENTS": _material(briefing.requirements),
            "REQUIREMENTS_PATH": briefing.requirements_path,
            "WRITES_REQUIREMENTS": briefing.writes_requirements,
            "DIALOGUE": [
                {"question": one_line(item.question), "answer": one_line(item.answer)} for item in briefing.dialogue
            ],
            "MAY_ASK": briefing.may_ask,
            "HEADINGS": headings(),
            "RULES": rules,
        },
        f"{name}.md",
    )
    return clean(re.sub(r"\n{3,}", "\n\n", text))


def _material(text: str) -> str:
    """Fenced if it has headings or tags of its own: a report is often an issue that somebody else wrote."""
    return fenced(text) if has_markup(text) else text


def headings() -> str:
    """The headings of the requirements template that ships with Ralph."""
    return "\n".join(line for line in library("prd").splitlines() if line.startswith("##"))
