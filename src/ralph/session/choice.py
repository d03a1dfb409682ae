"""Which agent and model do a piece of work, and why: the run's flags, its steps, routing, fallback."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ralph.agents.registry import AGENTS
from ralph.config.layers import Kind, Settings
from ralph.config.schema import Agent, Config
from ralph.core.complexity import Complexity, Level, complexity
from ralph.core.errors import UsageError
from ralph.core.fallback import OTHER, parts, reviewer_parts
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
    if not work.choice:
        return reviewer_of(config) if work.mode is Mode.REVIEW else _worker(settings, story, step)
    name, model = agent_and_model(config, work.choice)
    return Who(name, model, _command(config, name, work.mode), _why(settings, work, story))


def _why(settings: Settings, work: Work, story: Story | None) -> str:
    config = settings.config
    if work.mode is Mode.REVIEW:
        if work.choice in reviewers_of(config).values():
            return f"review.reviewers: {work.choice}"
        if config.review.agent == OTHER:
            return "review.agent: another agent than the one that did the work"
    elif config.routing.enabled and story is not None:
        found = complexity(story)
        if work.choice == routed(settings, found):
            return _looks(found)
    return f"fallback: {work.choice}"


def agent_and_model(config: Config, choice: str) -> tuple[str, str]:
    agent, model = parts(choice, known_agents(config)) if choice else ("", "")
    return agent or config.agent.name, model  # a model alone is one of the agent that works


def known_agents(config: Config) -> tuple[str, ...]:
    """The built-in agents and those the settings name."""
    return tuple(dict.fromkeys((*AGENTS.names(), config.agent.name)))


def named_agents(config: Config) -> dict[str, str]:
    """Every agent that a run may start, and the setting that names it."""
    review, routing = config.review, config.routing
    named = [("agent.name", config.agent.name)]
    if review.enabled:
        named += [("review.agent", review.agent)] if review.agent != OTHER else []
        named += [("review.reviewers", choice) for choice in reviewers_of(config).values()]
    if routing.enabled:
        named += [(f"routing.{level.value}", getattr(routing, level.value)) for level in Level]
    named += [("fallback", choice) for choice in config.fallback]
    known = known_agents(config) if config.fallback or routing.enabled or any(reviewers_of(config).values()) else ()
    found: dict[str, str] = {}
    for key, choice in named:
        found.setdefault(choice if key.endswith((".name", ".agent")) else parts(choice, known)[0], key)
    return {agent: key for agent, key in found.items() if agent}


def reviewers_of(config: Config) -> dict[str, str]:
    """The reviewers by name, and the agent that each of them is. Empty: the one that reviews."""
    if not any("@" in name for name in config.review.reviewers):
        return dict.fromkeys(config.review.reviewers, "")
    known = known_agents(config)
    return {name: reviewer_parts(name, known)[1] for name in config.review.reviewers}


def reviewer_of(config: Config) -> Who:
    review = config.review
    name, model = review.agent or config.agent.name, review.model or config.agent.model
    if review.agent == OTHER:
        return _other(config)
    if review.agent and review.agent != config.agent.name:
        model = review.model  # the other agent's models have other names
    why = "review.agent and review.model" if review.agent or review.model else "agent.model"
    return Who(name, model, _command(config, name, Mode.REVIEW), why)


def _other(config: Config) -> Who:
    """The reviewer of what the agent of the run did."""
    if config.review.model:
        raise UsageError(
            "review.model cannot be combined with `review.agent: other`: its models depend on who reviews",
            hint="name the model with the agent, as in `fallback: [AGENT/MODEL]`",
        )
    for choice in other_choices(config):
        name, model = agent_and_model(config, choice)
        if name != config.agent.name:
            return Who(name, model, _command(config, name, Mode.REVIEW), "review.agent: other")
    raise UsageError(
        f"review.agent is `other`, but {config.agent.name} is the only agent of this run",
        hint="name another one in fallback, routing or review.reviewers; or set review.agent to its name",
    )


def other_choices(config: Config) -> tuple[str, ...]:
    """The run's other choices, in the order in which they are asked to review."""
    routing = config.routing
    routes = (routing.simple, routing.medium, routing.complex) if routing.enabled else ()
    named = (*config.fallback, *routes, *reviewers_of(config).values())
    return tuple(dict.fromkeys(filter(None, named)))


def _worker(settings: Settings, story: Story | None, step: Mapping[str, Any]) -> Who:
    config = settings.config
    agent = config.agent
    command = _command(config, agent.name, Mode.IMPLEMENT)
    if has_own_model(settings):
        return Who(agent.name, agent.model, command, "the model set for this run")
    if step.get("model"):
        return Who(agent.name, str(step["model"]), command, f"the model of step {step.get('name') or 'agent'}")
    if config.routing.enabled and story is not None:
        found = complexity(story)
        name, model = agent_and_model(config, routed(settings, found))
        return Who(name, model, _command(config, name, Mode.IMPLEMENT), _looks(found))
    return Who(agent.name, agent.model, command, "agent.model" if agent.model else "the client's own choice")


def has_own_model(settings: Settings) -> bool:
    """The user chose the model for this run, so nothing else does."""
    return settings.origin("agent.model").kind in (Kind.FLAG, Kind.ENVIRONMENT)


def _looks(found: Complexity) -> str:
    return f"routing: the story looks {found.level.value}"


def routed(settings: Settings, found: Complexity) -> str:
    """What routing chooses. Its default models are those of the default agent, so another one uses `agent.model`."""
    agent, key = settings.config.agent, f"routing.{found.level.value}"
    if agent.name != Agent().name and settings.origin(key).kind is Kind.DEFAULT:
        return agent.model
    return str(getattr(settings.config.routing, found.level.value)) or agent.model


def routes_of(settings: Settings) -> dict[str, str]:
    """The choices of routing that are another agent than the first, by how hard a story looks."""
    config = settings.config
    has_steps = any(step.enabled and step.config.get("model") for step in config.steps)
    if not config.routing.enabled or has_own_model(settings) or has_steps:
        return {}
    routes = {level.value: routed(settings, Complexity(level)) for level in Level}
    own = config.agent.name
    return {level: choice for level, choice in routes.items() if agent_and_model(config, choice)[0] != own}


def _command(config: Config, name: str, mode: Mode) -> tuple[str, ...]:
    if mode is Mode.REVIEW and config.review.command and name == (config.review.agent or config.agent.name):
        return config.review.command
    return config.agent.command if name == config.agent.name else ()
