"""Builds the objects of a run. The only place where engine and variants meet."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from ralph.agents.registry import agent as find_agent
from ralph.budget.run_budget import RunBudget, account_of
from ralph.core.environment import child_environment
from ralph.core.plan import Story
from ralph.core.run_ports import PageBack
from ralph.engine.agent_run import AgentRunner
from ralph.engine.run import Control, Places, Proving, Run, Steps
from ralph.engine.steps import Pipeline
from ralph.engine.wait import wait
from ralph.host.git.authorship import GIT_TRACE
from ralph.host.git.ignored import KeepIgnored
from ralph.host.git.situation import untracked
from ralph.host.git.work_tree import GitWorkTree
from ralph.journal.records import Journal
from ralph.memory.lasting_rules import LastingRules
from ralph.memory.store import Touched, memory_of
from ralph.memory.watch import MemoryWatch
from ralph.plans.registry import traits
from ralph.proof.acceptance_tests import FOLDER, AcceptanceStore, StoryAcceptance
from ralph.proof.checks import BASELINE, AskBaseline, Checks
from ralph.proof.exam_session import Exam, ExamRounds
from ralph.proof.place import Runner, ignored_work, request_for, workspace_place
from ralph.proof.place_choice import choose_place
from ralph.proof.story import StoryProver
from ralph.review.material import Reviewing
from ralph.run.inbox import Inbox
from ralph.run.protected import protection
from ralph.run.rules import Rules
from ralph.run.session import AgentSessions
from ralph.run.spec import RunSpec, run_folder
from ralph.run.time_left import TimeLeft
from ralph.session.limits import allowance_of, rules_of
from ralph.session.steps import plan_steps
from ralph.state.places import home, plan_state, workspace_state
from ralph.state.runs import RAW
from ralph.workspace.control import Guidance
from ralph.workspace.find import store_for
from ralph.workspace.own_files import WorkspaceDesk, bookkeeping
from ralph.workspace.retry import settings_key
from ralph.workspace.tracker import Tracking


def make_run(
    spec: RunSpec, journal: Journal, control: Control, env: Mapping[str, str], ask_baseline: AskBaseline | None = None
) -> Run:
    config, ref, stop, clock = spec.config, spec.ref, control.stop, control.clock
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
        allow_broken=spec.options.allow_broken_checks,
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
    when = {"by_hand": spec.options.exam, "is_due_at_end": not spec.options.stories}
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

    account = account_of(spec.run, ref, spec.repo, config, env, spec.options.stories)
    budget = RunBudget(account, journal, runner, clock)

    def pause(seconds: float, why: str) -> bool:
        left = time_left()
        if left is not None and left < seconds:  # then the run ends, and the step is not retried
            return wait(journal, stop, clock, clock() + max(left, 0), why) or True
        return wait(journal, stop, clock, clock() + seconds, why) if seconds > 0 else stop.requested

    def pipeline(planned: tuple[Any, ...]) -> Pipeline:
        return Pipeline(planned, journal.write, pause, lambda: stop.requested)

    reviewing = Reviewing(spec.repo, ref, workspace_state(ref.root, env), books.covers)
    journal.listen(reviewing.listen)

    tracking = Tracking(ref, config, env)
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

    watched = Watched(
        rules,
        remembered,
        spec.repo.root,
        acceptance.protection(protection(config.protected, ref.root, spec.repo.root, books)),
    )
    return Run(
        id=spec.run,
        rules=rules_of(spec.settings, traits(ref.layout), spec.limits, steps),
        places=Places(ref.root, spec.repo.root, folder, (where.plan, *tracking.files(spec.repo)), books.covers),
        journal=journal,
        control=control,
        plan=store,
        tree=work_tree,
        requests=desk,
        agents=AgentSessions(spec, env, folder, desk.request, budget, guidance, reviewing, touched),
        steps=Steps(pipeline(steps.work), pipeline(steps.setup) if steps.setup else None),
        proof=Proving(checks, prover, acceptance, exam),
        watchers=watched,
        inbox=Inbox(ref, env, store, memory, desk, lasting, watched.begin),
        tracker=tracking,
    )


class Watched(Struct, frozen=True):
    """The files that agents must not change."""

    rules: Rules
    log: MemoryWatch
    repo: Path
    is_protected: Callable[[str], bool] | None

    def begin(self) -> Sequence[str]:
        """Before an iteration: what changed since the last one is the user's."""
        self.log.look()
        return self.rules.by_people()

    def put_back(self, number: int, story: Story | None) -> PageBack:
        return self.rules.put_back(number, story) + self.log.put_back(number, story)

    def is_rule(self, path: str) -> bool:
        return self.rules.covers(self.repo / path)

    def accept(self, paths: Iterable[str]) -> None:
        self.rules.accept(paths)

    def changed(self) -> tuple[str, ...]:
        return self.rules.changed()
