"""From a command line to a run: choose the plan and the repository, check that all is ready, run, clean up."""

from __future__ import annotations

import os
import platform
import shlex
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph import __version__
from ralph.agents.registry import agent as find_agent
from ralph.budget.settings import ledger_of, plan_name
from ralph.config.checks import choose, proof_needed
from ralph.config.trust import Verdict
from ralph.core.agent_traits import login_of, traits_of
from ralph.core.errors import LockHeld, PlanError, RalphError, SetupError, UsageError
from ralph.core.events import AgentStarted, AnyEvent, Noted, RunStarted
from ralph.core.history import History, fold
from ralph.core.moves import Reason, Stop
from ralph.core.permissions import may_line
from ralph.core.plan import Plan, State
from ralph.core.ports import Session
from ralph.core.run_ports import Ask
from ralph.core.text import one_line
from ralph.core.trace_context import TraceContext
from ralph.engine.loop import Loop
from ralph.engine.recover import Unmerged
from ralph.engine.run import Control, Run
from ralph.host.clocks import SteadyClock
from ralph.host.files import make_folder, write_text
from ralph.host.git.situation import situation
from ralph.host.locks import Lock, Owner
from ralph.host.process.signals import StopSignal
from ralph.host.process.table import ProcessId
from ralph.host.process.tree import adopt_orphans, identify
from ralph.host.process.watchdog import Watchdog
from ralph.journal.ledger import Reset
from ralph.journal.records import Journal, Listener, pick
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.plans.lint import unwritten
from ralph.proof.checks import AskBaseline
from ralph.proof.records import reopen_lost
from ralph.review.material import refuse_unknown_reviewers
from ralph.run.clones import anchored, bring_back, open_clone
from ralph.run.clones import why_not as why_no_clone
from ralph.run.confinement import Confinement, choose_sandbox, confined, inside, sandbox_line
from ralph.run.context_size import warning
from ralph.run.finish import Pusher, finish_run
from ralph.run.recovery import Closed, close_killed_runs, close_worktrees, marked, sinks_of
from ralph.run.repository import make_ready, ours
from ralph.run.spec import Launched, Options, RunSpec
from ralph.run.tracing import trace_of, traced
from ralph.run.wiring import make_run
from ralph.run.worktrees import open_worktree, unfinished_worktree, unused_worktree
from ralph.sandbox.choice import Chosen
from ralph.session.choice import named_agents
from ralph.session.hook_policy import rights_of
from ralph.session.steps import plan_steps
from ralph.state.clones import Clone, has_more, read_clone, users_own
from ralph.state.names import AGENTS_ENDED, ALIVE, GIT_LOCK, LAST_RUN, RUN_LOCK
from ralph.state.places import home, plan_state, workspace_state
from ralph.state.runs import forget_open_run, journal_path, moved_to, new_run_id, record_open_run
from ralph.state.streams import main_workspace, stream_around, stream_folder, stream_lock, stream_name
from ralph.workspace.control import Control as RequestedControl
from ralph.workspace.control import carry_over
from ralph.workspace.find import find_repo, open_ref, store_for
from ralph.workspace.plan_edit import find_story
from ralph.workspace.runs import Recent, recent_of_all
from ralph.workspace.stuck_stories import CHANGED, failed_stories, listed, open_stories, renew, settings_key
from ralph.workspace.trust import ensure_trusted, gather

Tell = Callable[[str], None]

_MOST_CHECKS = 20
_MOST_NOTICES = 20


def prepare_spec(args: Namespace, env: Mapping[str, str], extra_env: Mapping[str, str] | None) -> Launched:
    ref, settings = open_ref(args, env, extra_env)
    plan = store_for(ref, env).load().plan
    _, problem, hint = unwritten(plan)
    if problem:
        raise PlanError(f"{ref.path.relative_to(ref.root)}: {problem}", hint=hint)
    return Launched(
        ref=ref,
        settings=settings,
        plan=plan,
        options=Options(
            once=args.once,
            stories=_named(plan, getattr(args, "stories", ())),
            exam=getattr(args, "exam_only", False),
            stash=args.stash,
            worktree=args.worktree,
            reset=args.reset_circuit,
            allow_broken_checks=getattr(args, "allow_broken_checks", False),
        ),
    )


def _named(plan: Plan, stories: Sequence[str]) -> tuple[str, ...]:
    """The stories of `--story`. One that depends on an open story outside the list is an error: it can never start."""
    named = {story.id: story for story in (find_story(plan, name) for name in stories)}
    for story in named.values():
        waits = [name for name in story.depends_on if (other := plan.story(name)) and not other.is_done]
        if not story.is_done and (missing := [name for name in waits if name not in named]):
            more = " ".join(f"--story {name}" for name in missing[:5])
            raise UsageError(
                f"story {one_line(story.id, 60)} depends on {', '.join(missing[:5])} (not done yet)",
                hint=f"add them ({more}), or finish them first",
            )
    return tuple(named)


def agree(
    prepared: Launched,
    env: Mapping[str, str],
    *,
    trust: bool,
    ask: Callable[[Verdict], bool] | None,
    tell: Tell,
) -> None:
    """Whether the commands of the workspace may run. Asked before the live view and the signal handler start: the view
    would draw over the question, and the handler would keep Ctrl-C from cancelling it."""
    ref = users_own(prepared.ref, env)
    commands = gather(ref.root, prepared.settings, [(ref.path, prepared.plan)])
    ensure_trusted(ref.root, commands, env, flag=trust, ask=ask, report=tell)


class Caller(Struct, frozen=True, kw_only=True):
    """What the command gives a run: the environment, the signal to stop, the views, and how to ask and tell."""

    env: Mapping[str, str]
    stop: StopSignal
    tell: Tell
    listeners: Sequence[Listener] = ()
    ask: Ask | None = None
    ask_baseline: AskBaseline | None = None


def launch(prepared: Launched, caller: Caller) -> Stop:
    """Run a plan whose commands are trusted."""
    _refuse_what_cannot_start(prepared, caller.env)
    _warn_of_logins(prepared, caller)
    if prepared.options.once and prepared.settings.config.parallel > 1:
        caller.tell("--once runs one iteration: it uses no workers")
    chosen = choose_sandbox(prepared.settings, caller.env, caller.tell)
    prepared = msgspec.structs.replace(prepared, settings=inside(prepared.settings, chosen))
    spec, branch, clone = _place(prepared, caller, chosen)
    files = WorkspaceFiles(spec.ref.root)
    ended: Stop | None = None
    try:
        with traced(spec, caller.env, caller.tell) as tracing, _notifier(spec, caller) as news:
            ended = _locked(spec, prepared.plan, caller, files, [*tracing, *news], chosen, clone)
        return ended
    finally:
        if branch:
            carry_over(plan_state(spec.ref, caller.env), plan_state(prepared.ref, caller.env))
        if branch and not _has_agents(spec, caller.env):
            here = find_repo(prepared.ref, prepared.settings, caller.env)
            for line in unused_worktree(here, spec.repo, branch, ended):
                caller.tell(line)
        if clone is not None:
            user = moved_to(spec.ref, Path(clone.workspace))
            for line in bring_back(user, caller.env, why_not=_why_not_advanced(spec, ended), written=files.written):
                caller.tell(line)
        for failure in files.failures:
            caller.tell(failure)


def _why_not_advanced(spec: RunSpec, ended: Stop | None) -> str:
    """Why the user's checkout does not get what the clone has. Empty: all of it was accepted."""
    if spec.config.workspace == "clone":
        return "it was left alone (workspace: clone)"
    if ended is None or ended.reason is Reason.SHARED_TREE:  # the clone may have commits that nobody accepted
        return "it was left alone, because the clone may have commits that were not accepted"
    return ""


def _refuse_what_cannot_start(prepared: Launched, env: Mapping[str, str]) -> None:
    """Report a missing prompt, agent or reviewer and a wrong step before anything starts."""
    if env.get("RALPH_LOOP") == "1":
        raise SetupError("an agent in a loop cannot start another loop", hint="unset RALPH_LOOP if this is intended")
    ref, settings = prepared.ref, prepared.settings
    if prepared.options.worktree and settings.config.parallel > 1 and not prepared.options.once:
        raise UsageError(
            f"--worktree and {settings.config.parallel} workers exclude each other",
            hint="leave out --worktree: workers have clones, and your checkout is left alone until the end; or use "
            "--parallel 1",
        )
    prompt, review = settings.config.prompt, settings.config.review
    if prompt and not (ref.root / prompt).is_file():
        raise UsageError(
            f"the prompt file {one_line(prompt, 200)} does not exist",
            hint="name an existing file with -p, or leave out -p",
        )
    if settings.config.on:
        from ralph.run.cluster import require_cluster

        if prepared.options.once:
            raise UsageError("--once works on this machine, not on a cluster", hint="leave out --once or --on")
        require_cluster(settings.config.on, env)
    find_agent(settings.config.agent.name).find(probe(prepared), env.get("PATH", ""))
    if review.enabled:
        refuse_unknown_reviewers(review.reviewers, ref.root)
    for name, key in named_agents(settings.config).items():
        if key not in ("agent.name", "fallback"):  # a run can do without a fallback
            command = review.command if key == "review.agent" else ()
            find_agent(name).find(msgspec.structs.replace(probe(prepared), command=command), env.get("PATH", ""))
    plan_steps(settings, ref.root)


def _warn_of_logins(prepared: Launched, caller: Caller) -> None:
    """Judged without the network. A command line of the user's own may log in by itself."""
    config = prepared.settings.config
    for name, key in named_agents(config).items():
        if (config.agent.command and name == config.agent.name) or (config.review.command and key == "review.agent"):
            continue
        agent = find_agent(name)
        state = login_of(agent, caller.env, home(caller.env))
        if state.is_known and not state.by:
            how = traits_of(agent).log_in
            caller.tell(f"{agent.TITLE} does not appear to be logged in{f': {how}' if how else ''}")


def probe(prepared: Launched) -> Session:
    config = prepared.settings.config.agent
    script = prepared.ref.root / config.script if config.script else None
    return Session(prompt="", cwd=prepared.ref.root, command=config.command, script=script)


def _place(prepared: Launched, caller: Caller, chosen: Chosen) -> tuple[RunSpec, str, Clone | None]:
    """The run in the workspace, in a clone or, with `--worktree`, in a worktree, and the branch of a new worktree."""
    ref, settings, env = prepared.ref, prepared.settings, caller.env
    run = new_run_id(time.time())
    repo = find_repo(ref, settings, env)
    close_worktrees(ref, env, caller.stop, caller.tell)
    name = stream_name(ref)
    if stream_around(ref.root) is None and stream_folder(ref.root, name).is_dir():
        caller.tell(f"stream {name} has this plan too: `ralph stream build {name}` works there, and not on this branch")
    spec = RunSpec(
        run=run,
        ref=ref,
        settings=settings,
        repo=repo,
        options=prepared.options,
        sandbox=sandbox_line(settings, chosen),
        trace=trace_of(run, env, caller.tell),
    )
    if not prepared.options.worktree:
        if not wants_clone(spec, chosen, env, caller.tell):
            return spec, "", None
        opened = open_clone(spec, prepared.plan, env, caller.tell)
        settings = msgspec.structs.replace(settings, config=anchored(settings.config, opened.clone))
        spec = msgspec.structs.replace(spec, ref=opened.ref, repo=opened.repo, settings=settings, is_clone=True)
        return spec, "", opened.clone
    unfinished = unfinished_worktree(ref, repo, env)
    ref, repo, branch = unfinished or open_worktree(ref, repo, run, env)
    carry_over(plan_state(prepared.ref, env), plan_state(ref, env))
    caller.tell(f"{'continuing' if unfinished else 'working'} in {ref.root} on branch {branch}")
    if unfinished:
        remove = f"git worktree remove --force {shlex.quote(str(repo.root))}"
        caller.tell(f"to start over instead: `{remove}`, then run again")
    caller.tell(f"`ralph log -d {shlex.quote(str(ref.root))}` shows the log, `git merge {branch}` merges the work")
    return msgspec.structs.replace(spec, ref=ref, repo=repo), "" if unfinished else branch, None


def wants_clone(spec: RunSpec, chosen: Chosen, env: Mapping[str, str], tell: Tell) -> bool:
    """Whether the agent works in a clone. Raises SetupError if it has to and cannot."""
    wanted = spec.config.workspace
    if spec.is_parallel:
        wanted = "clone"  # work is merged where nobody else works
    state = plan_state(spec.ref, env)
    if stream_around(spec.ref.root) and spec.is_parallel:
        tell("a stream has one worker; `parallel` has no effect here")
    if stream_around(spec.ref.root):
        return False  # it is a worktree of its own
    if (known := read_clone(state)) is not None and has_more(known, state, env):
        return True  # its work is not in the checkout yet
    if wanted == "in-place" or (wanted == "auto" and (chosen.backend is None or not chosen.backend.MOUNTS)):
        return False
    why = why_no_clone(spec.ref, spec.repo, spec.config)
    if why and wanted == "clone":
        if spec.is_parallel:
            raise SetupError(f"workers need a clone each, and none can be made: {why}", hint="use --parallel 1")
        raise SetupError(f"no clone can be made: {why}", hint="use --workspace in-place")
    if why:
        tell(f"the agent works in your checkout: {why}")
    return not why


def _has_agents(spec: RunSpec, env: Mapping[str, str]) -> bool:
    journal = journal_path(workspace_state(spec.ref.root, env), spec.run)
    return any(isinstance(record.event, AgentStarted) for record in pick(journal, [b'"AgentStarted"']))


@contextmanager
def _notifier(spec: RunSpec, caller: Caller) -> Iterator[list[Listener]]:
    """The notifier for users who are not watching. Imported only if notifications are configured."""
    config = spec.config.notify
    if not (config.desktop or config.webhook or config.command or config.apprise):
        yield []
        return
    from ralph.notify.channels import channels
    from ralph.run.notifications import Notifier

    with Notifier(channels(config, spec.ref.root, caller.env), config, caller.tell, caller.stop) as notifier:
        yield [notifier]


def _locked(
    spec: RunSpec,
    plan: Plan,
    caller: Caller,
    files: WorkspaceFiles,
    news: Sequence[Listener],
    chosen: Chosen,
    clone: Clone | None,
) -> Stop:
    """Close a killed run, prepare the repository, run the loop and clean up, while nothing else may touch the plan."""
    env, stop, tell = caller.env, caller.stop, caller.tell
    clock = SteadyClock()
    state = plan_state(spec.ref, env)
    make_folder(state, private=True)
    adopt_orphans()
    owner = Owner.here(spec.run)
    target = clone.target if clone else ""
    shown = target if spec.config.workspace != "clone" else ""
    pusher = [Pusher(spec.repo, env, tell, stop, target)] if spec.config.push == "after-story" else []
    with (
        _all_locks(spec, state, owner, env),
        marked(state),
        confined(spec, chosen, clone, env, tell) as confinement,
    ):
        closed = close_killed_runs(spec, files, env, stop, clock, confinement)
        found = situation(spec.repo)
        if not closed.what:  # what was recovered is told by the run
            stop.refuse_to_start()
        try:
            branch = make_ready(spec, plan, found, env, tell)
        except RalphError:
            if closed.what:  # no journal of this run will say it
                tell(f"recovered: {closed.what}")
            raise
        if confinement is not None:
            confinement.set_up()
        listeners: list[Listener] = [*caller.listeners, *pusher, *news]
        ended = _journaled(spec, shown or branch, closed, caller, files, listeners, clock, confinement, clone, chosen)
        finish_run(spec, ended, env, tell)
        for push in pusher:
            push.finish(ended)
        return ended


@contextmanager
def _all_locks(spec: RunSpec, state: Path, owner: Owner, env: Mapping[str, str]) -> Iterator[None]:
    """The plan's lock, the working tree's (two runs in one tree would take each other's changes for their own), and the
    lock of the plan's stream, if there is one."""
    own = users_own(spec.ref, env)  # a clone has no streams
    root, name = main_workspace(own.root), stream_name(own)
    paths = [state / RUN_LOCK, spec.repo.git_dir / GIT_LOCK]
    if (folder := stream_around(own.root)) is not None:
        name = folder.name
    if stream_folder(root, name).is_dir():
        paths.append(stream_lock(root, name))
    with ExitStack() as stack:
        for path in paths:
            try:
                stack.enter_context(Lock(path).held_by(owner))
            except LockHeld as error:  # seed 000: "Another agent is running. Use stream mode for parallel builds."
                streams = "`ralph stream new` lets another plan run at the same time, in a worktree of its own"
                raise LockHeld(str(error), hint=f"{error.hint}; {streams}") from None
        yield


def _journaled(
    spec: RunSpec,
    branch: str,
    closed: Closed,
    caller: Caller,
    files: WorkspaceFiles,
    listeners: Sequence[Listener],
    clock: Callable[[], float],
    confinement: Confinement | None,
    clone: Clone | None,
    chosen: Chosen,
) -> Stop:
    """Open the journal with all that listens to it, then run the loop."""
    env, stop, state = caller.env, caller.stop, plan_state(spec.ref, caller.env)
    plan, notices, renewed = _reopen_stories(spec, env, stop)
    feedback = {story: text for story, text in closed.feedback.items() if story not in renewed}
    past = _past(spec, env, clock())
    write_text(state / LAST_RUN, spec.run + "\n")
    record_open_run(spec.repo.root, spec.ref, spec.run, env)
    journal = Journal(journal_path(workspace_state(spec.ref.root, env), spec.run), clock)
    sinks = sinks_of(spec.ref, files, env)
    try:
        journal.listen(sinks)
        for listener in listeners:
            journal.listen(listener)
        known = msgspec.structs.replace(closed, feedback=feedback)
        started = journal.write(_started(spec, plan, branch, known, past, clone.workspace if clone else ""))
        for event in _notes(spec, plan, notices, closed, env):
            journal.write(event)
        alive = journal.path.with_name(ALIVE)
        control = RequestedControl(state, spec.run, stop, journal.write_unless_over, alive)
        with Watchdog(spec.run, journal.path.with_name(AGENTS_ENDED)) as watchdog, control as wish:
            if not spec.is_parallel:  # workers have their own
                journal.listen(lambda record: _follow(watchdog, record.event))
            if confinement is not None:
                confinement.write = journal.write
            wishes = Control(stop, clock, wish, caller.ask)
            run = make_run(spec, journal, wishes, env, caller.ask_baseline, confinement)
            history = fold(History(), started.event, started.t)
            ended = _loop(spec, run, history, clone, caller, chosen, closed.queued).run()
        forget_open_run(spec.repo.root, env)  # not after an error: its iteration may be open
    finally:
        sinks.close()
        journal.close()
    return ended


def _loop(
    spec: RunSpec,
    run: Run,
    history: History,
    clone: Clone | None,
    caller: Caller,
    chosen: Chosen,
    unmerged: Sequence[Unmerged],
) -> Loop:
    if not spec.is_parallel or clone is None:
        return Loop(run, history)
    from ralph.budget.run_budget import RunBudget
    from ralph.engine.parallel import ParallelLoop
    from ralph.engine.workers import QueueRules
    from ralph.run.crew import LocalCrew
    from ralph.run.past_events import PastEvents
    from ralph.run.users_commits import UsersCommits

    config = spec.config
    rules = QueueRules(
        workers=config.parallel,
        batch=config.queue.batch,
        speculate=config.queue.speculate,
        returns=config.queue.returns,
        is_merge=config.queue.method == "merge",
    )
    provers = min(1 + config.queue.speculate, config.parallel)
    sizes = {"size": config.parallel, "provers": provers}
    if config.on:
        from ralph.run.ray_crew import RayCrew

        crew: LocalCrew = RayCrew(spec, clone, caller.env, caller.stop, chosen, **sizes, tell=caller.tell)
    else:
        crew = LocalCrew(spec, clone, caller.env, caller.stop, chosen, **sizes)
    crew.warm_up(sum(story.is_open for story in run.plan.load().plan.stories))
    budget = run.agents.run
    assert isinstance(budget, RunBudget)
    users_commits = UsersCommits(spec.ref, spec.repo, caller.env)
    earlier = PastEvents(spec.ref, spec.run, caller.env)
    loop = ParallelLoop(run, history, crew, budget, spec.repo, rules, users_commits, earlier)
    loop.take_over(unmerged)
    return loop


def _notes(
    spec: RunSpec, plan: Plan, notices: Sequence[str], closed: Closed, env: Mapping[str, str]
) -> Iterator[AnyEvent]:
    """What the journal says before the first decision."""
    yield from map(Noted, filter(None, (*notices, closed.elsewhere)))
    if closed.recovered is not None:
        yield closed.recovered
    if heavy := warning(spec.ref, spec.settings, plan, env):
        yield Noted(heavy, warning=True)
    if choose(spec.config, plan, None, "story") and (remark := proof_needed(spec.config, plan)):
        yield Noted(remark)


def _follow(watchdog: Watchdog, event: AnyEvent) -> None:
    if isinstance(event, AgentStarted):
        watchdog.follow(ProcessId(event.pid, event.start))


def _reopen_stories(spec: RunSpec, env: Mapping[str, str], stop: StopSignal) -> tuple[Plan, list[str], set[str]]:
    """The plan the run starts with: stories that changed since they were tried are clean, and failed ones are reopened
    if requested. Also returns messages, and the ids of the stories that start clean."""
    store = store_for(spec.ref, env, settings_key(spec.settings))
    why = renew(store)
    notices = [f"{one_line(story, 40)} starts again: {reason}" for story, reason in list(why.items())[:_MOST_NOTICES]]
    notices += reopen_lost(store, spec.ref, spec.repo, env, ours(spec, env).is_ours)
    if not notices:  # nothing was changed
        stop.refuse_to_start()
    plan = store.load().plan
    wanted = [story for story in failed_stories(plan) if spec.options.reset or story in spec.options.stories]
    if wanted and (opened := open_stories(store, wanted)):
        plan = store.load().plan
        notices.append(f"retrying failed stories: {listed(opened)}")
    elif spec.options.reset:
        notices.append("no story has failed: nothing to reset")
    changed = {story for story, reason in why.items() if reason == CHANGED}
    for story in changed:
        ledger_of(spec.ref.root, spec.repo, env).append(Reset(time.time(), plan_name(spec.ref), story), durable=True)
    return plan, notices, changed


def _past(spec: RunSpec, env: Mapping[str, str], now: float) -> Recent:
    found = recent_of_all(spec.ref.root, env, spec.config.agent.name, spec.limits, now)
    return msgspec.structs.replace(found, heard=()) if spec.options.reset else found


def _started(spec: RunSpec, plan: Plan, branch: str, known: Closed, past: Recent, checkout: str) -> RunStarted:
    config = spec.config
    limits = spec.limits
    wanted = [story for story in plan.stories if story.is_open and story.id in (spec.options.stories or (story.id,))]
    me = identify(os.getpid())
    caller_trace = spec.trace or TraceContext(spec.run)
    return RunStarted(
        run=spec.run,
        workspace=str(spec.ref.root),
        checkout=checkout,
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
        may=may_line(msgspec.structs.replace(rights_of(config), sandbox=spec.sandbox)),
        checks=tuple(one_line(check.name, 80) for check in choose(config, plan, None, "final")[:_MOST_CHECKS]),
        feedback=known.feedback,
        authors=known.authors,
        calls=past.calls,
        used=past.used,
        heard=past.heard,
        traceparent=caller_trace.parent,
        tracestate=caller_trace.state,
    )
