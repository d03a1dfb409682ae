"""Where the ledger of a workspace is, which prices apply, and the budget of a run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from ralph.budget.reservation import Run, Till
from ralph.config.price_table import list_prices
from ralph.config.schema import Config
from ralph.core.errors import BadData, RalphError
from ralph.core.ports import PlanRef
from ralph.core.prices import PriceTable
from ralph.core.problems import Place
from ralph.core.spending import Budget
from ralph.host.files import read_bytes
from ralph.host.git.repo import Repo, find_repository, identify
from ralph.host.places import home, workspace_state
from ralph.journal.ledger import Ledger
from ralph.journal.writing import Journal

_LARGEST = 1024 * 1024


def budget_of(config: Config) -> Budget:
    given = config.budget
    return Budget(
        run_usd=given.run_usd,
        story_usd=given.story_usd,
        day_usd=given.day_usd,
        workspace_usd=given.workspace_usd,
        run_tokens=given.run_tokens,
        story_tokens=given.story_tokens,
        day_tokens=given.day_tokens,
        workspace_tokens=given.workspace_tokens,
        least_chance=given.least_chance,
    )


def ledger_of(root: Path, repo: Repo | None, env: Mapping[str, str]) -> Ledger:
    """One for the workspace and all its worktrees: they share the same money."""
    return Ledger(workspace_state(main_root(root, repo), env))


def repo_of(root: Path, env: Mapping[str, str]) -> Repo | None:
    """The repository around a workspace, or None: some commands work without one."""
    try:
        return identify(find_repository(root, None, home(env)))
    except RalphError:
        return None


def main_root(root: Path, repo: Repo | None) -> Path:
    """The workspace that a worktree was created from; else the workspace itself."""
    if repo is None or repo.common_dir == repo.git_dir or repo.common_dir.name != ".git":
        return root
    inside = os.path.relpath(os.path.realpath(root), os.path.realpath(repo.root))
    return root if inside.startswith("..") else repo.common_dir.parent / inside


def prices_of(config: Config, root: Path) -> PriceTable:
    """The list prices, overridden by those of the user's file."""
    if not config.budget.prices:
        return list_prices()
    path = root / config.budget.prices
    source = read_bytes(path, limit=_LARGEST)
    try:
        own = msgspec.yaml.decode(source, type=PriceTable)
    except (msgspec.DecodeError, msgspec.ValidationError) as error:
        raise BadData(
            f"not a valid price file: {error}",
            where=Place(str(path)),
            hint="expected models: {NAME: {input: 2, output: 10}}, in dollars per million tokens; see docs/cost.md",
        ) from None
    sources = own.sources or (config.budget.prices,)
    return msgspec.structs.replace(own, sources=sources).over(list_prices())


def open_till(
    run: str,
    ref: PlanRef,
    repo: Repo,
    config: Config,
    journal: Journal,
    run_agent: Run,
    env: Mapping[str, str],
    clock: Callable[[], float],
    *,
    only: Sequence[str] = (),
) -> Till:
    @cache
    def prices() -> PriceTable:
        return prices_of(config, ref.root)

    if config.budget.prices:
        prices()  # report an invalid file before anything starts
    return Till(
        run,
        plan_name(ref),
        budget_of(config),
        ledger_of(ref.root, repo, env),
        journal,
        run_agent,
        prices,
        clock,
        review=config.review.when == "always",
        acceptance=config.acceptance != "off",
        only=only,
    )


def plan_name(ref: PlanRef) -> str:
    """The same in every worktree."""
    return os.path.relpath(ref.path, ref.root)
