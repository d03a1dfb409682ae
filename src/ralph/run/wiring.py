"""Builds the objects of a run. The only place where engine and variants meet."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from msgspec import Struct

from ralph.agents.registry import agent as find_agent
from ralph.budget.run_budget import RunBudget, account_of
from ralph.core.environment import child_environment
from ralph.core.ports import Locations
from ralph.engine.agent_run import AgentRunner, in_the_open
from ralph.engine.run import Control, Places, Proving, Run, Steps
from ralph.engine.steps import Pipeline, PlannedStep
from ralph.engine.wait import TimeLeft, wait
from ralph.host.git.ignored import KeepIgnored
from ralph.host.git.situation import untracked
from ralph.host.git.work_tree import GitWorkTree
from ralph.journal.records import Journal
from ralph.memory.store import Touched, memory_of
from ralph.plans.registry import traits
from ralph.proof.acceptance_tests import AcceptanceStore, StoryAcceptance
from ralph.proof.checks import AskBaseline, Checks
from ralph.proof.exam_session import Exam, ExamRounds
from ralph.proof.place import Runner, ignored_work, request_for, workspace_place
from ralph.proof.place_choice import choose_place
from ralph.proof.story import StoryProver
from ralph.review.material import Reviewing
from ralph.run.confinement import Confinement
from ralph.run.inbox import Inbox
from ralph.run.session import AgentSessions, SessionBudget
from ralph.run.spec import RunSpec, run_folder
from ralph.run.watcher import Watcher, protection
from ralph.session.limits import allowance_of, rules_of
from ralph.session.steps import Planned, plan_steps
from ralph.state.names import ACCEPTANCE, BASELINE, CHECK_OUTPUTS, GIT_TRACE, INDEX, RAW
from ralph.state.places import home, plan_state, workspace_state
from ralph.workspace.control import Guidance
from ralph.workspace.find import store_for
from ralph.workspace.own_files import Bookkeeping, RequestFiles, bookkeeping
from ralph.workspace.stuck_stories import settings_key
from ralph.workspace.tracker import Tracking


class Site(Struct, frozen=True, kw_only=True):
    """What most parts of a run are built from."""

    spec: RunSpec
    env: Mapping[str, str]
    journal: Journal
    control: Control
    folder: Path
    """The run's own, in the state folder."""
    state: Path
    """The plan's, in the state folder."""
    where: Locations
    own: Bookkeeping
    steps: Planned
    time_left: TimeLeft
    confinement: Confinement | None = None
    """The sandbox."""


def make_run(
    spec: RunSpec,
    journal: Journal,
    control: Control,
    env: Mapping[str, str],
    ask_baseline: AskBaseline | None = None,
    confinement: Confinement | None = None,
    budget_for: Callable[[AgentRunner], SessionBudget] | None = None,
) -> Run:
    """`budget_for`: what pays for sessions, if not the run's own budget."""
    ref, config = spec.ref, spec.config
    store = store_for(ref, env, settings_key(spec.settings))
    where = store.layout.locations(ref)
    site = Site(
        spec=spec,
        env=env,
        journal=journal,
        control=control,
        folder=run_folder(ref, spec.run, env),
        state=plan_state(ref, env),
        where=where,
        own=bookkeeping(ref, where, spec.repo.root, config),
        steps=plan_steps(spec.settings, ref.root),
        time_left=TimeLeft(config.max_run_time),
        confinement=confinement,
    )
    tree = _work_tree(site)
    memory = memory_of(ref, where, env)
    guidance, touched = Guidance(site.state, journal.write), Touched()
    reviewing = Reviewing(spec.repo, ref, workspace_state(ref.root, env), site.own.covers)
    proof, is_protected = _proving(site, tree, reviewing, ask_baseline)
    alone = confinement is not None and spec.is_clone
    watcher = Watcher(
        ref, where, spec.settings, env, spec.repo.root, site.folder, memory, is_protected, only_inside=alone
    )
    for part in (guidance, touched, watcher, site.time_left, reviewing):
        journal.listen(part.listen)
    requests = RequestFiles(ref.root, ref.folder, asks_by_file=traits(ref.layout).waits_by_file)
    runner = _agent_runner(site, tree)
    if budget_for is not None:
        budget = budget_for(runner)
    else:
        account = account_of(spec.run, ref, spec.repo, config, env, spec.options.stories)
        budget = RunBudget(account, journal, runner, control.clock)
    tracker = Tracking(ref, config, env)
    return Run(
        id=spec.run,
        rules=rules_of(spec.settings, traits(ref.layout), spec.limits, site.steps),
        places=Places(ref.root, spec.repo.root, site.folder, (where.plan, *tracker.files(spec.repo)), site.own.covers),
        journal=journal,
        control=control,
        plan=store,
        tree=tree,
        requests=requests,
        agents=AgentSessions(
            spec, env, site.folder, requests.request, budget, guidance, reviewing, touched, confinement
        ),
        steps=Steps(_pipeline(site, site.steps.work), _pipeline(site, site.steps.setup) if site.steps.setup else None),
        proof=proof,
        watchers=watcher,
        inbox=Inbox(ref, env, store, memory, requests, watcher.begin),
        tracker=tracker,
    )


def _work_tree(site: Site) -> GitWorkTree:
    config, own = site.spec.config, site.own
    marks = {"RALPH_RUN": site.spec.run}
    hook_env = child_environment(site.env, config.agent.env, marks, everything=config.env == "caller")
    limits = config.keep_ignored
    ignored = KeepIgnored(
        limits.file_kb << 10, limits.total_mb << 20, lambda path: own.covers(path) or path.startswith(own.own)
    )
    keep = ignored if limits.file_kb else None
    index, trace = site.state / INDEX, site.folder / GIT_TRACE
    around = site.confinement.hook if site.confinement else nullcontext
    return GitWorkTree(site.spec.repo, index, hook_env, site.control.stop, keep, trace, around)


def _proving(
    site: Site, tree: GitWorkTree, reviewing: Reviewing, ask_baseline: AskBaseline | None
) -> tuple[Proving, Callable[[str], bool] | None]:
    """What proves a story, and which files are protected: by the settings, or because they are acceptance tests."""
    spec, config, repo, journal, own = site.spec, site.spec.config, site.spec.repo, site.journal, site.own
    outputs = site.folder / CHECK_OUTPUTS
    runner = Runner(ceiling=config.time_ceiling, stop=site.control.stop, outputs=outputs, walls=site.confinement)
    request = request_for(spec.ref, repo, config, site.env, spec.run, runner)
    tests = AcceptanceStore(site.state / ACCEPTANCE)

    def is_same(old: str, new: str) -> bool:
        from ralph.proof.verify import differs  # once in a run, at most

        return differs(repo, old, new, own.covers) == ()

    checks = Checks(
        config,
        spec.ref.root,
        site.env,
        journal.write,
        site.control.stop,
        spec.run,
        site.state / BASELINE,
        is_same,
        untracked=lambda: untracked(repo),
        ignored=lambda since: ignored_work(repo, since),
        allow_broken=spec.options.allow_broken_checks,
        ask=ask_baseline,
        worktree=spec.ref.root if repo.git_dir != repo.common_dir else None,
        place=workspace_place(request),
        find_place=lambda passing, without: choose_place(request, tree.committed(), passing, without),
        pending=tests.pending,
        walls=site.confinement,
    )
    commits = site.steps.commits
    acceptance = StoryAcceptance(config, repo, tests, checks, tree, own.covers, journal.write, commits=commits)
    when = {"by_hand": spec.options.exam, "is_due_at_end": not spec.options.stories}
    exam = Exam(config, repo, ExamRounds(site.state, tests), tests, acceptance, checks, journal.write, **when)
    for part in (checks, acceptance, exam):
        journal.listen(part.listen)
    places = (home(site.env), site.env.get("TMPDIR") or "/tmp", spec.ref.root)
    private = [Path(os.path.realpath(place)) for place in places]
    prover = StoryProver(
        config, repo, checks, reviewing, tree, own.covers, acceptance, run=spec.run, commits=commits, private=private
    )
    by_settings = protection(config.protected, spec.ref.root, repo.root, own)
    return Proving(checks, prover, acceptance, exam), acceptance.protection(by_settings)


def _agent_runner(site: Site, tree: GitWorkTree) -> AgentRunner:
    config = site.spec.config
    return AgentRunner(
        lambda name: find_agent(name or config.agent.name),
        site.journal,
        site.control.stop,
        run=site.spec.run,
        raw_folder=site.folder / RAW,
        env=site.env,
        wanted_env=config.agent.env,
        pass_all_env=config.env == "caller",
        promise=config.completion.promise,
        canary=config.canary,
        ceiling=config.time_ceiling,
        time_left=site.time_left,
        allowance=site.confinement.allowance if site.confinement else allowance_of(config.agent),
        note_session=tree.note_session,
        enter=site.confinement.agent if site.confinement else in_the_open,
        trace=site.spec.trace,
    )


def _pipeline(site: Site, planned: Sequence[PlannedStep]) -> Pipeline:
    stop = site.control.stop
    return Pipeline(planned, site.journal.write, partial(_pause, site), lambda: stop.requested)


def _pause(site: Site, seconds: float, why: str) -> bool:
    """Wait, but not beyond the end of the run; true: the step is not retried."""
    left, control = site.time_left(), site.control
    if left is not None and left < seconds:
        return wait(site.journal, control.stop, control.clock, control.clock() + max(left, 0), why) or True
    if seconds <= 0:
        return control.stop.requested
    return wait(site.journal, control.stop, control.clock, control.clock() + seconds, why)
