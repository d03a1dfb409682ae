"""What is left of the shared budgets, and what the rest of a plan will probably cost. Writes nothing."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.budget.open import budget_of, ledger_of, plan_name, repo_of
from ralph.config.layers import load
from ralph.config.schema import Config
from ralph.core.events import Foreseen
from ralph.core.forecast import Kept, chance, forecast, kept
from ralph.core.ports import PlanRef
from ralph.core.purse import Purse
from ralph.core.spending import MICROS, NOTHING, Room, Scope, micros, rooms, share, story_rooms
from ralph.host.git.repo import Repo
from ralph.workspace.find import OpenPlan
from ralph.workspace.unsettled import elsewhere_in


class Prospect(Struct, frozen=True):
    forecast: Foreseen | None
    """None if no work is left."""
    kept: Kept
    """How accurate the forecasts of finished runs were."""


def settings_of(root: Path, env: Mapping[str, str]) -> Config:
    """Of the workspace, for any of its plans."""
    return load(root=root, layout="", name=None, env=env, flags={}).config


def shared_rooms(config: Config, root: Path, repo: Repo | None, env: Mapping[str, str]) -> list[Room]:
    budget = budget_of(config)
    if not budget.is_shared:
        return []
    book = ledger_of(root, repo, env).refresh()
    found = rooms(budget, NOTHING, elsewhere_in(book, "", time.time()))
    return [room for room in found if room.scope is not Scope.RUN]


def prospect(opened: OpenPlan, repo: Repo | None, env: Mapping[str, str]) -> Prospect:
    config = opened.settings.config
    book = ledger_of(opened.root, repo, env).refresh()
    still = sum(story.is_open for story in opened.plan.stories)
    if not still:
        return Prospect(None, kept(book.held))
    acceptance = config.acceptance != "off"
    seen = forecast(book.samples, still, review=config.review.when == "always", acceptance=acceptance)
    found = list(rooms(budget_of(config), NOTHING, elsewhere_in(book, "", time.time())))
    money = min((room.left for room in found if room.is_money), default=None)
    tokens = min((room.left for room in found if not room.is_money), default=None)
    event = Foreseen(
        stories=still,
        samples=seen.samples,
        iterations=seen.iterations,
        seconds=seen.seconds,
        usd=seen.usd,
        tokens=seen.tokens,
        chance=chance(book.samples, still, money, tokens),
    )
    return Prospect(event, kept(book.held))


def purse_of(ref: PlanRef, config: Config, env: Mapping[str, str]) -> Purse:
    """What a run that starts now would count as spent."""
    if not budget_of(config).is_set:
        return Purse()
    book = ledger_of(ref.root, repo_of(ref.root, env), env).refresh()
    return Purse(stories=book.of_plan(plan_name(ref)), elsewhere=elsewhere_in(book, "", time.time()))


def allowance(ref: PlanRef, config: Config, story: str, env: Mapping[str, str]) -> float:
    """Dollars that the first session of a run may spend; 0 if unlimited."""
    budget, purse = budget_of(config), purse_of(ref, config, env)
    found = [*rooms(budget, purse.run, purse.elsewhere), *story_rooms(budget, purse.of(story) if story else NOTHING)]
    dearest = ledger_of(ref.root, repo_of(ref.root, env), env).refresh().dearest if budget.is_shared else 0
    return (share(found, micros(config.agent.budget_usd) or None, dearest) or 0) / MICROS
