"""From a command line to a run: choose the plan and the repository, check that all is ready, run, clean up."""

from __future__ import annotations

import shlex
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

import msgspec
from msgspec import Struct

from ralph.agents.registry import agent as find_agent
from ralph.config.layers import Settings
from ralph.config.trust import Verdict
from ralph.core.errors import PlanError, RalphError, SetupError, UsageError
from ralph.core.events import AgentStarted, Record
from ralph.core.limits import Limits
from ralph.core.moves import Stop
from ralph.core.plan import Plan
from ralph.core.ports import PlanRef, Session
from ralph.core.run_ports import Ask
from ralph.core.text import one_line
from ralph.host.git.branches import ensure_branch, has_branch
from ralph.host.git.command import git
from ralph.host.git.repo import Repo
from ralph.host.git.situation import Situation
from ralph.host.process.signals import StopSignal
from ralph.journal.records import Listener
from ralph.journal.sinks.table import make_sinks
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.plans.lint import unwritten
from ralph.proof.checks import AskBaseline
from ralph.review.material import refuse_unknown_reviewers
from ralph.run.execute import execute, in_the_way, ours, refuse_unless_ready
from ralph.run.finish import Pusher, finish_run
from ralph.run.spec import RunSpec
from ralph.run.worktrees import branch_of, close_worktrees, open_worktree, unfinished_worktree, unused_worktree
from ralph.session.limits import limits_of
from ralph.session.steps import plan_steps
from ralph.setup.ignore_lines import keep_out_of_commits
from ralph.state.places import plan_state
from ralph.state.runs import new_run_id
from ralph.workspace.control import carry_over
from ralph.workspace.find import find_repo, open_ref, store_for
from ralph.workspace.plan_edit import find_story
from ralph.workspace.trust import ensure_trusted, gather

Tell = Callable[[str], None]

STASHED = "stashed your uncommitted work; `git stash pop` restores it"


class Launched(Struct, frozen=True, kw_only=True):
    """A run that is ready to start; nothing has been changed yet."""

    ref: PlanRef
    settings: Settings
    plan: Plan
    once: bool = False
    stash: bool = False
    worktree: bool = False
    reset: bool = False
    allow_broken_checks: bool = False
    stories: tuple[str, ...] = ()
    exam: bool = False
    """Only one round of the exam."""

    @property
    def limits(self) -> Limits:
        return limits_of(self.settings, once=self.once, stories=self.stories, exam_only=self.exam)


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
        stories=_named(plan, getattr(args, "stories", ())),
        once=args.once,
        stash=args.stash,
        worktree=args.worktree,
        reset=args.reset_circuit,
        allow_broken_checks=getattr(args, "allow_broken_checks", False),
        exam=getattr(args, "exam_only", False),
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
    ref = prepared.ref
    commands = gather(ref.root, prepared.settings, [(ref.path, prepared.plan)])
    ensure_trusted(ref.root, commands, env, flag=trust, ask=ask, report=tell)


def launch(
    prepared: Launched,
    env: Mapping[str, str],
    stop: StopSignal,
    listeners: Sequence[Listener],
    *,
    tell: Tell,
    ask: Ask | None = None,
    ask_baseline: AskBaseline | None = None,
) -> Stop:
    """Run a plan whose commands are trusted."""
    if env.get("RALPH_LOOP") == "1":
        raise SetupError("an agent in a loop cannot start another loop", hint="unset RALPH_LOOP if this is intended")
    ref, settings = prepared.ref, prepared.settings
    prompt = settings.config.prompt
    if prompt and not (ref.root / prompt).is_file():
        raise UsageError(
            f"the prompt file {one_line(prompt, 200)} does not exist",
            hint="name an existing file with -p, or leave out -p",
        )
    find_agent(settings.config.agent.name).find(probe(prepared), env.get("PATH", ""))
    _find_reviewer(prepared, env)
    plan_steps(settings, ref.root)  # a wrong step is reported before anything starts
    run = new_run_id(time.time())
    repo = find_repo(ref, settings, env)
    close_worktrees(ref, env, stop, tell)
    is_new_worktree = False
    if prepared.worktree:
        unfinished = unfinished_worktree(ref, repo, env)
        is_new_worktree = unfinished is None
        ref, repo, branch = unfinished or open_worktree(ref, repo, run, env)
        carry_over(plan_state(prepared.ref, env), plan_state(ref, env))
        tell(f"{'working' if is_new_worktree else 'continuing'} in {ref.root} on branch {branch}")
        if not is_new_worktree:
            tell(f"to start over instead: `git worktree remove --force {shlex.quote(str(repo.root))}`, then run again")
        tell(f"`ralph log -d {shlex.quote(str(ref.root))}` shows the log, `git merge {branch}` merges the work")
    spec = RunSpec(
        run=run,
        ref=ref,
        settings=settings,
        repo=repo,
        once=prepared.once,
        reset=prepared.reset,
        allow_broken_checks=prepared.allow_broken_checks,
        stories=prepared.stories,
        exam=prepared.exam,
    )

    def ready(found: Situation, recovered: str) -> str:
        try:
            return make_ready(spec, prepared, found, env, tell)
        except RalphError:
            if recovered:  # no journal of this run will say it
                tell(f"recovered: {recovered}")
            raise

    def after(ended: Stop) -> None:
        finish_run(spec, ended, env, tell)
        for push in pusher:
            push.finish(ended)

    def note_agent(record: Record) -> None:
        if isinstance(record.event, AgentStarted):
            agents.append(record.event.pid)

    agents: list[int] = []
    ended: Stop | None = None
    pusher = [Pusher(repo, env, tell, stop)] if settings.config.push == "after-story" else []
    door = WorkspaceFiles(ref.root)
    where = store_for(ref, env).layout.locations(ref)
    try:
        sinks_for = partial(make_sinks, ref, where, door, plan_state(ref, env))
        with _notifier(spec, env, stop, tell) as news:
            everybody: list[Listener] = [*listeners, note_agent, *pusher, *news]
            ended = execute(spec, env, stop, everybody, ready, after, sinks_for, ask=ask, ask_baseline=ask_baseline)
            return ended
    finally:
        if prepared.worktree:
            carry_over(plan_state(ref, env), plan_state(prepared.ref, env))
            if not agents and is_new_worktree:
                for line in unused_worktree(find_repo(prepared.ref, settings, env), repo, branch, ended):
                    tell(line)
        for failure in door.failures:
            tell(failure)


@contextmanager
def _notifier(spec: RunSpec, env: Mapping[str, str], stop: StopSignal, tell: Tell) -> Iterator[list[Listener]]:
    """The notifier for users who are not watching. Imported only if notifications are configured."""
    config = spec.config.notify
    if not (config.desktop or config.webhook or config.command or config.apprise):
        yield []
        return
    from ralph.run.notifications import Notifier, channels

    with Notifier(channels(config, spec.ref.root, env), config, tell, stop) as notifier:
        yield [notifier]


def _find_reviewer(prepared: Launched, env: Mapping[str, str]) -> None:
    """Check that the reviewers exist before the first story, not after it."""
    review = prepared.settings.config.review
    if not review.enabled:
        return
    refuse_unknown_reviewers(review.reviewers, prepared.ref.root)
    if review.agent and review.agent != prepared.settings.config.agent.name:
        session = msgspec.structs.replace(probe(prepared), command=review.command)
        find_agent(review.agent).find(session, env.get("PATH", ""))


def probe(prepared: Launched) -> Session:
    config = prepared.settings.config.agent
    script = prepared.ref.root / config.script if config.script else None
    return Session(prompt="", cwd=prepared.ref.root, command=config.command, script=script)


def make_ready(spec: RunSpec, prepared: Launched, found: Situation, env: Mapping[str, str], tell: Tell) -> str:
    """Stash what the user allowed to be stashed, refuse the rest, switch to the plan's branch. Returns the branch."""
    own = ours(spec, env)
    foreign = [entry.path for entry in in_the_way(found, own)]
    if prepared.stash and foreign:
        found = msgspec.structs.replace(found, dirty=tuple(e for e in found.dirty if e.path not in foreign))
        refuse_unless_ready(found, own, spec.ref)  # whatever else is in the way, before anything is touched
        _stash(spec.repo, foreign, f"ralph: before run {spec.run}", is_possible=not found.unborn)
        tell(STASHED)
    refuse_unless_ready(found, own, spec.ref)
    keep_out_of_commits(spec.ref, spec.repo)
    branch = found.branch or ""
    config = spec.config.branch
    wanted = prepared.plan.branch or (f"{config.prefix}{spec.ref.name}" if config.auto_create else "")
    if not wanted or wanted == branch or branch == branch_of(spec.ref, spec.repo.root.name):
        return branch
    if not config.auto_create:
        if has_branch(spec.repo, wanted):  # it may hold the work of earlier runs
            tell(f"working on {branch}; the plan's branch {wanted} exists: `git switch {wanted}` to work there")
        elif wanted.rpartition("/")[2] not in (
            spec.ref.name,
            spec.ref.root.name,
        ):  # not the name that `ralph init` chose
            tell(f"working on {branch}; `branch.auto_create: true` would create the plan's branch {wanted}")
        return branch
    # Whatever is uncommitted now is Ralph's own, such as `.ralph/config.yaml`, and goes along to the branch.
    now = ensure_branch(spec.repo, wanted, auto_create=True, aside=[entry.path for entry in found.dirty])
    tell(f"on branch {now.name}, {f'created from {branch}' if now.is_new else f'switched from {branch}'}")
    return wanted


def _stash(repo: Repo, paths: Sequence[str], message: str, *, is_possible: bool) -> None:
    if not is_possible:
        raise SetupError("the repository has no commits, so nothing can be stashed", hint="create a first commit")
    listed = "".join(f"{path}\0" for path in paths).encode()
    from_stdin = ("--pathspec-from-file=-", "--pathspec-file-nul")
    git(repo, "stash", "push", "--quiet", "--include-untracked", "-m", message, *from_stdin, stdin=listed)
