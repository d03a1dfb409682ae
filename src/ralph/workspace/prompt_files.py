"""The user's prompt files: which one a session uses, and whether it can be rendered."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ralph.config.schema import Config
from ralph.config.trust import is_outside
from ralph.core.errors import BadData, UsageError
from ralph.core.plan import Mode
from ralph.core.ports import PlanRef
from ralph.core.problems import Place, Problem
from ralph.host.files import read_bytes
from ralph.plans.registry import layout, traits
from ralph.prompts.session import Briefing, Template, instructions

_LIMIT = 1_000_000


def template_for(ref: PlanRef, config: Config, mode: Mode, step: Mapping[str, Any]) -> Template:
    """The step's own prompt file, else that of `-p`, else the workspace's. Empty: the built-in prompt."""
    if mode in (Mode.ACCEPTANCE, Mode.EXAM) or (
        mode in (Mode.REVIEW, Mode.FIX) and not traits(ref.layout).reviews_with_prompt
    ):
        return Template()  # the user's own prompt is about implementing
    wanted = step.get("prompt_file") or (config.prompt if mode is not Mode.SETUP else "")
    if wanted:
        path = ref.root / str(wanted)
        if not path.exists() and step.get("prompt_file"):
            return Template()
        if not path.exists():
            raise UsageError(
                f"the prompt file {wanted} does not exist", hint="pass a file with -p, or remove the setting"
            )
        # One outside was named by the user, or the user trusted the file that names it.
        is_outside_prompt = not step.get("prompt_file") and is_outside(str(wanted), str(ref.root))
        return Template(_text(path, None if is_outside_prompt else ref.root), str(wanted))
    own = layout(ref.layout).locations(ref).prompt
    if mode is Mode.SETUP or own is None or not own.is_file():
        return Template()
    return Template(_text(own, ref.root), os.path.relpath(own, ref.root))


def _text(path: Path, root: Path | None) -> str:
    try:
        return read_bytes(path, within=root, limit=_LIMIT).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadData(f"{path} is not UTF-8", hint="save it as UTF-8") from None


def prompt_problems(ref: PlanRef, config: Config) -> Iterator[Problem]:
    """What would keep a session from its prompt: every prompt file, rendered in every mode that uses it."""
    problems: dict[Problem, None] = {}
    agents = [step.config for step in config.steps if step.enabled and step.type == "agent"]
    setup = [step for step in agents if step.get("marker_file")]
    work = [step for step in agents if not step.get("marker_file")] or [{}]
    sessions = [(Mode.SETUP, step) for step in setup if not (ref.root / str(step["marker_file"])).exists()]
    sessions += [(mode, step) for mode in Mode if mode is not Mode.SETUP for step in work]
    for mode, step in sessions:
        try:
            template = template_for(ref, config, mode, step)
            review = config.review.when == "always"
            instructions(Briefing(traits=traits(ref.layout), mode=mode, story=None, template=template, review=review))
        except (BadData, UsageError) as error:
            where = error.where or Place()
            if where.file:
                where = Place(str(ref.root / where.file), where.line, where.column)
            problems[Problem("prompt", error.message, where, error.hint)] = None
    yield from problems
