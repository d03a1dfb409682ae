"""Templates that ship with Ralph, and the one function that fills in any template, built-in or the user's."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ralph.core.errors import BadData
from ralph.core.problems import Place

if TYPE_CHECKING:
    from minijinja import TemplateError

NAMES = (
    "acceptance",
    "default-prompt",
    "exam",
    "feature-prompt",
    "feature-prompt-tdd",
    "fix",
    "plan-prompt",
    "prd",
    "requirements",
    "review",
    "spec-prompt",
    "steps-loop",
    "steps-setup",
    "tasks-prompt",
)

REVIEWERS = {"quality": "reviewer-quality", "tests": "reviewer-tests", "security": "reviewer-security"}
"""The focus of one of several reviewers, by the reviewer's name."""

PLANNING = ("add", "fix-story", "plan", "plan-rules")
"""Prompts of agents that write a plan. They use a different set of variables."""

VARIABLES: Mapping[str, str] = {
    "STORY": "the story with its criteria and everything known about it; appended to a template that does not use it",
    "STORY_ID": "the story of this session, e.g. US-001",
    "STORY_TITLE": "its title",
    "MODE": "what the session is for: setup, acceptance, implement, review, fix or exam",
    "PLAN_PATH": "the plan file",
    "PROGRESS_PATH": "the progress log",
    "PRD_PATH": "the requirements",
    "PRD_NUMBER": "the number of the PRD, or the feature's name in layouts without numbers",
    "RALPH_ITERATION": "number of this iteration, from 1",
    "RALPH_MAX_ITERATIONS": "the most iterations this run will do",
    "REVIEW_CAP": "reviews a story gets before it is approved with notes",
    "SKIP_REVIEW": "true when stories are not reviewed in this run",
}
"""Variables a prompt can use. All of them are always set, so a template may use any subset."""

_LIBRARY = Path(__file__).with_name("library")

# Instructions, enough to loop over thousands of stories. An agent may edit a prompt file, so a loop must end.
_FUEL = 100_000


def library(name: str) -> str:
    """The text of a built-in template, read on demand."""
    if name not in NAMES and name not in REVIEWERS.values() and name not in PLANNING:
        raise KeyError(name)
    return (_LIBRARY / f"{name}.md").read_text("utf-8")


def render(template: str, variables: Mapping[str, Any], name: str) -> str:
    """`template` with its variables filled in. An unknown name is an error, never an empty string.

    `name` is the template's file, for messages.
    """
    from minijinja import Environment, TemplateError

    environment = Environment(
        undefined_behavior="strict",
        auto_escape_callback=_never,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        fuel=_FUEL,
        globals=dict(variables),
    )
    try:
        return environment.render_str(template, name)
    except TemplateError as error:
        raise _explained(error, template, variables, name) from None


def _never(_name: str) -> bool:
    """No escaping: a prompt is plain text whatever its file name, so `<` stays `<`."""
    return False


def _explained(error: TemplateError, template: str, variables: Mapping[str, Any], name: str) -> BadData:
    from difflib import get_close_matches

    line, column = _position(error, template)
    detail = error.detail or error.message
    hint = ""
    if error.kind == "UndefinedError" and (found := re.match(r"`([^`]+)` is undefined", detail)):
        unknown = found[1]
        detail = f"unknown variable {unknown}"
        close = get_close_matches(unknown.upper(), list(variables), 1)
        known = ", ".join(sorted(variables))
        hint = (
            f"did you mean {close[0]}?" if close else f"known: {known}" if known else "no variables are available here"
        )
    elif error.kind == "SyntaxError":
        detail = f"the template is not valid: {detail}"
        hint = "write {% raw %}…{% endraw %} around text that is not part of the template, such as code with {{ }}"
    return BadData(detail, hint=hint, where=Place(file=name, line=line, column=column))


def _position(error: TemplateError, template: str) -> tuple[int | None, int | None]:
    """Line and column from 1. minijinja reports the byte offset of the error."""
    if error.range is None:
        return error.line, None
    before = template.encode()[: error.range[0]].decode(errors="ignore")
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1
