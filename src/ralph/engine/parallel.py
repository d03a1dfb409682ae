"""The loop with several workers: they prepare, act and judge; what they accept is merged, proved and settled here."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from msgspec.structs import replace

from ralph.core.areas import areas_of
from ralph.core.errors import PlanError, RalphError
from ralph.core.events import (
    AgentStarted,
    AnyEvent,
    Baseline,
    IterationStarted,
    Judged,
    Noted,
    Queued,
    Running,
    Scheduled,
    Settling,
    WorkerLost,
    WorkerStarted,
)
from ralph.core.history import to_be_told
from ralph.core.moves import Prove, Reason, Retry, SetAside, Stop, Wait, Work
from ralph.core.plan import Mode
from ralph.core.ports import Reading
from ralph.core.text import one_line
from ralph.core.worker import (
    CANDIDATES,
    Admit,
    Charge,
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
from ralph.engine.decide import cap, within_time
from ralph.engine.judge import judge
from ralph.engine.limits import AT_EACH_START
from ralph.engine.loop import REASONS
from ralph.engine.prepare import attempt_number
from ralph.engine.recover import Unmerged
from ralph.engine.schedule import schedule
from ralph.engine.worker_iterations import WorkerIterations
from ralph.engine.workers import Active, Lost
from ralph.host.git.merging import keep_ref, merge_onto

_LOOK = 0.5
"""Seconds between looks at the plan and at requests, if no worker says anything."""
_NOT_OURS = (Baseline, Settling)
"""Events of a worker that are about its clone only."""


class ParallelLoop(WorkerIterations):
    # The loop

    def _until_stopped(self) -> Stop:
        try:
            return self._until_nothing_runs()
        finally:
            self._crew.close()
            self._queue.close()

    def take_over(self, unmerged: Sequence[Unmerged]) -> None:
        """What workers of a killed run had accepted is merged by this one, if its story is still the same."""
        run = self._run
        plan = run.plan.load().plan
        for one in unmerged:
            assert one.judged is not None
            assert one.queued is not None
            was, now = one.judged.evidence.story, plan.story(one.started.story)
            if was is None or now is None or not now.is_open or now.content_key != was.content_key:
                continue
            number = self._number()
            active = Active(
                work=Work(one.started.story, one.started.mode),
                number=number,
                worker=one.started.worker,
                base=one.queued.base,
                begun=run.control.clock(),
                attempt=one.started.attempt,
                candidate=one.queued.commit,
            )
            self._active[number] = active
            keep_ref(self._repo, f"{CANDIDATES}{run.id}/{number}", active.candidate)
            run.journal.write(replace(one.started, iteration=number, base=active.base))
            active.judged = Judged(number, one.judged.evidence, judge(one.judged.evidence))
            run.journal.write(active.judged)
            run.journal.write(replace(one.queued, iteration=number))
            self._queue.add(active)

    def _until_nothing_runs(self) -> Stop:
        run = self._run
        wait = looked = 0.0
        while True:
            is_news = wait == 0
            for worker, message in self._crew.receive(wait):
                self._handle(worker, message)
                is_news = is_news or not isinstance(message, Told | Query)
            wait = _LOOK
            if not is_news and time.monotonic() - looked < _LOOK and not run.control.stop.requested:
                wait = max(_LOOK - (time.monotonic() - looked), 0.01)
                continue  # agents say much that changes nothing for the others
            looked = time.monotonic()
            if run.control.stop.requested and not self._is_stopping:
                self._is_stopping = True
                self._crew.stop(run.control.stop.signum or 15)
                self._queue.clear()
            if run.control.stop.urgent:
                self._crew.kill()
                self._by_worker.clear()
            if self._is_stopping and not self._by_worker:
                self._give_up_queued()
                said = "`ralph stop --now`" if run.control.wish().now else ""
                return Stop(REASONS.get(run.control.stop.signum or 0, Reason.TERMINATED), said)
            if self._is_stopping:
                continue
            self._take_in(self._busy())
            for told in self._users_commits():
                run.journal.write(Noted(told))
            try:
                reading: Reading = run.plan.load()
            except PlanError as error:
                if self._active:
                    continue
                return Stop(Reason.BAD_PLAN, str(error))
            if self._land_next():  # one at a time: meanwhile workers may have nothing to do
                wait = 0.0
                self._take_in(self._busy())  # before the story that has landed is started again
                reading = run.plan.load()
            if self._queue.prove():
                wait = 0.0
            if run.control.wish().is_pause and not self._active:
                self._rest()
                continue
            if (stop := self._next(reading)) is not None:
                return stop
            if self._has_started:
                self._has_started, wait = False, 0.0

    def _busy(self) -> set[str]:
        return {active.story for active in self._active.values()}

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
        if scheduled.start and not self._crew.idle(for_proof=False):
            return None  # a worker for sessions is busy with a proof
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
            free=max(
                min(self._rules.workers - sum(not one.candidate for one in self._active.values()), self._crew.room()), 0
            ),
            areas=areas_of(open_stories, self._files),
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
        tip, outfit = self._queue.tip(), self._crew.outfit()
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
            past=(*self._earlier(work.story), *self._past.get(work.story, ())) if needs_past else (),
            kept=run.proof.prover.kept([work.story]),
            feedback=to_be_told(self._history.feedback, work.story),
            free=self._history.free.get(work.story, 0),
            most=cap(self._history, run.rules.limits),
            carried=carried,
        )
        self._crew.assign(worker, ticket)
        self._has_started = True
        return True

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
                with contextlib.suppress(RalphError, OSError):  # only logs
                    self._crew.collect(worker, 0)
                self._queue.examined(message)
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
        if isinstance(event, _NOT_OURS) or (isinstance(event, Noted) and event.text in self._noted):
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
                self._budget.charge(question.name, question.task, question.model, question.ended, question.outcome)
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
        try:
            self._crew.collect(worker, message.iteration)
        except (RalphError, OSError) as error:
            self._lost_iteration(active, f"its work could not be brought here: {error}")
            return
        if active.judged is None:
            self._lost_iteration(active, "the worker said nothing about its result")
            return
        if active.work.mode is Mode.ACCEPTANCE and (story := run.plan.load().plan.story(active.story)):
            run.proof.acceptance.receive(story, message.acceptance)
        if not message.candidate:
            self._settle_undone(active, message.undone)
            return
        active.candidate = message.candidate
        run.journal.write(
            Queued(iteration=active.number, story=active.story, commit=active.candidate, base=active.base)
        )
        self._queue.add(active)

    def _lost(self, worker: int, why: str) -> None:
        number = self._by_worker.pop(worker, 0)
        if number or not self._is_stopping:
            self._run.journal.write(WorkerLost(worker=worker, iteration=number, why=one_line(why, 300)))
        self._queue.lost(worker)
        if active := self._active.get(number):
            self._lost_iteration(active, why)

    # Merging


def _is_same(new: Scheduled, old: Scheduled | None) -> bool:
    """Nothing that a reader would call another decision."""
    return old is not None and (new.start, new.move, new.held) == (old.start, old.move, old.held)
