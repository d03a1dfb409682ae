"""Explains which agent would work on a story: how hard it looks, which model that selects, and the fallbacks."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import Struct

from ralph.config.layers import Settings
from ralph.config.schema import Config
from ralph.core.complexity import Complexity, complexity
from ralph.core.errors import BadData
from ralph.core.fallback import Bench, choose, explain, first_choice
from ralph.core.history import History, fold
from ralph.core.moves import Work
from ralph.core.plan import Mode, Story
from ralph.core.rules import Limits
from ralph.core.select import mode_of
from ralph.journal.records import read
from ralph.run.spec import Launched
from ralph.session.choice import Who, agent_and_model, reviewers_of, routed, who_works
from ralph.session.limits import limits_of
from ralph.session.steps import plan_steps
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path
from ralph.workspace.runs import Standing, last_run


class StandIn(Struct, frozen=True):
    choice: str
    agent: str
    model: str
    in_the_way: str = ""


class Reviewer(Struct, frozen=True):
    name: str
    """Of `review.reviewers`. Empty: there is one."""
    agent: str
    model: str
    why: str


class Route(Struct, frozen=True, kw_only=True):
    story: str
    title: str
    mode: str
    complexity: Complexity
    points: int
    routing: bool
    routed_to: str
    """What routing would choose, whether or not it is in effect."""
    agent: str
    model: str
    why: str
    lineup: tuple[StandIn, ...] = ()
    reviewers: tuple[Reviewer, ...] = ()
    """Who would review what the agent does. Empty: there are no reviews."""


def route(prepared: Launched, story: Story, env: Mapping[str, str]) -> Route:
    settings, config = prepared.settings, prepared.settings.config
    limits = limits_of(settings)
    now = time.time()
    bench = _history(prepared, env).bench
    mode = mode_of(story, review=config.review.enabled)
    chosen_first = first_choice(limits, story, mode)
    work = Work(story.id, mode, choose(bench, limits, story.id, now, mode, chosen_first))
    steps = plan_steps(settings, prepared.ref.root)
    step = next((dict(step.config) for step in steps.work if step.kind == "agent"), {})
    who = who_works(settings, work, story, step)
    found = complexity(story)
    first = who_works(settings, Work(story.id, mode), story, step)

    def named(choice: str) -> tuple[str, str]:
        is_review = mode is Mode.REVIEW
        return _reviewer(choice, first, limits, config) if is_review else _named(choice, first, config)

    return Route(
        story=story.id,
        title=story.title,
        mode=mode.value,
        complexity=found,
        points=found.points,
        routing=config.routing.enabled,
        routed_to=routed(settings, found),
        agent=who.name,
        model=who.model,
        why=who.why,
        lineup=tuple(
            StandIn(choice, *named(choice), why)
            for choice, why in explain(bench, limits, story.id, now, mode, chosen_first)
        ),
        reviewers=tuple(_reviewers(settings, limits, bench, work, story, now)) if config.review.enabled else (),
    )


def _reviewers(
    settings: Settings, limits: Limits, bench: Bench, work: Work, story: Story, now: float
) -> Iterator[Reviewer]:
    if work.mode is not Mode.REVIEW:
        bench = msgspec.structs.replace(bench, authors=bench.authors | {story.id: work.choice})
    for name, first in reviewers_of(settings.config).items() or [("", "")]:
        choice = choose(bench, limits, story.id, now, Mode.REVIEW, first)
        who = who_works(settings, Work(story.id, Mode.REVIEW, choice), story, {})
        yield Reviewer(name, who.name, who.model, who.why)


def _named(choice: str, first: Who, config: Config) -> tuple[str, str]:
    return agent_and_model(config, choice) if choice else (first.name, first.model)


def _reviewer(choice: str, first: Who, limits: Limits, config: Config) -> tuple[str, str]:
    """Where somebody else reviews, the first choice is the agent that works."""
    if choice and choice == limits.reviewer:
        return first.name, first.model
    return _named(choice or limits.worker, first, config)


def _history(prepared: Launched, env: Mapping[str, str]) -> History:
    """Of the active run; a new run starts with every agent available."""
    last = last_run(prepared.ref, env)
    history = History()
    if last is None or last.standing not in (Standing.RUNNING, Standing.PAUSED, Standing.WAITING):
        return history
    try:
        for record in read(journal_path(workspace_state(prepared.ref.root, env), last.run)):
            history = fold(history, record.event, record.t)
    except BadData:
        return History()
    return history
