"""What an agent is told that plans, adds to a plan, or writes a story for a fault. Pure."""

from __future__ import annotations

import re

from msgspec import Struct

from ralph.prompts.templates import library, render

_MOST_STORIES = 300


class Exchange(Struct, frozen=True):
    """A question of the agent, and what a person answered."""

    question: str
    answer: str


class PlanBriefing(Struct, frozen=True, kw_only=True):
    """Everything such a prompt is made of."""

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
    """Of the plan that is there, one line each."""
    schema: str = ""
    previous: str = ""
    """The answer before."""
    problems: tuple[str, ...] = ()
    feedback: str = ""


_TEMPLATES = {"plan": "plan", "add": "add", "fix": "fix-story"}


def build_plan_prompt(briefing: PlanBriefing) -> str:
    rules = render(
        library("plan-rules"),
        {
            "CHECKS": list(briefing.checks),
            "PLAN": list(briefing.stories[-_MOST_STORIES:]),
            "PREVIOUS": briefing.previous,
            "PROBLEMS": list(briefing.problems),
            "FEEDBACK": briefing.feedback,
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
            "IDEA": briefing.idea,
            "REQUIREMENTS": briefing.requirements,
            "REQUIREMENTS_PATH": briefing.requirements_path,
            "WRITES_REQUIREMENTS": briefing.writes_requirements,
            "DIALOGUE": [{"question": item.question, "answer": item.answer} for item in briefing.dialogue],
            "MAY_ASK": briefing.may_ask,
            "HEADINGS": headings(),
            "RULES": rules,
        },
        f"{name}.md",
    )
    return re.sub(r"\n{3,}", "\n\n", text)


def headings() -> str:
    """Those of the page for requirements that ships with Ralph."""
    return "\n".join(line for line in library("prd").splitlines() if line.startswith("##"))
