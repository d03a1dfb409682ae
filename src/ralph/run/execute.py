"""One run from start to end: lock, recover, check the repository, loop, clean up."""

from __future__ import annotations

import contextlib
import os
import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from ralph import __version__
from ralph.budget.settings import ledger_of, plan_name, prices_of
from ralph.config.checks import choose, proof_needed
from ralph.config.layers import load
from ralph.core.environment import run_marks
from ralph.core.errors import BadData, SetupError
from ralph.core.events import AgentStarted, AnyEvent, Noted, Recovered, RunEnded, RunStarted
from ralph.core.history import History, fold
from ralph.core.moves import Stop
from ralph.core.permissions import may_line
from ralph.core.plan import Plan, State
from ralph.core.ports import PlanRef
from ralph.core.run_ports import Ask
from ralph.core.text import one_line, plural
from ralph.engine.agent_run import SURVIVED
from ralph.engine.loop import Loop
from ralph.engine.recover import AGENTS_ENDED, ALIVE, find_open, recover
from ralph.engine.run import Control as RunControl
from ralph.host.clocks import SteadyClock
from ralph.host.files import keep_aside, make_folder, read_state, write_text
from ralph.host.git.command import ask as ask_git
from ralph.host.git.locks import clear_stale_locks
from ralph.host.git.refs import mend_packed_refs
from ralph.host.git.repo import Repo
from ralph.host.git.situation import Entry, Kind, Situation, abort_command, phrase, situation
from ralph.host.locks import Lock, Owner
from ralph.host.process.signals import StopSignal
from ralph.host.process.table import ProcessId
from ralph.host.process.tree import become_subreaper, end_left_behind, identify
from ralph.host.process.watchdog import Watchdog
from ralph.journal.ledger import Reset
from ralph.journal.records import Journal, Listener, Newer, cut_torn_tail, read, read_for_recovery
from ralph.journal.sinks.sink import Sinks
from ralph.journal.sinks.table import make_sinks
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.proof.checks import AskBaseline, made_by_checks
from ralph.proof.records import reopen_lost
from ralph.run.context_size import warning
from ralph.run.spec import RunSpec, run_folder
from ralph.run.wiring import make_run
from ralph.session.hook_policy import rights_of
from ralph.setup.ignore_lines import is_only_added
from ralph.state.locks import held_locks
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import LAST_RUN, forget_open_run, journal_path, last_run_id, list_runs, open_run, record_open_run
from ralph.workspace.control import Control
from ralph.workspace.find import store_for
from ralph.workspace.killed_sessions import close_sessions
from ralph.workspace.own_files import Bookkeeping, bookkeeping
from ralph.workspace.retry import CHANGED, failed_stories, listed, open_stories, renew, settings_key
from ralph.workspace.runs import Recent, recent_of_all

_GRACE = 5.0
_MARK = "_RALPH_STATE"
"""Set in the environment of every git process that a run starts."""
_MOST_CHECKS = 20
_MOST_RUNS = 20
_MOST_NOTICES = 20


def execute(
    spec: RunSpec,
    env: Mapping[str, str],
    stop: StopSignal,
    listeners: Sequence[Listener],
    ready: Callable[[Situation, str], str],
    after: Callable[[Stop], None],
    sinks_for: Callable[[], Sinks],
    clock: Callable[[], float] | None = None,
    ask: Ask | None = None,
    ask_baseline: AskBaseline | None = None,
) -> Stop:
    """Run the loop while the plan is locked.

    `ready` prepares the repository (branch, stash) when nothing else can prevent the run, and returns the branch; it
    gets what was recovered. `after` cleans up. `sinks_for` creates the sinks of one run; a killed run that is closed
    here gets its own.
    """
    clock = clock or SteadyClock()
    state = plan_state(spec.ref, env)
    make_folder(state, private=True)
    become_subreaper()
    owner = Owner.here(spec.run)
    # The plan's lock and the working tree's: two runs in one tree would take each other's changes for their own.
    with Lock(state / "run.lock").held_by(owner), Lock(spec.repo.git_dir / "ralph-run").held_by(owner), _marked(state):
        earlier = _close_other(spec, state, env, stop, clock)
        recovered, history = _recover_last(spec, state, env, stop, sinks_for(), clock)
        clear_stale_locks(spec.repo)
        told = "; ".join(filter(None, (earlier, recovered.what if recovered else "")))
        found = situation(spec.repo)
        if not told:  # what was recovered is told by the run
            stop.refuse_to_start()
        branch = ready(found, told)
        plan, notices, renewed = _open_again(spec, env, stop)
        history = History(feedback={story: text for story, text in history.feedback.items() if story not in renewed})
        past = _past(spec, env, clock())
        write_text(state / LAST_RUN, spec.run + "\n")
        record_open_run(spec.repo.root, spec.ref, spec.run, env)
        journal = Journal(journal_path(workspace_state(spec.ref.root, env), spec.run), clock)
        sinks = sinks_for()
        try:
            journal.listen(sinks)
            for listener in listeners:
                journal.listen(listener)
            started = journal.write(_started(spec, plan, branch, history, past))
            history = fold(History(), started.event, started.t)
            for notice in (*notices, *filter(None, (earlier,))):
                journal.write(Noted(notice))
            if recovered is not None:
                journal.write(recovered)
            if heavy := warning(spec.ref, spec.settings, plan, env):
                journal.write(Noted(heavy, warning=True))
            if choose(spec.config, plan, None, "story") and (remark := proof_needed(spec.config, plan)):
                journal.write(Noted(remark))
            alive = journal.path.with_name(ALIVE)
            control = Control(state, spec.run, stop, journal.write_unless_over, alive)
            with Watchdog(spec.run, journal.path.with_name(AGENTS_ENDED)) as watchdog, control as wish:
                journal.listen(lambda record: _follow(watchdog, record.event))
                ended = Loop(
                    make_run(spec, journal, RunControl(stop, clock, wish, ask), env, ask_baseline), history
                ).run()
            forget_open_run(spec.repo.root, env)  # not after an error: its iteration may be open
        finally:
            sinks.close()
            journal.close()
        after(ended)
        return ended


def _follow(watchdog: Watchdog, event: AnyEvent) -> None:
    if isinstance(event, AgentStarted):
        watchdog.follow(ProcessId(event.pid, event.start))


def _open_again(spec: RunSpec, env: Mapping[str, str], stop: StopSignal) -> tuple[Plan, list[str], set[str]]:
    """The plan the run starts with: stories that changed since they were tried are clean, and failed ones are reopened
    if requested. Also returns messages, and the ids of the stories that start clean."""
    store = store_for(spec.ref, env, settings_key(spec.settings))
    why = renew(store)
    notices = [f"{one_line(story, 40)} starts again: {reason}" for story, reason in list(why.items())[:_MOST_NOTICES]]
    notices += reopen_lost(store, spec.ref, spec.repo, env, ours(spec, env).is_ours)
    if not notices:  # nothing was changed
        stop.refuse_to_start()
    plan = store.load().plan
    wanted = [story for story in failed_stories(plan) if spec.reset or story in spec.stories]
    if wanted and (opened := open_stories(store, wanted)):
        plan = store.load().plan
        notices.append(f"retrying failed stories: {listed(opened)}")
    elif spec.reset:
        notices.append("no story has failed: nothing to reset")
    changed = {story for story, reason in why.items() if reason == CHANGED}
    for story in changed:
        ledger_of(spec.ref.root, spec.repo, env).append(Reset(time.time(), plan_name(spec.ref), story), durable=True)
    return plan, notices, changed


@contextlib.contextmanager
def _marked(state: Path) -> Iterator[None]:
    """Mark our git processes, so that they can be recognized after this process is gone."""
    os.environ[_MARK] = str(state)
    try:
        yield
    finally:
        os.environ.pop(_MARK, None)


def _past(spec: RunSpec, env: Mapping[str, str], now: float) -> Recent:
    found = recent_of_all(spec.ref.root, env, spec.config.agent.name, spec.limits, now)
    return msgspec.structs.replace(found, heard=()) if spec.reset else found


def _started(spec: RunSpec, plan: Plan, branch: str, carried: History, past: Recent) -> RunStarted:
    config = spec.config
    limits = spec.limits
    wanted = [story for story in plan.stories if story.is_open and story.id in (spec.stories or (story.id,))]
    me = identify(os.getpid())
    return RunStarted(
        run=spec.run,
        workspace=str(spec.ref.root),
        layout=spec.ref.layout,
        plan=str(spec.ref.path),
        name=plan.name or spec.ref.name,
        pid=os.getpid(),
        start=me.start if me else "",
        host=platform.node(),
        version=__version__,
        agent=config.agent.name,
        model=config.agent.model,
        branch=branch,
        total=len(plan.stories),
        done=plan.count(State.DONE),
        max_iterations=limits.cap(len(wanted)),
        review_cap=config.review.cap,
        limits=limits,
        may=may_line(rights_of(config)),
        checks=tuple(one_line(check.name, 80) for check in choose(config, plan, None, "final")[:_MOST_CHECKS]),
        feedback=carried.feedback,
        calls=past.calls,
        used=past.used,
        heard=past.heard,
    )


def _recover_last(
    spec: RunSpec, state: Path, env: Mapping[str, str], stop: StopSignal, sinks: Sinks, clock: Callable[[], float]
) -> tuple[Recovered | None, History]:
    """Close the plan's last run if it was killed, and take over the failures of its attempts."""
    last, damage = _find_last(spec, state, env)
    path = journal_path(workspace_state(spec.ref.root, env), last) if last else None
    if path is None or not os.path.lexists(path):
        return (Recovered(last, 0, damage) if damage else None), History()
    try:
        records = read_for_recovery(path)
    except Newer as error:
        raise SetupError(
            f"the last run of this plan, {last}, was made by a newer version of Ralph: {error}",
            hint="continue with that version; nothing was changed, and no process was ended",
        ) from None
    except BadData as error:
        # An iteration that is open before the damage may have been settled after it, so nothing is undone.
        return Recovered(last, 0, _set_aside(last, path, f"{damage}{error}")), History()
    _remove_scraps(spec.repo.root, ours(spec, env))
    cut_torn_tail(path)
    history = History()
    for record in records:
        history = fold(history, record.event, record.t)
    carried = History(feedback=history.feedback)
    is_over = any(isinstance(record.event, RunEnded) for record in records)
    if is_over and find_open(record.event for record in records) is None:
        if any(isinstance(record.event, Noted) and record.event.text.startswith(SURVIVED) for record in records):
            _end_processes_of([last])
        return (Recovered(last, 0, damage) if damage else None), carried
    # First: a git process that outlived the run would interfere, and one that was killed has left locks.
    end_left_behind(None, (_MARK, str(state)), _GRACE)
    clear_stale_locks(spec.repo)
    mend_packed_refs(spec.repo)  # git can do nothing else until then
    journal = Journal(path, clock, seq=records[-1].seq if records else 0)
    told: list[AnyEvent] = []
    journal.listen(lambda record: told.append(record.event))
    sinks.catch_up(records)
    journal.listen(sinks)
    try:
        old = RunSpec(run=last, ref=spec.ref, settings=spec.settings, repo=spec.repo)
        make_folder(run_folder(spec.ref, last, env), private=True)
        close_sessions(journal, records, prices_of(spec.settings.config, spec.ref.root))
        what = recover(make_run(old, journal, RunControl(stop, clock), env), records)
    finally:
        journal.close()
    for event in told:
        history = fold(history, event, clock())
    carried = History(feedback=history.feedback)
    what = damage + what
    return (Recovered(last, 0, what) if what else None), carried


def _find_last(spec: RunSpec, state: Path, env: Mapping[str, str]) -> tuple[str, str]:
    """The last run of this plan, and what was wrong with the file that names it. A run's journal names its plan."""
    last = last_run_id(state)
    if last or not os.path.lexists(state / LAST_RUN):
        return last, ""
    home = workspace_state(spec.ref.root, env)
    for run in reversed(list_runs(home)):
        with contextlib.suppress(BadData):
            started = next((record.event for record in read(journal_path(home, run))), None)
            if isinstance(started, RunStarted) and started.plan == str(spec.ref.path):
                return run, f"{state / LAST_RUN} was damaged; the last run of this plan is {run}; "
    owners = [owner for _, owner in held_locks(home)]
    if None not in owners:  # never those of a run that is at work on another plan
        _end_processes_of([run for run in list_runs(home)[-_MOST_RUNS:] if run not in {o.run for o in owners if o}])
    return "", f"{state / LAST_RUN} was damaged, and no journal of this plan is readable: nothing is recovered"


def _set_aside(run: str, journal: Path, why: str) -> str:
    """A journal that cannot be trusted is not acted on. What the run left running is found by its mark."""
    ended = _end_processes_of([run])
    try:
        kept = f"it is kept as {keep_aside(journal).name}"
    except OSError as error:
        kept = f"it could not be moved away: {error.strerror}"
    kept += f"; ended {plural(ended, 'process')}" if ended else ""
    return f"{why}; {kept}; nothing is undone because of it: changed files may be its agent's"


def _end_processes_of(runs: Sequence[str]) -> int:
    marks = [mark for run in runs for mark in run_marks(run)]
    return end_left_behind(None, marks[0], _GRACE, *marks[1:]) if marks else 0


def _close_other(
    spec: RunSpec, state: Path, env: Mapping[str, str], stop: StopSignal, clock: Callable[[], float]
) -> str:
    """Close the run of another plan that was killed in this working tree: later, its rollback would undo our work."""
    found = open_run(spec.repo.root, env)
    if found is None or plan_state(found.ref, env) == state:
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
    sinks = make_sinks(ref, store_for(ref, env).layout.locations(ref), WorkspaceFiles(ref.root), state)
    with Lock(state / "run.lock").held_by(Owner.here("recovery")), _marked(state):
        spec = RunSpec(run="", ref=ref, settings=settings, repo=repo)
        recovered, _ = _recover_last(spec, state, env, stop, sinks, clock)
    sinks.close()
    return recovered.what if recovered else ""


def _remove_scraps(repo: Path, own: Bookkeeping) -> None:
    """Remove temporary files of replacements that were interrupted by a kill: they would stay in the user's tree."""
    for folder in {(repo / name).parent for name in own.files}:
        with contextlib.suppress(OSError):
            for scrap in folder.glob(".*.????????.tmp"):
                replaced = scrap.with_name(scrap.name[1:-13])
                if replaced.relative_to(repo).as_posix() in own.files:
                    scrap.unlink()


def in_the_way(found: Situation, ours: Bookkeeping) -> list[Entry]:
    """The user's uncommitted work: without Ralph's own files, and without untracked output of checks or tools."""
    return [
        entry
        for entry in found.dirty
        if not ours.is_ours(entry.path) and not (entry.kind is Kind.UNTRACKED and ours.is_left_by_tools(entry.path))
    ]


def refuse_unless_ready(found: Situation, ours: Bookkeeping, ref: PlanRef) -> None:
    """Raise a clear error for every state of a repository that a run must not start in. Changes nothing."""
    if found.in_progress:
        raise SetupError(
            f"{phrase(found.in_progress)} is in progress in {ref.root}",
            hint=f"finish it, or end it with `{abort_command(found.in_progress)}`, then run again",
        )
    if found.detached:
        raise SetupError(
            "HEAD is detached: commits made here would not be on any branch",
            hint="`git switch -c NAME` creates a branch here; `ralph run --worktree` works on its own branch",
        )
    if foreign := in_the_way(found, ours):
        listed = "\n".join(f"  {entry.kind.value:<10} {one_line(entry.path, 100)}" for entry in foreign[:20])
        more = f"\n  … and {len(foreign) - 20} more" if len(foreign) > 20 else ""
        raise SetupError(
            f"uncommitted changes in {ref.root}:\n{listed}{more}",
            hint="commit them, or use `ralph run --stash` (`git stash pop` restores them) or `ralph run --worktree`",
        )


def ours(spec: RunSpec, env: Mapping[str, str]) -> Bookkeeping:
    where = store_for(spec.ref, env).layout.locations(spec.ref)
    own = bookkeeping(spec.ref, where, spec.repo.root, spec.config)
    return msgspec.structs.replace(
        own,
        made_by_checks=made_by_checks(plan_state(spec.ref, env)),
        from_init=own.from_init | _ignore_files_of_init(spec),
    )


def _ignore_files_of_init(spec: RunSpec) -> frozenset[str]:
    """The workspace's `.gitignore`, if its only uncommitted lines are those that `ralph init` appends."""
    path = spec.ref.root / ".gitignore"
    if not path.is_relative_to(spec.repo.root) or path.is_symlink():
        return frozenset()
    try:
        now = read_state(path)
    except OSError:
        return frozenset()
    if b"# Ralph: " not in now:
        return frozenset()
    name = path.relative_to(spec.repo.root).as_posix()
    committed = ask_git(spec.repo, "cat-file", "-p", f"HEAD:{name}")
    before = committed.out if committed.code == 0 else b""
    return frozenset({name}) if is_only_added(before, now) else frozenset()
