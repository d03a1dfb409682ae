"""Builds the objects of a run. The only place where engine and variants meet."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from ralph.agents.registry import agent as find_agent
from ralph.budget.run_budget import RunBudget, account_of
from ralph.config.layers import Settings
from ralph.config.schema import Config, minimum_grade
from ralph.core.control import Wish
from ralph.core.environment import child_environment
from ralph.core.errors import PlanError
from ralph.core.limits import Limits
from ralph.core.plan import Mode
from ralph.core.ports import PlanRef, Session
from ralph.core.proof import Grade
from ralph.core.reviews import OnCap
from ralph.core.suspicion import Tamper
from ralph.engine.agent_run import AgentRunner, Patience
from ralph.engine.ground import Ask, Attempt, Ground
from ralph.engine.steps import Pipeline
from ralph.engine.wait import wait
from ralph.host.git.authorship import GIT_TRACE
from ralph.host.git.ignored import KeepIgnored
from ralph.host.git.repo import Repo
from ralph.host.git.situation import situation, untracked
from ralph.host.git.work_tree import GitWorkTree
from ralph.host.process.signals import StopSignal
from ralph.journal.records import Journal
from ralph.memory.lasting_rules import LastingRules
from ralph.memory.store import Touched, memory_of
from ralph.memory.store import take_in as take_in_learnings
from ralph.memory.watch import MemoryWatch
from ralph.plans.registry import traits
from ralph.prompts.building import build
from ralph.prompts.review_matter import Matter
from ralph.prompts.review_schema import schema_for
from ralph.proof.acceptance_store import FOLDER, AcceptanceStore
from ralph.proof.acceptance_tests import StoryAcceptance
from ralph.proof.checks import BASELINE, AskBaseline, Checks
from ralph.proof.exam_session import READS_HISTORY, Exam, ExamRounds
from ralph.proof.ignored_work import ignored_work
from ralph.proof.place import Runner
from ralph.proof.place_choice import choose_place
from ralph.proof.place_request import request_for, workspace_place
from ralph.proof.story import StoryProver
from ralph.review.material import Reviewing
from ralph.run.prompt import brief
from ralph.run.protected import protection
from ralph.run.rules import Rules
from ralph.run.time_left import TimeLeft
from ralph.session.choice import who_works
from ralph.session.hook_policy import allowed_folders, prepare_hooks
from ralph.session.limits import allowance_of, limits_of
from ralph.session.steps import plan_steps
from ralph.state.places import home, plan_state, workspace_state
from ralph.state.runs import RAW, runs_folder
from ralph.workspace.answers import reopen
from ralph.workspace.answers import take_in as take_in_answers
from ralph.workspace.control import Guidance
from ralph.workspace.find import store_for
from ralph.workspace.own_files import WorkspaceDesk, bookkeeping
from ralph.workspace.retry import settings_key
from ralph.workspace.retry import take_in as take_in_retries
from ralph.workspace.tracker import Tracking


class RunSpec(Struct, frozen=True, kw_only=True):
    """Everything that defines one run. It can be executed here or elsewhere."""

    run: str
    ref: PlanRef
    settings: Settings
    repo: Repo
    once: bool = False
    reset: bool = False
    """Forget failed stories and pending waits of earlier runs."""
    allow_broken_checks: bool = False
    """Start although a check cannot run, or fails before any work."""
    stories: tuple[str, ...] = ()
    """Only these stories; empty: all."""
    exam: bool = False
    """Only one round of the exam."""

    @property
    def config(self) -> Config:
        return self.settings.config

    @property
    def limits(self) -> Limits:
        return limits_of(self.settings, once=self.once, stories=self.stories, exam_only=self.exam)


def run_folder(ref: PlanRef, run: str, env: Mapping[str, str]) -> Path:
    return runs_folder(workspace_state(ref.root, env)) / run


def make_ground(
    spec: RunSpec,
    journal: Journal,
    stop: StopSignal,
    env: Mapping[str, str],
    clock: Callable[[], float] = time.time,
    wish: Callable[[], Wish] = Wish,
    ask: Ask | None = None,
    ask_baseline: AskBaseline | None = None,
) -> Ground:
    config, ref = spec.config, spec.ref
    folder = run_folder(ref, spec.run, env)
    store = store_for(ref, env, settings_key(spec.settings))
    where = store.layout.locations(ref)
    books = bookkeeping(ref, where, spec.repo.root, config)
    desk = WorkspaceDesk(ref.root, ref.folder, asks_by_file=traits(ref.layout).waits_by_file)
    steps = plan_steps(spec.settings, ref.root)
    hook_env = child_environment(env, config.agent.env, {"RALPH_RUN": spec.run}, everything=config.env == "caller")

    index = plan_state(ref, env) / "index"
    check_runner = Runner(ceiling=config.time_ceiling, stop=stop, outputs=folder / "checks")
    request = request_for(ref, spec.repo, config, env, spec.run, check_runner)

    limits = config.keep_ignored
    ignored = KeepIgnored(
        limits.file_kb << 10, limits.total_mb << 20, lambda path: books.covers(path) or path.startswith(books.own)
    )
    work_tree = GitWorkTree(spec.repo, index, hook_env, stop, ignored if limits.file_kb else None, folder / GIT_TRACE)

    def is_same(old: str, new: str) -> bool:
        from ralph.proof.verify import differs  # once in a run, at most

        return differs(spec.repo, old, new, books.covers) == ()

    accepted_tests = AcceptanceStore(plan_state(ref, env) / FOLDER)
    checks = Checks(
        config,
        ref.root,
        env,
        journal.write,
        stop,
        spec.run,
        plan_state(ref, env) / BASELINE,
        is_same,
        untracked=lambda: untracked(spec.repo),
        ignored=lambda since: ignored_work(spec.repo, since),
        allow_broken=spec.allow_broken_checks,
        ask=ask_baseline,
        worktree=ref.root if spec.repo.git_dir != spec.repo.common_dir else None,
        place=workspace_place(request),
        find_place=lambda passing, without: choose_place(request, work_tree.committed(), passing, without),
        pending=accepted_tests.pending,
    )
    journal.listen(checks.listen)
    acceptance = StoryAcceptance(
        config, spec.repo, accepted_tests, checks, work_tree, books.covers, journal.write, commits=steps.commits
    )
    journal.listen(acceptance.listen)
    rounds = ExamRounds(plan_state(ref, env), accepted_tests)
    when = {"by_hand": spec.exam, "is_due_at_end": not spec.stories}
    exam = Exam(config, spec.repo, rounds, accepted_tests, acceptance, checks, journal.write, **when)
    journal.listen(exam.listen)
    guidance = Guidance(plan_state(ref, env), journal.write)
    journal.listen(guidance.listen)
    touched = Touched()
    journal.listen(touched.listen)
    memory = memory_of(ref, where, env)
    rules = Rules(ref, where, spec.settings, env, spec.repo.root, folder)
    journal.listen(rules.listen)
    remembered = MemoryWatch(memory, folder / "memory")
    lasting = LastingRules(config.memory.repo_file)
    journal.listen(lasting.listen)
    time_left = TimeLeft(config.max_run_time)
    journal.listen(time_left.listen)
    runner = AgentRunner(
        lambda name: find_agent(name or config.agent.name),
        journal,
        stop,
        run=spec.run,
        raw_folder=folder / RAW,
        env=env,
        wanted_env=config.agent.env,
        pass_all_env=config.env == "caller",
        promise=config.completion.promise,
        canary=config.canary,
        ceiling=config.time_ceiling,
        time_left=time_left,
        allowance=allowance_of(config.agent),
        note_session=work_tree.note_session,
    )

    account = account_of(spec.run, ref, spec.repo, config, env, spec.stories)
    budget = RunBudget(account, journal, runner, clock)

    def pause(seconds: float, why: str) -> bool:
        left = time_left()
        if left is not None and left < seconds:  # then the run ends, and the step is not retried
            return wait(journal, stop, clock, clock() + max(left, 0), why) or True
        return wait(journal, stop, clock, clock() + seconds, why) if seconds > 0 else stop.requested

    def pipeline(planned: tuple[Any, ...]) -> Pipeline:
        return Pipeline(planned, journal.write, pause, lambda: stop.requested)

    def needs_setup() -> bool:
        return bool(steps.markers) and not all(marker.exists() for marker in steps.markers)

    reviewing = Reviewing(spec.repo, ref, workspace_state(ref.root, env), books.covers)
    journal.listen(reviewing.listen)

    def additions() -> Sequence[str]:
        told = [*rules.by_people(), *take_in_learnings(ref, memory), *take_in_retries(plan_state(ref, env), store)]
        with contextlib.suppress(PlanError):  # reported when the plan is read for the next iteration
            told += take_in_answers(plan_state(ref, env), store)
            if desk.asks_by_file and not desk.waiting():  # the user has removed the file
                told += [f"{story} is open again: WAITING was removed" for story in reopen(store, store.load())]
        remembered.look()
        told += lasting.news()
        if (plan_state(ref, env) / "additions").is_dir():
            from ralph.planning.add import take_in  # few runs need it

            told += take_in(ref, env)
        return told

    def make_session(attempt: Attempt, step: dict[str, Any], feedback: str) -> Session:
        notes = guidance(attempt.number, attempt.work.story)
        matter = reviewing.matter(attempt.story, attempt.reviewer) if attempt.mode is Mode.REVIEW else None
        files = touched.of(attempt.work.story)
        session = session_for(spec, attempt, step, feedback, desk.request, env, notes, matter, files)
        if not find_agent(session.agent or config.agent.name).HOOKS:
            return session
        hooks = prepare_hooks(ref, where, config, attempt, spec.run, folder, env)
        return msgspec.structs.replace(session, hooks=hooks)

    tracking = Tracking(ref, config, env)
    dirty = {entry.path for entry in situation(spec.repo).dirty}

    def uncommitted() -> tuple[str, ...]:
        now = {entry.path for entry in situation(spec.repo).dirty}
        return tuple(sorted(path for path in now - dirty if not books.covers(path)))

    places = (home(env), env.get("TMPDIR") or "/tmp", ref.root)
    private = [Path(os.path.realpath(place)) for place in places]
    prover = StoryProver(
        config,
        spec.repo,
        checks,
        reviewing,
        work_tree,
        books.covers,
        acceptance,
        run=spec.run,
        commits=steps.commits,
        private=private,
    )

    return Ground(
        run=spec.run,
        root=ref.root,
        repo=spec.repo.root,
        folder=folder,
        journal=journal,
        book=store,
        tree=work_tree,
        desk=desk,
        stop=stop,
        wish=wish,
        ask=ask,
        clock=clock,
        limits=spec.limits,
        work_steps=pipeline(steps.work),
        setup_steps=pipeline(steps.setup) if steps.setup else None,
        setup_markers=steps.markers,
        needs_setup=needs_setup,
        take_in=additions,
        run_agent=budget,
        news=budget.news,
        make_session=make_session,
        patience=Patience(total=config.timeout or None, idle=config.idle_timeout or None),
        check=checks,
        run_command=checks.run_command,
        track=tracking.settle,
        agreement=tracking.agreement,
        prover=prover,
        acceptance=acceptance,
        exam=exam,
        minimum=Grade(minimum_grade(config)),
        tamper=Tamper(config.tamper),
        review=config.review.when == "always",
        may_review=config.review.enabled,
        review_cap=config.review.cap,
        on_cap=OnCap(config.review.on_cap),
        on_stalemate=OnCap(config.review.on_stalemate),
        reviewers=config.review.reviewers,
        claim_is_implied=not traits(ref.layout).claims,
        promises_all=traits(ref.layout).promises_all,
        commits=steps.commits,
        uncommitted=uncommitted,
        is_protected=acceptance.protection(protection(config.protected, ref.root, spec.repo.root, books)),
        is_rule=lambda path: rules.covers(spec.repo.root / path),
        accept_rules=rules.accept,
        changed_rules=rules.changed,
        put_back=lambda number, story: rules.put_back(number, story) + remembered.put_back(number, story),
        is_bookkeeping=books.covers,
        bookkeeping=(where.plan, *tracking.files(spec.repo)),
    )


def session_for(
    spec: RunSpec,
    attempt: Attempt,
    step: Mapping[str, Any],
    feedback: str,
    request: Path,
    env: Mapping[str, str],
    guidance: tuple[str, ...] = (),
    matter: Matter | None = None,
    touched: Iterable[str] = (),
) -> Session:
    """The session of one agent process: its prompt, and the settings that the step overrides."""
    config, ref = spec.config, spec.ref
    store = store_for(ref, env)
    briefing = brief(
        ref,
        store.layout,
        config,
        attempt.reading.plan,
        attempt.reading.source,
        attempt.story,
        attempt.mode,
        iteration=attempt.number,
        most=attempt.most or spec.limits.cap(sum(story.is_open for story in attempt.reading.plan.stories)),
        attempt=attempt.attempt,
        feedback=feedback,
        guidance=guidance,
        matter=matter,
        touched=touched,
        step=step,
        env=env,
        request=request,
    )
    prompt = build(briefing)
    who = who_works(spec.settings, attempt.work, attempt.story, step)
    tools = step.get("allowed_tools") or ",".join(config.agent.allowed_tools)
    denied = READS_HISTORY if attempt.mode is Mode.EXAM else ()
    return Session(
        prompt=prompt.text,
        system=prompt.system,
        cwd=ref.root,
        agent=who.name,
        model=who.model,
        schema=schema_for(attempt.mode),
        allowed_tools=tools if isinstance(tools, str) else ",".join(map(str, tools)),
        disallowed_tools=",".join((*config.agent.disallowed_tools, *denied)),
        fallback_model=config.agent.fallback_model,
        budget_usd=config.agent.budget_usd,
        keep=config.agent.keep_sessions,
        permissions=config.permissions,
        folders=tuple(allowed_folders(config, ref.root, env)),
        command=who.command,
        script=ref.root / config.agent.script if config.agent.script else None,
        story=attempt.work.story,
        title=attempt.story.title if attempt.story else "",
        mode=attempt.mode,
        iteration=attempt.number,
        attempt=attempt.attempt,
        reviewer=attempt.reviewer,
        free=attempt.free,
        plan=ref.path,
        request=request,
        is_root=hasattr(os, "geteuid") and os.geteuid() == 0,
    )
