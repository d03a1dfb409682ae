"""Where the ledger of a workspace is, which prices apply, and the budgets in the settings."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ralph.config.prices import PriceTable, list_prices
from ralph.config.schema import Config
from ralph.core.errors import BadData, RalphError
from ralph.core.money import Budget
from ralph.core.ports import PlanRef
from ralph.core.problems import Place
from ralph.host.files import read_bytes
from ralph.host.git.repo import Repo, find_repository, identify
from ralph.journal.ledger import Ledger
from ralph.state.places import home, workspace_state

_LARGEST = 1024 * 1024


def budget_of(config: Config) -> Budget:
    return msgspec.convert(config.budget, Budget, from_attributes=True)


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


def plan_name(ref: PlanRef) -> str:
    """The same in every worktree."""
    return os.path.relpath(ref.path, ref.root)
