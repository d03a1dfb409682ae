"""Close a run that was killed, before the next one starts: end its processes, finish or undo its iteration."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ralph.budget.settings import prices_of
from ralph.config.layers import load
from ralph.core.environment import run_marks
from ralph.core.errors import BadData, LockHeld, RalphError, SetupError
from ralph.core.events import AnyEvent, Noted, Recovered, RunEnded, RunStarted
from ralph.core.history import History, fold
from ralph.core.ports import PlanRef
from ralph.core.text import plural
from ralph.core.worker import CANDIDATES
from ralph.engine.agent_run import SURVIVED
from ralph.engine.merge import forget_merged
from ralph.engine.recover import Unmerged, find_open, find_unmerged, recover
from ralph.engine.run import Control
from ralph.host.files import keep_aside, make_folder
from ralph.host.git.locks import clear_stale_locks
from ralph.host.git.merging import keep_ref
from ralph.host.git.refs import repair_packed_refs
from ralph.host.git.repo import Repo, identify
from ralph.host.git.rescue import PREFIX as RESCUE
from ralph.host.locks import Lock, Owner
from ralph.host.process.signals import StopSignal
from ralph.host.process.tree import end_left_behind
from ralph.journal.records import Journal, Newer, cut_torn_tail, read, read_for_recovery
from ralph.journal.sinks.sink import Sinks
from ralph.journal.sinks.table import make_sinks
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.run.confinement import Confinement
from ralph.run.repository import ours
from ralph.run.spec import RunSpec, run_folder
from ralph.run.wiring import make_run
from ralph.state.locks import held_locks, is_at_work
from ralph.state.names import GIT_LOCK, LAST_RUN, RUN_LOCK
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import (
    forget_open_run,
    is_run_of,
    journal_path,
    last_run_id,
    list_runs,
    open_run,
    worktrees_of,
)
from ralph.workspace.find import store_for
from ralph.workspace.killed_sessions import close_sessions
from ralph.workspace.own_files import Bookkeeping

_GRACE = 5.0
_MARK = "_RALPH_STATE"
"""Set in the environment of every git process that a run starts."""
_MOST_RUNS = 20


class Closed(Struct, frozen=True):
    """What became of runs that were killed."""

    elsewhere: str = ""
    """Of another plan in the same working tree."""
    recovered: Recovered | None = None
    queued: tuple[Unmerged, ...] = ()
    """What its workers had accepted and nobody had merged."""
    feedback: dict[str, str] = {}
    """The failures of the last run's attempts, by story."""
    authors: dict[str, str] = {}
    """By story: the choice that did its work, if that was not the first one."""

    @property
    def what(self) -> str:
        return "; ".join(filter(None, (self.elsewhere, self.recovered.what if self.recovered else "")))


def close_killed_runs(
    spec: RunSpec,
    files: WorkspaceFiles,
    env: Mapping[str, str],
    stop: StopSignal,
    clock: Callable[[], float],
    confinement: Confinement | None = None,
) -> Closed:
    """Of this plan, and of another one in the same working tree. The caller holds both locks.

    `confinement`: the sandbox, for hooks of a commit that is made now.
    """
    elsewhere = _close_other(spec, env, stop, clock)
    recovered, history, queued = _recover_last(spec, env, stop, sinks_of(spec.ref, files, env), clock, confinement)
    clear_stale_locks(spec.repo)
    return Closed(elsewhere, recovered, queued, history.feedback, history.bench.authors)


def sinks_of(ref: PlanRef, files: WorkspaceFiles, env: Mapping[str, str]) -> Sinks:
    """The files that show a run; a killed run that is closed gets its own."""
    return make_sinks(ref, store_for(ref, env).layout.locations(ref), files, plan_state(ref, env))


def _close_other(spec: RunSpec, env: Mapping[str, str], stop: StopSignal, clock: Callable[[], float]) -> str:
    """Close the run of another plan that was killed in this working tree: later, its rollback would undo our work."""
    found = open_run(spec.repo.root, env)
    if found is None or plan_state(found.ref, env) == plan_state(spec.ref, env):
        return ""
    what = close_run(found.ref, spec.repo, env, stop, clock) if found.ref.path.exists() else ""
    forget_open_run(spec.repo.root, env)
    return f"{found.ref.name}: {what}" if what else ""


def close_run(
    ref: PlanRef, repo: Repo, env: Mapping[str, str], stop: StopSignal, clock: Callable[[], float] = time.time
) -> str:
    """Close the last run of a plan if it was killed. The caller holds the lock of its working tree."""
    settings = load(root=ref.root, layout=ref.layout, name=None, env=env, flags={})
    state = plan_state(ref, env)
    sinks = sinks_of(ref, WorkspaceFiles(ref.root), env)
    with Lock(state / RUN_LOCK).held_by(Owner.here("recovery")), marked(state):
        spec = RunSpec(run="", ref=ref, settings=settings, repo=repo)
        recovered, *_ = _recover_last(spec, env, stop, sinks, clock)
    sinks.close()
    return recovered.what if recovered else ""


def close_worktrees(ref: PlanRef, env: Mapping[str, str], stop: StopSignal, tell: Callable[[str], None]) -> None:
    """Close runs that were killed in worktrees of this workspace, whatever their plan, and end their agents."""
    for folder, root in worktrees_of(ref.root, env):
        found = open_run(folder, env)
        if found is None or not found.ref.path.is_file() or is_at_work(plan_state(found.ref, env)):
            continue
        try:
            repo = identify(folder)
            with Lock(repo.git_dir / GIT_LOCK).held_by(Owner.here("recovery")):
                what = close_run(found.ref, repo, env, stop)
            forget_open_run(folder, env)
        except LockHeld:  # it is live after all
            continue
        except RalphError as error:
            what = str(error)
        if what:
            tell(f"recovered run {found.run} in the worktree {root}: {what}")


def _recover_last(
    spec: RunSpec,
    env: Mapping[str, str],
    stop: StopSignal,
    sinks: Sinks,
    clock: Callable[[], float],
    confinement: Confinement | None = None,
) -> tuple[Recovered | None, History, tuple[Unmerged, ...]]:
    """Close the plan's last run if it was killed, and take over what it learned about the stories."""
    state = plan_state(spec.ref, env)
    last, damage = _find_last(spec, state, env)
    path = journal_path(workspace_state(spec.ref.root, env), last) if last else None
    if path is None or not os.path.lexists(path):
        return (Recovered(last, 0, damage) if damage else None), History(), ()
    try:
        records = read_for_recovery(path)
    except Newer as error:
        raise SetupError(
            f"the last run of this plan, {last}, was made by a newer version of Ralph: {error}",
            hint="continue with that version; nothing was changed, and no process was ended",
        ) from None
    except BadData as error:
        # An iteration that is open before the damage may have been settled after it, so nothing is undone.
        return Recovered(last, 0, _set_aside(last, path, f"{damage}{error}")), History(), ()
    _remove_scraps(spec.repo.root, ours(spec, env))
    cut_torn_tail(path)
    history = History()
    for record in records:
        history = fold(history, record.event, record.t)
    is_over = any(isinstance(record.event, RunEnded) for record in records)
    if is_over and find_open(record.event for record in records) is None:
        if any(isinstance(record.event, Noted) and record.event.text.startswith(SURVIVED) for record in records):
            end_processes_of([last])
        queued = tuple(one for one in find_unmerged((record.event for record in records), stopped=True) if one.judged)
        return (Recovered(last, 0, damage) if damage else None), history, queued
    # First: a git process that outlived the run would interfere, and one that was killed has left locks.
    end_left_behind(None, (_MARK, str(state)), _GRACE)
    clear_stale_locks(spec.repo)
    repair_packed_refs(spec.repo)  # git can do nothing else until then
    journal = Journal(path, clock, seq=records[-1].seq if records else 0)
    told: list[AnyEvent] = []
    journal.listen(lambda record: told.append(record.event))
    sinks.catch_up(records)
    journal.listen(sinks)
    try:
        old = RunSpec(run=last, ref=spec.ref, settings=spec.settings, repo=spec.repo, is_clone=spec.is_clone)
        make_folder(run_folder(spec.ref, last, env), private=True)
        close_sessions(journal, records, prices_of(spec.settings.config, spec.ref.root))
        what = recover(make_run(old, journal, Control(stop, clock), env, confinement=confinement), records)
    finally:
        journal.close()
    for event in told:
        history = fold(history, event, clock())
    what = damage + what
    forget_merged(spec.repo, last)
    queued = tuple(one for one in find_unmerged(record.event for record in records) if one.queued and one.judged)
    for one in queued:
        if one.queued is not None:
            keep_ref(spec.repo, f"{RESCUE}{last}/{one.started.iteration}", one.queued.commit)
            with contextlib.suppress(RalphError):
                keep_ref(spec.repo, f"{CANDIDATES}{last}/{one.started.iteration}", "", one.queued.commit)
    return (Recovered(last, 0, what) if what else None), history, queued


def _find_last(spec: RunSpec, state: Path, env: Mapping[str, str]) -> tuple[str, str]:
    """The last run of this plan, and what was wrong with the file that names it. A run's journal names its plan."""
    last = last_run_id(state)
    if last or not os.path.lexists(state / LAST_RUN):
        return last, ""
    home = workspace_state(spec.ref.root, env)
    for run in reversed(list_runs(home)):
        with contextlib.suppress(BadData):
            started = next((record.event for record in read(journal_path(home, run))), None)
            if isinstance(started, RunStarted) and is_run_of(started, spec.ref):
                return run, f"{state / LAST_RUN} was damaged; the last run of this plan is {run}; "
    owners = [owner for _, owner in held_locks(home)]
    if None not in owners:  # never those of a run that is at work on another plan
        end_processes_of([run for run in list_runs(home)[-_MOST_RUNS:] if run not in {o.run for o in owners if o}])
    return "", f"{state / LAST_RUN} was damaged, and no journal of this plan is readable: nothing is recovered"


def _set_aside(run: str, journal: Path, why: str) -> str:
    """A journal that cannot be trusted is not acted on. What the run left running is found by its mark."""
    ended = end_processes_of([run])
    try:
        kept = f"it is kept as {keep_aside(journal).name}"
    except OSError as error:
        kept = f"it could not be moved away: {error.strerror}"
    kept += f"; ended {plural(ended, 'process')}" if ended else ""
    return f"{why}; {kept}; nothing is undone because of it: changed files may be its agent's"


def end_processes_of(runs: Sequence[str]) -> int:
    marks = [mark for run in runs for mark in run_marks(run)]
    return end_left_behind(None, marks[0], _GRACE, *marks[1:]) if marks else 0


def _remove_scraps(repo: Path, own: Bookkeeping) -> None:
    """Remove temporary files of replacements that were interrupted by a kill: they would stay in the user's tree."""
    for folder in {(repo / name).parent for name in own.files}:
        with contextlib.suppress(OSError):
            for scrap in folder.glob(".*.????????.tmp"):
                replaced = scrap.with_name(scrap.name[1:-13])
                if replaced.relative_to(repo).as_posix() in own.files:
                    scrap.unlink()


@contextlib.contextmanager
def marked(state: Path) -> Iterator[None]:
    """Mark our git processes, so that they can be recognized after this process is gone."""
    os.environ[_MARK] = str(state)
    try:
        yield
    finally:
        os.environ.pop(_MARK, None)
