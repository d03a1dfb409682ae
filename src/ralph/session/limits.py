"""The rules and limits of a run, from the settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ralph.budget.settings import budget_of
from ralph.config.layers import Kind, Settings
from ralph.config.schema import Config, minimum_grade
from ralph.config.sections import Agent
from ralph.core.fallback import FIRST, OTHER
from ralph.core.ports import Traits
from ralph.core.proof import Grade, Tamper
from ralph.core.review import OnCap
from ralph.core.rules import Limits, OnLimit, OnStuck, Patience, Rules, VerdictRules
from ralph.core.run_ports import MOST_ACCEPTANCE_SESSIONS
from ralph.host.process.start import Allowance
from ralph.sandbox.wall import Quota
from ralph.session.choice import agent_and_model, reviewer_of, reviewers_of, routes_of
from ralph.session.steps import Planned

_JITTER = 30.0
"""Seconds by which a wait for a reset may run over."""
_MOST_LOST_REVIEWS = 3
_REVIEWER = "review"
_DOUBTFUL = 3600.0
"""Seconds until the next session if the reset time that was reported is doubtful."""


def allowance_of(agent: Agent) -> Allowance:
    return Allowance(agent.max_processes, agent.max_memory_mb * 1_000_000, agent.max_file_mb * 1_000_000)


def sandbox_allowance(agent: Agent, quota: Quota, folders: Sequence[Path]) -> Allowance:
    """In a sandbox its own limits hold; one that the agent has besides can be lower."""
    own = allowance_of(agent)

    def lower(one: int, other: int) -> int:
        return min(filter(None, (one, other)), default=0)

    return Allowance(
        processes=lower(own.processes, quota.processes),
        memory=lower(own.memory, quota.memory_mb * 1_000_000),
        file_size=lower(own.file_size, quota.disk_mb * 1_000_000),
        cpu=quota.cpu_seconds,
        disk=quota.disk_mb * 1_000_000,
        folders=tuple(folders),
        is_watched_only=True,
        settings="sandbox.limits.{}",
    )


def rules_of(settings: Settings, traits: Traits, limits: Limits, steps: Planned) -> Rules:
    config = settings.config
    verdict = VerdictRules(
        minimum=Grade(minimum_grade(config)),
        may_review=config.review.enabled,
        tamper=Tamper(config.tamper),
        review=config.review.when == "always",
        review_cap=config.review.cap,
        on_cap=OnCap(config.review.on_cap),
        on_stalemate=OnCap(config.review.on_stalemate),
        reviewers=config.review.reviewers,
        promises_all=traits.promises_all,
        claim_is_implied=not traits.claims,
    )
    return Rules(
        limits=limits,
        verdict=verdict,
        patience=Patience(total=config.timeout or None, idle=config.idle_timeout or None),
        commits=steps.commits,
        setup_markers=steps.markers,
    )


def limits_of(
    settings: Settings, *, once: bool = False, stories: tuple[str, ...] = (), exam_only: bool = False
) -> Limits:
    config = settings.config
    attempts, reviews = config.max_loops_per_task, config.review.cap * max(len(config.review.reviewers), 1)
    attempts += MOST_ACCEPTANCE_SESSIONS if attempts and config.acceptance != "off" else 0
    allowed = config.max_allowed_iterations
    if not config.max_iterations and settings.origin("max_allowed_iterations").kind in (Kind.DEFAULT, Kind.PROFILE):
        allowed = 0  # the layout's default bounds a number the user set, not what the plan needs
    chosen = {"cap": "review.on_cap", "stalemate": "review.on_stalemate"}
    return Limits(
        open_findings_at=tuple(
            where
            for where, key in chosen.items()
            if settings.value(key) == "approve" and settings.origin(key).kind not in (Kind.DEFAULT, Kind.PROFILE)
        ),
        max_iterations=min(config.max_iterations, allowed) if allowed else config.max_iterations,
        max_allowed=allowed,
        per_story=attempts + (reviews if config.review.enabled else 0) if attempts else 0,
        keeps_unproven=not config.review.enabled and minimum_grade(config) != "unproven",
        stories=stories,
        exam_only=exam_only,
        same_only=True,
        retry_rounds=config.circuit_breaker.retry_rounds,
        max_attempts=config.max_loops_per_task,
        no_progress=config.circuit_breaker.no_progress_threshold,
        same_error=config.circuit_breaker.same_error_threshold,
        on_stuck=OnStuck(config.circuit_breaker.on_stuck),
        crash_loop=config.circuit_breaker.crash_loop_threshold,
        rate_per_hour=config.rate_limit_per_hour,
        tokens_per_hour=config.token_limit_per_hour,
        max_transport=config.transport_retries,
        max_time=config.max_run_time,
        on_limit=OnLimit(config.on_limit),
        limit_share=config.limit_share,
        jitter=_JITTER,
        doubtful_wait=_DOUBTFUL,
        once=once,
        budget=budget_of(config),
        fallback=config.fallback,
        **_choices(settings),
        max_lost_reviews=_MOST_LOST_REVIEWS,
        fallback_after=config.fallback_after,
        fallback_cooldown=config.fallback_cooldown,
    )


def _choices(settings: Settings) -> dict[str, Any]:
    """Who else than the first choice may work, and who reviews."""
    config, routes = settings.config, routes_of(settings)
    reviewer, worker = _reviewer(config, routes)
    named = reviewers_of(config) if config.review.enabled else {}
    others = dict.fromkeys(filter(None, (*config.fallback, *routes.values(), *named.values())))
    agents = {choice: agent_and_model(config, choice)[0] for choice in others}
    if reviewer:
        agents[reviewer] = reviewer_of(config).name
    return {
        "reviewer": reviewer,
        "worker": worker,
        "routes": routes,
        "reviewers": named if any(named.values()) else {},
        "reviewed_by_other": config.review.enabled and config.review.agent == OTHER,
        "agents": {FIRST: config.agent.name} | agents if agents else {},
    }


def _reviewer(config: Config, routes: dict[str, str]) -> tuple[str, str]:
    """The names of a reviewer that is not the agent that works, and of that agent."""
    if not config.review.enabled:
        return "", ""
    reviewer, worker = reviewer_of(config), config.agent
    name = f"{worker.name}/{worker.model}" if worker.model else worker.name
    if config.review.agent == OTHER:
        return "", name
    if (reviewer.name, reviewer.model) == (worker.name, worker.model):
        return "", name if any(reviewers_of(config).values()) else ""
    for choice in (*config.fallback, *routes.values()):
        if agent_and_model(config, choice) == (reviewer.name, reviewer.model):
            return choice, name
    return _REVIEWER, name
