"""Which agent and model do a piece of work, and why: the run's flags, its steps, routing, fallback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ralph.agents.registry import AGENTS
from ralph.config.layers import Kind, Settings
from ralph.config.schema import Config
from ralph.core.complexity import Complexity, Level, complexity
from ralph.core.lineup import parts
from ralph.core.moves import Work
from ralph.core.plan import Mode, Story


class Who(Struct, frozen=True):
    name: str
    """The agent's name."""
    model: str = ""
    """Empty: the client's default."""
    command: tuple[str, ...] = ()
    why: str = ""


def who_works(settings: Settings, work: Work, story: Story | None, step: Mapping[str, Any]) -> Who:
    """A command line applies only to the agent it was given for."""
    config = settings.config
    first = reviewer_of(config) if work.mode is Mode.REVIEW else _worker(settings, story, step)
    if not work.choice:
        return first
    agent, model = parts(work.choice, known_agents(config))
    name = agent or config.agent.name  # a model alone is one of the agent that works
    return Who(name, model, _command(config, name, work.mode), f"fallback: {work.choice}")


def known_agents(config: Config) -> tuple[str, ...]:
    """The built-in agents and those the settings name."""
    return tuple(dict.fromkeys((*AGENTS.names(), config.agent.name)))


def reviewer_of(config: Config) -> Who:
    review = config.review
    name, model = review.agent or config.agent.name, review.model or config.agent.model
    if review.agent and review.agent != config.agent.name:
        model = review.model  # the other agent's models have other names
    why = "review.agent and review.model" if review.agent or review.model else "agent.model"
    return Who(name, model, _command(config, name, Mode.REVIEW), why)


def _worker(settings: Settings, story: Story | None, step: Mapping[str, Any]) -> Who:
    config = settings.config
    agent = config.agent
    command = _command(config, agent.name, Mode.IMPLEMENT)
    if settings.origin("agent.model").kind in (Kind.FLAG, Kind.ENVIRONMENT):
        return Who(agent.name, agent.model, command, "the model set for this run")
    if step.get("model"):
        return Who(agent.name, str(step["model"]), command, f"the model of step {step.get('name') or 'agent'}")
    if config.routing.enabled and story is not None:
        found = complexity(story)
        return Who(agent.name, routed(config, found), command, f"routing: the story looks {found.level.value}")
    return Who(agent.name, agent.model, command, "agent.model" if agent.model else "the client's own choice")


def routed(config: Config, found: Complexity) -> str:
    routing = config.routing
    models = {Level.SIMPLE: routing.simple, Level.MEDIUM: routing.medium, Level.COMPLEX: routing.complex}
    return models[found.level] or config.agent.model


def _command(config: Config, name: str, mode: Mode) -> tuple[str, ...]:
    if mode is Mode.REVIEW and config.review.command and name == (config.review.agent or config.agent.name):
        return config.review.command
    return config.agent.command if name == config.agent.name else ()
