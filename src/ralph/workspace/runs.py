"""Which runs there are: recorded, active, the last of a plan, and what a new run takes over from earlier ones."""

from __future__ import annotations

import contextlib
import os
from argparse import Namespace
from collections.abc import Mapping
from enum import StrEnum
from itertools import islice
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.agent import Limit
from ralph.core.errors import BadData, UsageError
from ralph.core.events import (
    AnyEvent,
    Asked,
    IterationStarted,
    Noted,
    Paused,
    Record,
    RunEnded,
    RunStarted,
    WaitStarted,
)
from ralph.core.history import History, fold
from ralph.core.ports import PlanRef
from ralph.core.rules import Limits
from ralph.core.text import one_line
from ralph.engine.usage_limit import still_to_wait_for
from ralph.host.files import open_state
from ralph.host.locks import Lock
from ralph.journal.records import pick, read
from ralph.journal.run_state import RunState
from ralph.state.locks import is_at_work
from ralph.state.names import PLANS, RUN_LOCK
from ralph.state.places import as_text, plan_state, workspace_state
from ralph.state.runs import (
    RUN_ID,
    copies_of,
    family,
    find_run,
    journal_path,
    last_run_id,
    list_runs,
    plan_in_workspace,
)
from ralph.workspace.find import Choice, choose_plan, find_plans, root_of

_LONGEST_LINE = 16 * 1024 * 1024
_HOUR = 3600.0
_MOST_RUNS = 20
_MARKS = tuple(
    f'"{mark}"'.encode()
    for mark in ("RunStarted", "IterationStarted", "AgentStarted", "AgentEnded", "IterationEnded", "limit")
)


class Standing(StrEnum):
    RUNNING = "running"
    PAUSED = "paused"
    WAITING = "waiting"
    """Waiting, e.g. for a usage limit or the rate limit; `detail` says for what."""
    ENDED = "ended"
    UNFINISHED = "unfinished"
    """It was killed; the next run finishes or undoes what it left open."""
    UNREADABLE = "unreadable"


class LastRun(Struct, frozen=True):
    run: str
    standing: Standing
    started: float | None = None
    seen: float | None = None
    """Time of the last record: the end, if it has ended."""
    reason: str = ""
    detail: str = ""
    until: float | None = None
    """When its wait is over."""


def last_run(ref: PlanRef, env: Mapping[str, str]) -> LastRun | None:
    """How the last run of a plan ended, or that it is active. Never fails, even on a damaged journal."""
    state = plan_state(ref, env)
    if not (run := last_run_id(state)):
        return None
    standing = Standing.RUNNING if is_at_work(state, run) else Standing.UNFINISHED
    try:
        ends = _ends(journal_path(workspace_state(ref.root, env), run))
    except (OSError, msgspec.DecodeError) as error:
        return LastRun(run, Standing.UNREADABLE, detail=f"its journal could not be read: {error}")
    if ends is None:
        return LastRun(run, standing)
    first, last, doing = ends
    if isinstance(last.event, RunEnded):
        return LastRun(run, Standing.ENDED, first.t, last.t, last.event.reason.value, last.event.detail)
    if standing is Standing.RUNNING and isinstance(doing, WaitStarted):
        return LastRun(run, Standing.WAITING, first.t, last.t, detail=doing.why, until=doing.until)
    if standing is Standing.RUNNING and isinstance(doing, Paused):
        standing = Standing.PAUSED
    return LastRun(run, standing, first.t, last.t)


def feedback(ref: PlanRef, env: Mapping[str, str]) -> dict[str, str]:
    """How attempts of earlier runs failed, by story: the next run tells its agents."""
    history = History()
    if run := last_run_id(plan_state(ref, env)):
        with contextlib.suppress(BadData):  # as far as it can be read
            for record in read(journal_path(workspace_state(ref.root, env), run)):
                history = fold(history, record.event, record.t)
    return history.feedback


def _ends(path: Path) -> tuple[Record, Record, AnyEvent | None] | None:
    """The first and the last complete record, and the run's activity. A long journal is not read in full."""
    with open_state(path) as stream:
        first = stream.readline(_LONGEST_LINE)
        size = stream.seek(0, os.SEEK_END)
        span = 65536
        while True:
            start = max(size - span, 0)
            stream.seek(start)
            data = stream.read(size - start)
            lines = data[: data.rfind(b"\n") + 1].splitlines()  # a torn last line is no record
            if start == 0 or len(lines) > 1 or span > _LONGEST_LINE:
                break
            span *= 8
    decoder = msgspec.json.Decoder(Record)
    if not lines:
        return None
    latest = (decoder.decode(line) for line in reversed(lines))
    doing = next((record.event for record in latest if not isinstance(record.event, Asked | Noted)), None)
    return decoder.decode(first), decoder.decode(lines[-1]), doing


class ActiveRun(Struct, frozen=True):
    run: str
    state: Path
    """The plan's folder in the state folder."""
    journal: Path
    worktree: str = ""

    def so_far(self) -> RunState:
        """As far as its journal is readable."""
        state = RunState()
        with contextlib.suppress(BadData):
            for record in read(self.journal):
                state.add(record)
        return state

    def __str__(self) -> str:
        started = self.so_far().started
        name = f" on {one_line(started.name, 40)}" if started and started.name else ""
        return f"{self.run}{name}{' in a worktree' if self.worktree else ''}"


def active_runs(root: Path, choice: Choice, env: Mapping[str, str]) -> list[ActiveRun]:
    """The active runs of all plans, or of the chosen ones, here and in worktrees."""
    chosen = {plan_state(ref, env).name for ref in _plans(root, choice)} if choice != Choice() else None
    found = []
    for copy in copies_of(root, env):
        home = workspace_state(copy, env)
        for state in sorted((home / PLANS).glob("*/")):
            if (chosen is None or state.name in chosen) and (run := _run_of(state)):
                found.append(ActiveRun(run, state, journal_path(home, run), str(copy) if copy != root else ""))
    return found


def _plans(root: Path, choice: Choice) -> list[PlanRef]:
    return find_plans(root, choice) or [choose_plan(root, choice)]  # which says that there is none


def _run_of(state: Path) -> str:
    """The run that holds the plan's lock. Other commands also hold it briefly."""
    lock = Lock(state / RUN_LOCK)
    owner = lock.owner() if lock.is_held() else None
    return owner.run if owner and RUN_ID.fullmatch(owner.run) else ""


def the_active_run(root: Path, choice: Choice, wanted: str, env: Mapping[str, str]) -> ActiveRun:
    """The requested run. With several, the caller must say which."""
    found = active_runs(root, choice, env)
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


def run_to_watch(root: Path, choice: Choice, wanted: str, env: Mapping[str, str]) -> ActiveRun:
    """The named run, else the active one, else the last one."""
    if not wanted and active_runs(root, choice, env):
        return the_active_run(root, choice, "", env)
    states = [workspace_state(copy, env) for copy in copies_of(root, env)]
    homes = {run: home for home in states for run in list_runs(home)}
    if choice != Choice() and not wanted:
        plans = [plan_state(ref, env).name for ref in _plans(root, choice)]
        last = [last_run_id(home / PLANS / plan) for home in states for plan in plans]
        homes = {run: homes[run] for run in last if run in homes}
        if not homes:
            raise UsageError("this plan has no runs yet", hint="`ralph run` starts one")
    run = find_run(sorted(homes), wanted)
    return ActiveRun(run, root, journal_path(homes[run], run))


def run_to_show(args: Namespace, env: Mapping[str, str]) -> Path:
    """The journal of the named run, else of the active one, else of the last one that had an iteration.

    `ralph run` on a finished plan also makes a run, which would hide the one that did the work.
    """
    root, choice = root_of(args, env), choice_of(args)
    if not args.run and not active_runs(root, choice, env):
        worked = (path for path in reversed(chosen_runs(args, env)) if _has_iteration(path))
        if (journal := next(worked, None)) is not None:
            return journal
    return run_to_watch(root, choice, args.run, env).journal


def _has_iteration(journal: Path) -> bool:
    mark = f'"{IterationStarted.__name__}"'.encode()
    return any(isinstance(record.event, IterationStarted) for record in pick(journal, (mark,)))


def choice_of(args: Namespace) -> Choice:
    """From flags only: a run may have been started for a plan that the settings do not name."""
    values = (args.layout, args.feature, args.prd, args.ralph_dir)
    return Choice(*(value or "" for value in values))


def chosen_plans(args: Namespace, env: Mapping[str, str]) -> frozenset[str] | None:
    """The paths of the plans that the flags name; None if they name none, which means all plans."""
    choice = choice_of(args)
    return None if choice == Choice() else frozenset(as_text(ref.path) for ref in _plans(root_of(args, env), choice))


def chosen_runs(args: Namespace, env: Mapping[str, str]) -> list[Path]:
    """The journals of the runs that the command line selects, oldest first, with those of runs in worktrees."""
    root = root_of(args, env)
    found = [(run, copy) for copy in copies_of(root, env) for run in list_runs(workspace_state(copy, env))]
    journals = {journal_path(workspace_state(copy, env), run): copy for run, copy in sorted(found)}
    if (plans := chosen_plans(args, env)) is None:
        return list(journals)
    return [path for path in journals if str(root / _plan_of(path)) in plans]


def chosen_run(args: Namespace, env: Mapping[str, str], wanted: str = "") -> Path:
    """The journal of the run with this ID or unique prefix; of the last run if `wanted` is empty."""
    journals = {path.parent.name: path for path in chosen_runs(args, env)}
    return journals[find_run(list(journals), wanted)]


def _plan_of(journal: Path) -> str:
    """The path of its plan in the workspace."""
    with contextlib.suppress(BadData):
        for record in islice(read(journal), 3):
            if isinstance(record.event, RunStarted):
                return plan_in_workspace(record.event)
    return ""


class Recent(Struct, frozen=True):
    """What the guards of a new run need to know about earlier runs."""

    calls: tuple[float, ...] = ()
    used: tuple[tuple[float, int], ...] = ()
    heard: tuple[Limit, ...] = ()


def recent(state: Path, agent: str, limits: Limits, now: float) -> Recent:
    """The starts and tokens of the last hour, and usage limits of this agent that have not reset since.

    Each run carries over what the previous one left, so the last run has it all; but what an agent reported is known
    only to runs of that agent.
    """
    calls: tuple[float, ...] = ()
    used: tuple[tuple[float, int], ...] = ()
    for number, run in enumerate(reversed(list_runs(state)[-_MOST_RUNS:])):
        history, by = _remembered(journal_path(state, run))
        if number == 0:
            calls = tuple(call for call in history.calls if call > now - _HOUR)
            used = tuple(use for use in history.used if use[0] > now - _HOUR)
        if by == agent:
            return Recent(calls, used, tuple(still_to_wait_for(history, limits, now)))
    return Recent(calls, used)


def recent_of_all(root: Path, env: Mapping[str, str], agent: str, limits: Limits, now: float) -> Recent:
    """Of the workspace and of the worktrees created from it."""
    home, *worktrees = family(root, env)
    found = [recent(state, agent, limits, now) for state in (home, *worktrees[-_MOST_RUNS:])]
    return Recent(
        tuple(sorted({call for one in found for call in one.calls})),
        tuple(sorted({use for one in found for use in one.used})),
        tuple({limit: None for one in found for limit in one.heard}),
    )


def _remembered(path: Path) -> tuple[History, str]:
    history, agent = History(), ""
    for record in pick(path, _MARKS):
        if isinstance(record.event, RunStarted):
            agent = record.event.agent
        history = fold(history, record.event, record.t)
    return history, agent
