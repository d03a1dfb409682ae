"""From the steps of the settings to pipelines: the one for stories, and the one that sets a project up once."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from ralph.config.schema import Config, Step
from ralph.core.circuit import Circuit
from ralph.engine.pipeline import PlannedStep
from ralph.steps.registry import step as find_step


class Planned(Struct, frozen=True):
    work: tuple[PlannedStep, ...]
    setup: tuple[PlannedStep, ...]
    markers: tuple[Path, ...]
    """Files that say that setting up has been done."""
    commits: bool
    """No steps are configured: the loop commits without being asked."""


def plan_steps(config: Config, root: Path) -> Planned:
    enabled = [step for step in config.steps if step.enabled]
    setup = [step for step in enabled if step.config.get("marker_file")]
    work = [step for step in enabled if step not in setup]
    if not any(step.type == "agent" for step in work):
        work.insert(0, Step(type="agent", name="agent"))
    return Planned(
        work=tuple(map(_planned, work)),
        setup=tuple(map(_planned, setup)),
        markers=tuple(root / str(step.config["marker_file"]) for step in setup),
        commits=not config.steps,
    )


def _planned(step: Step) -> PlannedStep:
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
        config={"name": step.name or step.type} | step.config,
    )
