"""Which checks apply to a story, and the identity of a set of checks. Pure."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable
from typing import Literal

import msgspec
from msgspec import Struct

from ralph.config.schema import Config, all_checks, minimum_grade
from ralph.core.plan import Plan, Story

When = Literal["story", "review", "final"]


class ChosenCheck(Struct, frozen=True):
    name: str
    command: str
    timeout: float | None = 600.0
    cwd: str = ""
    required: bool = True
    story: str = ""
    """The story it belongs to; empty: it is about the whole."""


def choose(config: Config, plan: Plan, story: Story | None, when: When) -> tuple[ChosenCheck, ...]:
    """The plan's commands, the story's own, those of finished stories, then those of the settings.

    What proved an earlier story must keep passing: a change that breaks it is a regression, and the check's name
    says of which story. The final pass takes every story's, and the `command` steps: until then those have been run as
    steps, and were evidence.
    """
    chosen = [ChosenCheck(command, command) for command in plan.verify]
    own = [story] if story is not None else []
    earlier = [other for other in plan.stories if other.is_done and (story is None or other.id != story.id)]
    owners = plan.stories if when == "final" else [*own, *earlier] if own else []
    chosen += [
        ChosenCheck(f"{owner.id}: {command}", command, story=owner.id) for owner in owners for command in owner.verify
    ]
    chosen += [
        ChosenCheck(check.name, check.command, check.timeout or None, check.cwd, not check.allow_failure)
        for check in all_checks(config)
        if when in check.when
    ]
    chosen += _command_steps(config) if when == "final" else []
    return tuple(_of_story(check, story) for check in _once(chosen))


def _of_story(check: ChosenCheck, story: Story | None) -> ChosenCheck:
    """A general check that the story names as its own must pass for it, even if it failed before."""
    if story is None or check.story or check.cwd or check.command not in story.verify:
        return check
    return msgspec.structs.replace(check, story=story.id)


_TEST = "a test that fails without the change"


def proof_needed(config: Config, plan: Plan) -> str:
    """What open stories without a check of their own need; empty: there are none, or each story is reviewed anyway."""
    still = [story for story in plan.stories if not story.is_done]
    count = sum(not story.verify for story in still)
    minimum = minimum_grade(config)
    if not count or minimum == "unproven" or (minimum == "reviewed" and config.review.when == "always"):
        return ""
    each, verb, own = ("it", "has", "its") if count == 1 else ("each", "have", "their")
    needs = f"{each} needs {_TEST}, or one review session"
    if minimum == "proven":
        needs = f"proof.minimum is proven, so {each} needs one (`verify`)"
    elif minimum == "witnessed":
        needs = f"{each} needs {_TEST}"
    elif not config.review.enabled:
        needs = f"{each} needs {_TEST}, or it stays unproven (reviews are off)"
    stories = "story" if len(still) == 1 else "stories"
    return f"{count} of {len(still)} open {stories} {verb} no check of {own} own: {needs}"


def _command_steps(config: Config) -> list[ChosenCheck]:
    chosen = []
    for step in config.steps:
        command, args = step.config.get("command"), step.config.get("args", [])
        if not step.enabled or step.type != "command" or step.config.get("marker_file"):
            continue
        if isinstance(command, str) and command.strip() and isinstance(args, list):
            line = " ".join([command, *(shlex.quote(str(arg)) for arg in args)])
            cwd = str(step.config.get("cwd", step.config.get("working_dir", "")))
            required = not step.continue_on_error
            chosen.append(ChosenCheck(step.name or step.type, line, step.timeout or None, cwd, required))
    return chosen


def _once(checks: Iterable[ChosenCheck]) -> Iterable[ChosenCheck]:
    seen: set[tuple[str, str]] = set()
    for check in checks:
        if (check.command, check.cwd) not in seen:
            seen.add((check.command, check.cwd))
            yield check


def set_id(checks: Iterable[ChosenCheck]) -> str:
    """Changes whenever a command, its folder or its weight changes."""
    text = msgspec.json.encode([(c.command, c.cwd, c.required) for c in checks])
    return hashlib.sha256(text).hexdigest()[:16]
