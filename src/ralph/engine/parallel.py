"""The loop with several workers: they prepare, act and judge; what they accept is merged, proved and settled here."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from ralph.core.agent import Outcome
from ralph.core.areas import likely
from ralph.core.errors import PlanError, RalphError
from ralph.core.events import (
    AgentStarted,
    AnyEvent,
    Baseline,
    Committed,
    IterationEnded,
    IterationStarted,
    Judged,
    Landing,
    Noted,
    Queued,
    QueueProved,
    QueueProving,
    Record,
    Running,
    Scheduled,
    Settling,
    WorkerLost,
    WorkerStarted,
)
from ralph.core.evidence import Ended, Evidence, How
from ralph.core.history import History, to_be_told
from ralph.core.moves import Prove, Reason, Retry, SetAside, Stop, Wait, Work
from ralph.core.plan import Mode
from ralph.core.ports import Reading, Task
from ralph.core.run_ports import Attempt
from ralph.core.text import one_line
from ralph.core.verdict import Kind, Verdict
from ralph.core.work_tree import Inspection, RolledBack
from ralph.core.worker import (
    CANDIDATES,
    Admit,
    Allowed,
    Charge,
    Examine,
    Examined,
    Failed,
    Finished,
    Message,
    Query,
    Ready,
    Reserve,
    Ticket,
    Told,
)
from ralph.engine import queue as merge_queue
from ralph.engine.decide import cap, within_time
from ralph.engine.judge import judge
from ralph.engine.limits import AT_EACH_START
from ralph.engine.loop import REASONS, Loop
from ralph.engine.plan_text import write_plan
from ralph.engine.prepare import attempt_number, next_reviewer
from ralph.engine.queue import Entry, Queue
from ralph.engine.run import Run
from ralph.engine.schedule import schedule
from ralph.engine.settle import Judgement, finish, plan_after, settle, track, trailers_for
from ralph.host.files import write_bytes
from ralph.host.git.command import git, line
from ralph.host.git.merging import commit_object, keep_ref, merge_onto, same_but_own
from ralph.host.git.repo import Repo
from ralph.prompts.foreign import fence_for, fenced
from ralph.state.names import PLAN_BEFORE

_LOOK = 0.5
"""Seconds between looks at the plan and at requests, if no worker says anything."""
_MOST_LOSSES = 3
"""Workers that may be lost with one story; the next time the story counts as crashed."""
_MERGED = "refs/ralph/merged/"
_REMEMBERED = (IterationStarted, Judged, Committed, IterationEnded)
_NOT_OURS = (Baseline, Settling)
"""Events of a worker that are about its clone only."""
_LONGEST_TEXT = 6000


class Lost(Struct, frozen=True):
    """A worker that is gone, or that has not answered for too long."""

    why: str


class Outfit(Struct, frozen=True):
    """What a worker needs besides the commit it starts from."""

    files: dict[str, bytes] = {}
    state: dict[str, bytes] = {}


class Budget(Protocol):
    def reserve(self, task: Task, budget_usd: float) -> Allowed: ...

    def charge(self, name: str, task: Task, model: str, ended: Ended, outcome: Outcome) -> None: ...


class Crew(Protocol):
    """The workers, wherever they are."""

    def idle(self, *, for_proof: bool) -> int:
        """The number of a worker that has nothing to do, started if necessary; 0: none. Proofs have workers of their
        own, so that they do not wait until a session is over."""
        ...

    def assign(self, worker: int, order: Ticket | Examine) -> None: ...

    def answer(self, worker: int, number: int, value: object) -> None: ...

    def receive(self, timeout: float) -> Sequence[tuple[int, Message | Lost]]:
        """What workers said; waits for the first for so many seconds."""
        ...

    def cancel(self, worker: int) -> None:
        """End what it does; what it says about it is dropped."""
        ...

    def collect(self, worker: int, iteration: int) -> None:
        """Bring its candidates, rescue refs and logs here."""
        ...

    def outfit(self) -> Outfit: ...

    def stop(self, signum: int) -> None:
        """End all sessions; the workers still report."""
        ...

    def close(self) -> None: ...


class Active(Struct, kw_only=True):
    """An iteration that has not ended."""

    work: Work
    number: int
    worker: int
    base: str
    begun: float
    attempt: int = 1
    has_started: bool = False
    candidate: str = ""
    judged: Judged | None = None
    merged_evidence: Evidence | None = None

    @property
    def story(self) -> str:
        return self.work.story


class Build(Struct, kw_only=True):
    """A merged tree that is being proved."""

    key: str
    entries: tuple[Entry, ...]
    onto: str
    merged: str
    worker: int
    begun: float


class QueueRules(Struct, frozen=True, kw_only=True):
    workers: int
    batch: int = 1
    speculate: int = 3
    returns: int = 2
    is_merge: bool = False


class ParallelLoop(Loop):
    def __init__(self, run: Run, history: History, crew: Crew, budget: Budget, repo: Repo, rules: QueueRules) -> None:
        super().__init__(run, history)
        self._crew, self._budget, self._repo, self._rules = crew, budget, repo, rules
        self._active: dict[int, Active] = {}
        self._by_worker: dict[int, int] = {}
        self._queue = Queue()
        self._builds: dict[str, Build] = {}
        self._merged: dict[str, str] = {}
        """By key of a build: its merged commit."""
        self._carried: dict[str, tuple[str, str]] = {}
        """By story: its last candidate that clashed, and the base of that."""
        self._files: dict[str, tuple[str, ...]] = {}
        """By story: files that its attempts changed."""
        self._past: dict[str, list[AnyEvent]] = {}
        self._losses: dict[str, int] = {}
        self._refusal: Stop | None = None
        self._last: Scheduled | None = None
        self._is_stopping = False

    # The loop

    def _until_stopped(self) -> Stop:
        try:
            return self._until_nothing_runs()
        finally:
            self._crew.close()

    def _until_nothing_runs(self) -> Stop:
        run = self._run
        wait = 0.0
        while True:
            for worker, message in self._crew.receive(wait):
                self._handle(worker, message)
            wait = _LOOK
            if run.control.stop.requested and not self._is_stopping:
                self._is_stopping = True
                self._crew.stop(run.control.stop.signum or 15)
                self._queue = Queue()
            if self._is_stopping and not self._by_worker:
                self._give_up_queued()
                said = "`ralph stop --now`" if run.control.wish().now else ""
                return Stop(REASONS.get(run.control.stop.signum or 0, Reason.TERMINATED), said)
            if self._is_stopping:
                continue
            for told in run.inbox.take():
                run.journal.write(Noted(told))
            try:
                reading: Reading = run.plan.load()
            except PlanError as error:
                if self._active:
                    continue
                return Stop(Reason.BAD_PLAN, str(error))
            if self._land_ready():
                wait = 0.0
                continue
            if self._prove_queued():
                wait = 0.0
            if run.control.wish().is_pause and not self._active:
                self._rest()
                continue
            if (stop := self._next(reading)) is not None:
                return stop
            if self._last is not None and self._last.start:
                wait = 0.0

    def _next(self, reading: Reading) -> Stop | None:
        """Start what is ready. A reason to stop applies once nothing runs any more."""
        run, wish = self._run, self._run.control.wish()
        if (seen := self._diff.news(reading.plan)) is not None:
            run.journal.write(seen)
        if self._refusal is not None or wish.stop or wish.is_pause:
            if self._active:
                return None
            return self._refusal or (Stop(Reason.ON_REQUEST, "`ralph stop`") if wish.stop else None)
        if waiting := run.requests.waiting():
            return None if self._active else Stop(Reason.WAITING, waiting)
        for news in run.agents.news(reading.plan):
            run.journal.write(news)
        scheduled = self._schedule(reading)
        if scheduled.start or not _is_same(scheduled, self._last):
            run.journal.write(scheduled)
        self._last = scheduled
        for work in scheduled.start:
            if work.mode in (Mode.SETUP, Mode.EXAM):
                return self._alone(work, reading)
            if refusal := self._take_baseline(work, reading):
                return refusal
            if not self._start(work, reading):
                break
        return self._apply(scheduled, reading)

    def _schedule(self, reading: Reading) -> Scheduled:
        run, plan = self._run, reading.plan
        running = tuple(
            Running(one.number, one.story, one.work.mode, one.has_started, bool(one.candidate))
            for one in self._active.values()
        )
        needed = run.proof.acceptance.needed(plan)
        open_stories = [story for story in plan.stories if story.is_open]
        return schedule(
            plan,
            self._history,
            run.rules.limits,
            run.control.clock(),
            running=running,
            free=max(self._rules.workers - sum(not one.candidate for one in self._active.values()), 0),
            areas={story.id: area for story in open_stories if (area := likely(story, self._files.get(story.id, ())))},
            returns=self._rules.returns,
            needs_setup=not all(marker.exists() for marker in run.rules.setup_markers),
            review=run.rules.verdict.may_review,
            needs_acceptance=[story.id for story in open_stories if not story.attempts and needed(story)],
            needs_exam=run.proof.exam.is_due(plan),
        )

    def _apply(self, scheduled: Scheduled, reading: Reading) -> Stop | None:
        match scheduled.move:
            case SetAside():
                self._set_aside(scheduled.move, reading)
            case None:
                return None
            case _ if self._active:
                return None
            case Stop():
                return scheduled.move
            case Wait():
                self._wait(scheduled.move)
            case Retry():
                self._retry(scheduled.move, reading)
            case Prove():
                self._prove(reading)
        return None

    def _alone(self, work: Work, reading: Reading) -> Stop | None:
        """In the run's own tree: nothing else is running."""
        if refusal := self._take_baseline(work, reading):
            return refusal
        return self._iterate(work, reading)

    def _start(self, work: Work, reading: Reading) -> bool:
        """False: there is no worker for it yet."""
        run = self._run
        worker = self._crew.idle(for_proof=False)
        if not worker:
            return False
        number = self._number()
        tip, outfit = self._tip(), self._crew.outfit()
        carried = ""
        if work.story in self._carried and work.mode in (Mode.IMPLEMENT, Mode.FIX):
            candidate, base = self._carried[work.story]
            carried = merge_onto(self._repo, tip, candidate, base).tree
        needs_past = work.mode in (Mode.REVIEW, Mode.FIX)
        story = reading.plan.story(work.story)
        active = Active(
            work=work,
            number=number,
            worker=worker,
            base=tip,
            begun=run.control.clock(),
            attempt=attempt_number(story, work.mode, run.rules.verdict.reviewers),
        )
        self._active[number], self._by_worker[worker] = active, number
        ticket = Ticket(
            iteration=number,
            work=work,
            base=tip,
            files=outfit.files,
            state=outfit.state,
            past=tuple(self._past.get(work.story, ())) if needs_past else (),
            feedback=to_be_told(self._history.feedback, work.story),
            free=self._history.free.get(work.story, 0),
            most=cap(self._history, run.rules.limits),
            carried=carried,
        )
        self._crew.assign(worker, ticket)
        return True

    def _number(self) -> int:
        return max(self._history.number, *self._active, 0) + 1

    def _tip(self) -> str:
        return line(git(self._repo, "rev-parse", "--verify", "HEAD^{commit}"))

    # What workers say

    def _handle(self, worker: int, message: Message | Lost) -> None:
        match message:
            case Ready():
                self._run.journal.write(
                    WorkerStarted(
                        worker=worker,
                        pid=message.pid,
                        start=message.start,
                        where=message.where,
                        folder=message.folder,
                        seconds=message.seconds,
                    )
                )
            case Told(event=event):
                self._take(worker, event)
            case Query(number=number, ask=question):
                self._crew.answer(worker, number, self._answer(question))
            case Finished():
                self._finished(worker, message)
            case Examined():
                self._examined(worker, message)
            case Failed():
                hint = f" ({message.hint})" if message.hint else ""
                if message.is_setup:
                    self._refusal = Stop(Reason.MISCONFIGURED, f"a worker cannot start: {message.message}{hint}")
                self._lost(worker, f"{message.message}{hint}")
            case Lost(why=why):
                self._lost(worker, why)

    def _take(self, worker: int, event: AnyEvent) -> None:
        """Into the journal, with the worker's number."""
        number = self._by_worker.get(worker, 0)
        if isinstance(event, _NOT_OURS):
            return
        if isinstance(event, IterationStarted):
            active = self._active[event.iteration]
            event = replace(event, checkpoint={}, worker=worker, base=active.base)
        elif isinstance(event, AgentStarted) and number in self._active:
            self._active[number].has_started = True
        elif isinstance(event, Judged):
            if event.iteration not in self._active:
                return
            verdict = judge(event.evidence)  # from typed values: changes to the plan do not survive JSON as they are
            self._active[event.iteration].judged = event = replace(event, verdict=verdict)
        self._run.journal.write(event)

    def _answer(self, question: Reserve | Charge | Admit) -> object:
        match question:
            case Reserve(task=task, budget_usd=usd):
                return self._budget.reserve(task, usd)
            case Charge():
                self._budget.charge(
                    question.name, question.task, question.model, question.ended, question.outcome
                )
                return None
            case Admit():
                return self._admit_further()

    def _admit_further(self) -> str:
        run = self._run
        if run.control.stop.requested:
            return "the run is stopping"
        for limit in AT_EACH_START:
            if move := limit(self._history, run.rules.limits, run.control.clock()):
                move = within_time(move, self._history, run.rules.limits)
                return move.detail if isinstance(move, Stop) else move.why
        return ""

    def _finished(self, worker: int, message: Finished) -> None:
        run = self._run
        self._by_worker.pop(worker, None)
        active = self._active.get(message.iteration)
        if active is None:
            return
        if message.stop is not None:
            self._refusal = message.stop
            del self._active[message.iteration]
            return
        with contextlib.suppress(RalphError, OSError):
            self._crew.collect(worker, message.iteration)
        if active.judged is None:
            self._lost_iteration(active, "the worker said nothing about its result")
            return
        if not message.candidate:
            self._settle_undone(active, message.undone)
            return
        active.candidate = message.candidate
        run.journal.write(
            Queued(iteration=active.number, story=active.story, commit=active.candidate, base=active.base)
        )
        entry = Entry(active.number, active.story, active.candidate, active.base)
        self._queue = merge_queue.enqueue(self._queue, entry)

    def _settle_undone(self, active: Active, undone: RolledBack) -> None:
        """The worker has undone the work in its clone; the plan and the end of the iteration are ours."""
        assert active.judged is not None
        run, verdict = self._run, active.judged.verdict
        attempt = self._attempt(active, run.plan.load(), {})
        judged = Judgement(attempt, active.judged.evidence, Inspection(""), verdict)
        target = write_plan(run, attempt, plan_after(run, attempt, verdict))
        track(run, attempt, target)
        finish(run, judged, target, undone=undone)
        self._active.pop(active.number, None)

    def _attempt(self, active: Active, reading: Reading, checkpoint: dict[str, Any]) -> Attempt:
        run, work = self._run, active.work
        story = reading.plan.story(work.story)
        return Attempt(
            number=active.number,
            work=work,
            story=story,
            attempt=active.attempt,
            reading=reading,
            checkpoint=checkpoint,
            begun=active.begun,
            reviewer=next_reviewer(run.rules.verdict.reviewers, story) if work.mode is Mode.REVIEW else "",
        )

    def _lost(self, worker: int, why: str) -> None:
        number = self._by_worker.pop(worker, 0)
        self._run.journal.write(WorkerLost(worker=worker, iteration=number, why=one_line(why, 300)))
        for key, build in list(self._builds.items()):
            if build.worker == worker:
                del self._builds[key]  # it is wanted again
                self._queue = merge_queue.abandoned(self._queue, key)
        if active := self._active.get(number):
            self._lost_iteration(active, why)

    def _lost_iteration(self, active: Active, why: str) -> None:
        """Without a result. It costs no attempt, unless workers are lost with this story again and again."""
        run = self._run
        count = self._losses[active.story] = self._losses.get(active.story, 0) + 1
        kind = Kind.CRASHED if count >= _MOST_LOSSES and not self._is_stopping else Kind.INTERRUPTED
        headline = f"the worker was lost: {one_line(why, 200)}" if why else "the worker was stopped"
        verdict = Verdict(kind, (headline,))
        attempt = self._attempt(active, run.plan.load(), {})
        evidence = active.judged.evidence if active.judged else _no_evidence(attempt)
        judged = Judgement(attempt, evidence, Inspection(""), verdict)
        target = write_plan(run, attempt, plan_after(run, attempt, verdict))
        finish(run, judged, target)
        self._active.pop(active.number, None)

    def _give_up_queued(self) -> None:
        """The run stops: accepted work that is not merged yet stays on its ref, and the next run starts with it."""
        for active in list(self._active.values()):
            if active.candidate:
                self._return(active, "the run was stopped before it was merged", "", is_clash=False)
            else:
                self._lost_iteration(active, "")

    # The merge queue

    def _prove_queued(self) -> bool:
        """Build and prove what the queue asks for. True: something changed that may be landed at once."""
        rules = self._rules
        tip = self._tip()
        for key in merge_queue.obsolete(self._queue, tuple(self._builds)):
            build = self._builds.pop(key)
            self._crew.cancel(build.worker)
        changed = False
        for wanted in merge_queue.wanted(self._queue, tip, batch=rules.batch, speculate=rules.speculate):
            onto = self._merged.get(wanted.onto_key, tip) if wanted.onto_key else tip
            merged = self._merge(wanted.key, onto, wanted.entries)
            if not merged:
                return True
            if self._is_proven(wanted.entries, onto, merged):
                self._merged[wanted.key] = merged
                self._queue = merge_queue.building(self._queue, wanted.key, merged)
                self._queue = merge_queue.proved(self._queue, wanted.key, passed=True)
                changed = True
                continue
            worker = self._crew.idle(for_proof=True)
            if not worker:
                break
            self._merged[wanted.key] = merged
            self._queue = merge_queue.building(self._queue, wanted.key, merged)
            self._examine(wanted.key, wanted.entries, onto, merged, worker)
        return changed

    def _merge(self, key: str, onto: str, entries: Sequence[Entry]) -> str:
        """The commit with all of them; empty: one clashes, and was returned."""
        head = onto
        for entry in entries:
            merged = merge_onto(self._repo, head, entry.commit, entry.base)
            active = self._active[entry.iteration]
            if merged.conflicts:
                some = ", ".join(one_line(path, 60) for path in merged.conflicts[:5])
                self._return(active, f"its changes conflict with work that was merged meanwhile: {some}", merged.text)
                return ""
            head = commit_object(self._repo, merged.tree, [head], f"ralph: {entry.story}, merged")
        keep_ref(self._repo, f"{_MERGED}{self._run.id}/{entries[-1].iteration}", head)
        return head

    def _is_proven(self, entries: Sequence[Entry], onto: str, merged: str) -> bool:
        """Nothing was merged since the worker proved it, or it changes nothing, or it is a test that has to fail."""
        own = self._run.places.is_own
        for entry in entries:
            active = self._active[entry.iteration]
            same = len(entries) == 1 and same_but_own(self._repo, merged, entry.commit, own)
            empty = same_but_own(self._repo, entry.commit, entry.base, own)
            if not (same or empty or active.work.mode is Mode.ACCEPTANCE):
                return False
        return True

    def _examine(self, key: str, entries: tuple[Entry, ...], onto: str, merged: str, worker: int) -> None:
        run = self._run
        actives = [self._active[entry.iteration] for entry in entries]
        run.journal.write(
            QueueProving(
                iterations=tuple(entry.iteration for entry in entries), onto=onto, merged=merged, worker=worker
            )
        )
        outfit = self._crew.outfit()
        claims = [one.judged is not None and one.judged.verdict.kind is Kind.ACCEPTED for one in actives]
        order = Examine(
            key=key,
            iteration=entries[0].iteration,
            works=tuple(one.work for one in actives),
            onto=onto,
            merged=merged,
            is_claimed=any(claims),
            files=outfit.files,
            state=outfit.state,
        )
        begun = run.control.clock()
        self._builds[key] = Build(key=key, entries=entries, onto=onto, merged=merged, worker=worker, begun=begun)
        self._crew.assign(worker, order)

    def _examined(self, worker: int, message: Examined) -> None:
        run = self._run
        build = self._builds.pop(message.key, None)
        if build is None or any(entry.iteration not in self._active for entry in build.entries):
            return
        if message.interrupted:
            self._queue = merge_queue.abandoned(self._queue, message.key)
            return
        failures = []
        for entry in build.entries:
            active = self._active[entry.iteration]
            assert active.judged is not None
            evidence = replace(active.judged.evidence, checks=message.checks)
            if len(build.entries) == 1:
                evidence = replace(evidence, proof=message.proof or evidence.proof)
            active.merged_evidence = evidence
            verdict = judge(evidence)
            if not verdict.kind.keeps_work:
                failures.append(verdict)
        why = failures[0].headline if failures else ""
        run.journal.write(
            QueueProved(
                iterations=tuple(entry.iteration for entry in build.entries),
                merged=build.merged,
                passed=not failures,
                why=why,
                seconds=round(max(run.control.clock() - build.begun, 0), 3),
            )
        )
        self._queue = merge_queue.proved(self._queue, message.key, passed=not failures)
        for entry in merge_queue.failed(self._queue):
            active = self._active[entry.iteration]
            output = "\n\n".join(check.tail for check in message.checks if not check.passed and check.tail)
            self._return(active, f"green alone, red merged: {why}", output)

    def _return(self, active: Active, why: str, output: str, *, is_clash: bool = True) -> None:
        """Back to its story: the next session starts with this work on the new tip."""
        assert active.judged is not None
        run = self._run
        self._queue = merge_queue.removed(self._queue, active.number)
        self._carried[active.story] = (active.candidate, active.base)
        ref = f"{CANDIDATES}{run.id}/{active.number}"
        text = [f"- your earlier work passed its checks, but {why}" if is_clash else f"- {why}"]
        if is_clash:
            text.append("- it is in the working tree again, on top of what was merged; conflicts are marked in the files")
        if output:
            text.append(f"\n{fenced(output[-_LONGEST_TEXT:], fence=fence_for(output))}")
        evidence = active.judged.evidence
        kind = Kind.RETURNED if is_clash else Kind.INTERRUPTED
        attempt = self._attempt(active, run.plan.load(), {})
        run.journal.write(
            IterationEnded(
                iteration=active.number,
                story=active.story,
                title=attempt.story.title if attempt.story else "",
                mode=active.work.mode,
                kind=kind,
                headline=one_line(why, 300),
                story_state=attempt.story.state if attempt.story else None,
                attempts=attempt.story.attempts if attempt.story else 0,
                feedback="\n".join(text),
                seconds=round(max(run.control.clock() - active.begun, 0), 3),
                tokens=evidence.outcome.used,
                cost_usd=evidence.outcome.cost_usd,
                model=evidence.outcome.model,
                files=evidence.changed[:100],
                rescue=ref,
            )
        )
        self._active.pop(active.number, None)

    def _land_ready(self) -> bool:
        """Settle what is proven on exactly this tip, in the run's own tree."""
        landed = False
        while ready := merge_queue.ready(self._queue, self._tip()):
            self._land(self._active[ready[0].iteration], ready[0])
            landed = True
        return landed

    def _land(self, active: Active, entry: Entry) -> None:
        assert active.judged is not None
        run, tip = self._run, self._tip()
        merged = merge_onto(self._repo, tip, entry.commit, entry.base)
        reading: Reading = run.plan.load()
        write_bytes(run.places.folder / PLAN_BEFORE, run.plan.dump(reading), mode=0o600)
        checkpoint = run.tree.checkpoint()
        attempt = self._attempt(active, reading, checkpoint)
        self._before, self._settling = reading, None
        self._trailers = trailers_for(run.id, active.number, active.story)
        run.journal.write(
            Landing(
                iteration=active.number,
                checkpoint=checkpoint,
                plan_digest=reading.digest,
                onto=tip,
                commit=entry.commit,
            )
        )
        git(self._repo, "read-tree", "-m", "-u", "HEAD", merged.tree)
        inspection = run.tree.inspect(checkpoint)
        evidence = active.merged_evidence or active.judged.evidence
        verdict = judge(evidence)
        run.journal.write(Judged(active.number, evidence, verdict))
        self._active.pop(active.number)
        ended = settle(
            run,
            Judgement(attempt, evidence, inspection, verdict),
            commit=run.rules.commits or active.judged.verdict.completes,
        )
        self._before = None
        kept = ended.kind.keeps_work
        is_same = kept and same_but_own(self._repo, self._tip(), merged.tree, run.places.is_own)
        if kept:
            self._carried.pop(active.story, None)
            self._queue = merge_queue.landed(self._queue, active.number, self._tip(), as_proven=is_same)
        else:
            self._queue = merge_queue.removed(self._queue, active.number)

    def _remember(self, record: Record) -> None:
        super()._remember(record)
        event = record.event
        if isinstance(event, IterationEnded) and event.files:
            known = dict.fromkeys((*self._files.get(event.story, ()), *event.files))
            self._files[event.story] = tuple(known)[:200]
        if isinstance(event, _REMEMBERED):
            story = getattr(event, "story", "") or self._story_of(getattr(event, "iteration", 0))
            if story:
                self._past.setdefault(story, []).append(event)

    def _story_of(self, iteration: int) -> str:
        active = self._active.get(iteration)
        return active.story if active else ""


def _no_evidence(attempt: Attempt) -> Evidence:
    return Evidence(mode=attempt.mode, story=attempt.story, ended=Ended(How.STOPPED), outcome=Outcome(), interrupted=True)


def _is_same(new: Scheduled, old: Scheduled | None) -> bool:
    """Nothing that a reader would call another decision."""
    return old is not None and (new.start, new.move, new.held) == (old.start, old.move, old.held)


