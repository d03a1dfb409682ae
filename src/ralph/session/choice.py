"""Which agent and model do a piece of work, and why: the run's flags, its steps, routing, fallback."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from msgspec import Struct

from ralph.agents.registry import AGENTS
from ralph.config.layers import Kind, Settings
from ralph.config.schema import Config
from ralph.core.fallback import parts
from ralph.core.moves import Work
from ralph.core.plan import Mode, Story

_HARD = re.compile(
    r"\b(?:migrat\w+|concurren\w+|parallel\w*|async\w*|thread\w*|race|deadlock\w*|distribut\w+|transaction\w*|security|"
    r"auth\w*|encrypt\w*|permission\w*|architect\w+|refactor\w*|redesign\w*|rewrite|protocol\w*|pars(?:er|ing)|compiler|"
    r"scheduler|cache invalidation|performance|optimi[sz]\w+|back-?ward[s -]?compatib\w+|real[- ]?time|algorithm\w*)\b",
    re.IGNORECASE,
)
_EASY = re.compile(
    r"\b(?:typo\w*|rename|wording|copy text|comment\w*|readme|documentation|docs?|changelog|label|colou?r|bump|"
    r"log line)\b",
    re.IGNORECASE,
)
_MANY_CRITERIA, _MANY_WORDS, _MANY_NEEDS = 4, 120, 2


class Level(StrEnum):
    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"


class Points(Struct, frozen=True):
    points: int
    why: str


class Complexity(Struct, frozen=True):
    level: Level
    parts: tuple[Points, ...] = ()

    @property
    def points(self) -> int:
        return sum(part.points for part in self.parts)


_MEDIUM, _COMPLEX = 3, 6


def complexity(story: Story) -> Complexity:
    parts = tuple(part for part in _parts(story) if part.points)
    points = sum(part.points for part in parts)
    level = Level.COMPLEX if points >= _COMPLEX else Level.MEDIUM if points >= _MEDIUM else Level.SIMPLE
    return Complexity(level, parts)


def _parts(story: Story) -> list[Points]:
    text = " ".join((story.title, story.description, *story.criteria))
    words = len(text.split())
    hard = sorted({found.lower() for found in _HARD.findall(text)})
    easy = sorted({found.lower() for found in _EASY.findall(story.title)})
    criteria, needs = len(story.criteria), len(story.depends_on)
    return [
        Points(min(criteria // 2, _MANY_CRITERIA), f"{criteria} acceptance criteria"),
        Points(min(words // 60, 3), f"{words} words"),
        Points(min(2 * len(hard), 6), f"mentions {', '.join(hard[:5])}"),
        Points(1 if needs >= _MANY_NEEDS else 0, f"depends on {needs} other stories"),
        Points(-2 if easy else 0, f"is about {', '.join(easy[:3])}"),
        Points(2 * min(story.attempts, 3), f"attempts so far: {story.attempts}"),
        Points(min(story.review.count, 2), f"reviews so far: {story.review.count}"),
    ]


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
