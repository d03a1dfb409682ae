"""The active runs on a workspace's plans, here and in its worktrees: the ones commands can reach."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import BadData, UsageError
from ralph.core.text import one_line
from ralph.host.locks import Lock
from ralph.host.places import workspace_state
from ralph.journal.reading import read
from ralph.journal.run_state import RunState
from ralph.journal.runs import NEW_RUN_ID, find_run, journal_path, list_runs
from ralph.workspace.active_runs import LOCK
from ralph.workspace.find import Choice, choose_plan, find_plans, plan_state
from ralph.workspace.last_run import last_run_id
from ralph.workspace.worktree_plans import worktrees_of


class AtWork(Struct, frozen=True):
    run: str
    state: Path
    """The plan's folder in the state folder."""
    journal: Path
    worktree: str = ""

    def so_far(self) -> RunState:
        """As far as its journal is readable."""
        told = RunState()
        with contextlib.suppress(BadData):
            for record in read(self.journal):
                told.add(record)
        return told

    def __str__(self) -> str:
        started = self.so_far().started
        name = f" on {one_line(started.name, 40)}" if started and started.name else ""
        return f"{self.run}{name}{' in a worktree' if self.worktree else ''}"


def runs_at_work(root: Path, choice: Choice, env: Mapping[str, str]) -> list[AtWork]:
    """The active runs of all plans, or of the chosen ones."""
    chosen: set[str] | None = None
    if choice != Choice():
        plans = find_plans(root, choice) or [choose_plan(root, choice)]  # which says that there is none
        chosen = {plan_state(ref, env).name for ref in plans}
    found = []
    for place in (root, *(root for _, root in worktrees_of(root, env))):
        home = workspace_state(place, env)
        for state in sorted((home / "plans").glob("*/")):
            if (chosen is None or state.name in chosen) and (run := _run_of(state)):
                worktree = str(place) if place != root else ""
                found.append(AtWork(run, state, journal_path(home, run), worktree))
    return found


def _run_of(state: Path) -> str:
    """The run that holds the plan's lock. Other commands also hold it briefly."""
    lock = Lock(state / LOCK)
    owner = lock.owner() if lock.is_held() else None
    return owner.run if owner and NEW_RUN_ID.fullmatch(owner.run) else ""


def homes_of(root: Path, env: Mapping[str, str]) -> list[Path]:
    """The state folders of a workspace and of its worktrees."""
    return [workspace_state(place, env) for place in (root, *(root for _, root in worktrees_of(root, env)))]


def the_run(root: Path, choice: Choice, wanted: str, env: Mapping[str, str]) -> AtWork:
    """The requested run. With several, the caller must say which."""
    found = runs_at_work(root, choice, env)
    named = [each for each in found if each.run.startswith(wanted)]
    if len(named) == 1:
        return named[0]
    if not found:
        which = "this plan" if choice != Choice() else one_line(str(root), 100)
        raise UsageError(f"no active run on {which}", hint="`ralph run` starts one, `ralph runs` lists earlier ones")
    listed = "; ".join(map(str, named or found))
    if not named:
        raise UsageError(
            f"no active run {one_line(repr(wanted), 60)}; active: {listed}", hint="give an ID or a unique prefix of one"
        )
    raise UsageError(f"{len(named)} active runs: {listed}", hint="choose one with --run, -f or --prd")


def find_watched(root: Path, choice: Choice, wanted: str, env: Mapping[str, str]) -> AtWork:
    """The run to watch: the named one, else the active one, else the last one."""
    if not wanted and runs_at_work(root, choice, env):
        return the_run(root, choice, "", env)
    homes = {run: home for home in homes_of(root, env) for run in list_runs(home)}
    if choice != Choice() and not wanted:
        plans = [plan_state(ref, env).name for ref in find_plans(root, choice) or [choose_plan(root, choice)]]
        last = [last_run_id(home / "plans" / plan) for home in homes_of(root, env) for plan in plans]
        homes = {run: homes[run] for run in last if run in homes}
        if not homes:
            raise UsageError("this plan has no runs yet", hint="`ralph run` starts one")
    run = find_run(root, wanted, sorted(homes))
    return AtWork(run, root, journal_path(homes[run], run))
