"""Names in the settings that must exist in a table of variants: the layout, the agent, the step types."""

from __future__ import annotations

from collections.abc import Iterator

from ralph.agents.registry import AGENTS
from ralph.config.layers import Kind, Settings
from ralph.core.errors import ConfigError, UsageError
from ralph.core.problems import Place, Problem
from ralph.core.registry import Registry
from ralph.engine.steps import STEPS
from ralph.plans.registry import LAYOUTS


def unknown_names(settings: Settings) -> Iterator[Problem]:
    """The unknown names, each with its place. Does not import the known ones."""
    config = settings.config
    if config.layout != "auto":
        yield from _look_up(settings, LAYOUTS, config.layout, "layout")
    yield from _look_up(settings, AGENTS, config.agent.name, "agent.name")
    yield from _not_here(settings)
    if config.review.agent:
        yield from _look_up(settings, AGENTS, config.review.agent, "review.agent")
    if config.planning.agent:
        yield from _look_up(settings, AGENTS, config.planning.agent, "planning.agent")
    for number, step in enumerate(config.steps):
        if step.enabled:
            yield from _look_up(settings, STEPS, step.type, "steps", f"[{number}].type")


_ELSEWHERE = ("aider", "amp", "codex", "copilot", "cursor", "gemini", "goose", "opencode")
"""Agents, not models: `fallback` may name both."""


def _not_here(settings: Settings) -> Iterator[Problem]:
    for name in settings.config.fallback:
        agent = name.partition("/")[0]
        if agent in _ELSEWHERE:
            yield from _look_up(settings, AGENTS, agent, "fallback")


def refuse_unknown_names(settings: Settings) -> None:
    _refuse(settings, list(unknown_names(settings)))


def chosen_layout(settings: Settings) -> str:
    """The layout named in the settings; empty for `auto`."""
    name = settings.config.layout
    if name == "auto":
        return ""
    _refuse(settings, list(_look_up(settings, LAYOUTS, name, "layout")))
    return name


def _refuse(settings: Settings, problems: list[Problem]) -> None:
    for problem in problems:
        if settings.origin(problem.where.path.partition("[")[0]).kind is Kind.FLAG:  # wrong usage, not bad data
            raise UsageError(problem.message, hint=problem.hint)
    if problems:
        raise ConfigError.of(problems)


def _look_up(settings: Settings, registry: Registry, name: str, key: str, inside: str = "") -> Iterator[Problem]:
    if wrong := registry.trouble_with(name):
        origin = settings.origin(key)
        where = Place(origin.file or str(origin), origin.line or None, None, key + inside)
        yield Problem("unknown-name", wrong.message, where, wrong.hint)
