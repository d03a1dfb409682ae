"""Turns the configured steps into pipelines: one for stories, and one for the one-time setup of a project."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec import Struct

from ralph.config.durations import EXPECTED, parse_duration
from ralph.config.layers import Kind, Settings
from ralph.config.schema import Step
from ralph.core.errors import ConfigError
from ralph.core.text import one_line
from ralph.engine.steps import Circuit, PlannedStep
from ralph.engine.steps import step as find_step


class Planned(Struct, frozen=True):
    work: tuple[PlannedStep, ...]
    setup: tuple[PlannedStep, ...]
    markers: tuple[Path, ...]
    """Files that mark the setup as done."""
    commits: bool
    """No steps are configured: the loop commits by default."""


_OVERRIDES = {"timeout": "timeout", "agent.model": "model", "agent.allowed_tools": "allowed_tools"}
"""Settings that override a step's configuration when given for one run."""


def plan_steps(settings: Settings, root: Path) -> Planned:
    """Raises UsageError for an unknown step type, and ConfigError."""
    steps = settings.config.steps
    setup = [step for step in steps if step.enabled and _marker(step)]
    work = [step for step in steps if step.enabled and not _marker(step)]
    if not any(step.type == "agent" and not _marker(step) for step in steps):
        work.insert(0, Step(type="agent", name="agent"))
    commits = [step for step in work if step.type == "git-commit"]
    given = {word for key, word in _OVERRIDES.items() if _is_given(settings, key)}
    without_prompt = given | ({"prompt_file"} if _is_given(settings, "prompt") else set())
    return Planned(
        work=tuple(_planned(step, without_prompt) for step in work),
        setup=tuple(_planned(step, given) for step in (*setup, *commits)) if setup else (),
        markers=tuple(root / _marker(step) for step in setup),
        commits=not steps,
    )


def _marker(step: Step) -> str:
    return str(step.config.get("marker_file") or "")


def _is_given(settings: Settings, key: str) -> bool:
    return settings.origin(key).kind in (Kind.ENVIRONMENT, Kind.FLAG)


def _planned(step: Step, given: set[str]) -> PlannedStep:
    breaker = step.circuit_breaker
    return PlannedStep(
        name=step.name or step.type,
        kind=step.type,
        step=find_step(step.type),
        timeout=step.timeout or None,
        max_retries=step.max_retries,
        retry_delay=step.retry_delay,
        continue_on_error=step.continue_on_error,
        circuit=Circuit(breaker.threshold, breaker.reset_after) if breaker else None,
        config={"name": step.name or step.type} | (_of_agent(step, given) if step.type == "agent" else step.config),
    )


def _of_agent(step: Step, given: set[str]) -> dict[str, Any]:
    """The step's configuration without what is overridden for this run, and its timeout in seconds."""
    config = {word: value for word, value in step.config.items() if word not in given}
    if (timeout := config.get("timeout")) is not None:
        config["timeout"] = parse_duration(str(timeout))
        if config["timeout"] is None:
            name = one_line(step.name or step.type, 60)
            raise ConfigError(f"step {name}: the timeout in its config is {timeout!r}", hint=f"expected {EXPECTED}")
    return config
