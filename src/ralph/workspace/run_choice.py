"""Which recorded runs a command line selects: those of the workspace, or of the plan its flags name."""

from __future__ import annotations

import contextlib
import os
from argparse import Namespace
from collections.abc import Mapping
from itertools import islice
from pathlib import Path

from ralph.core.errors import BadData
from ralph.core.events import RunStarted
from ralph.host.places import as_text, workspace_state
from ralph.journal.reading import read
from ralph.journal.runs import find_run, journal_path, list_runs
from ralph.workspace.find import Choice, choose_plan, find_plans, root_of
from ralph.workspace.worktree_plans import worktrees_of


def choice_of(args: Namespace) -> Choice:
    """From flags only: a run may have been started for a plan that the settings do not name."""
    values = (args.layout, args.feature, args.prd, args.ralph_dir)
    return Choice(*(value or "" for value in values))


def chosen_plans(args: Namespace, env: Mapping[str, str]) -> frozenset[str] | None:
    """The paths of the plans that the flags name; None if they name none, which means all plans."""
    choice = choice_of(args)
    if choice == Choice():
        return None
    root = root_of(args, env)
    return frozenset(as_text(ref.path) for ref in find_plans(root, choice) or [choose_plan(root, choice)])


def chosen_runs(args: Namespace, env: Mapping[str, str]) -> list[Path]:
    """The journals, oldest first, with those of runs in worktrees."""
    root = root_of(args, env)
    places = {root: root} | {there: root for _, there in worktrees_of(root, env)}
    found = [(run, place) for place in places for run in list_runs(workspace_state(place, env))]
    journals = {journal_path(workspace_state(place, env), run): place for run, place in sorted(found)}
    if (plans := chosen_plans(args, env)) is None:
        return list(journals)
    here = {path: str(root / os.path.relpath(_plan_of(path), place)) for path, place in journals.items()}
    return [path for path in journals if here[path] in plans]


def chosen_run(args: Namespace, env: Mapping[str, str], wanted: str = "") -> Path:
    """The journal of the run with this ID or unique prefix; of the last run if `wanted` is empty."""
    journals = {path.parent.name: path for path in chosen_runs(args, env)}
    return journals[find_run(Path(), wanted, among=list(journals))]


def _plan_of(journal: Path) -> str:
    with contextlib.suppress(BadData):
        for record in islice(read(journal), 3):
            if isinstance(record.event, RunStarted):
                return record.event.plan
    return ""
