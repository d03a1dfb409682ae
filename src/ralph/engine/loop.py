"""The loop: decide, prepare, act, judge, settle, until there is a reason to stop."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Collection

from ralph.core.changes import SetFields
from ralph.core.errors import PlanError, RalphError
from ralph.core.events import (
    Decided,
    IterationEnded,
    LimitAnswered,
    Noted,
    Paused,
    Proved,
    Record,
    Resumed,
    RunEnded,
    Settling,
    StoriesRetried,
    StorySetAside,
)
from ralph.core.history import History, fold, to_be_told
from ralph.core.moves import Move, Prove, Reason, Retry, SetAside, Stop, Wait, Work
from ralph.core.plan import Mode, State
from ralph.core.ports import Reading
from ralph.engine.act import act, is_about_the_work, with_error
from ralph.engine.decide import cap, decide, within_time
from ralph.engine.limits import AT_EACH_START
from ralph.engine.prepare import prepare
from ralph.engine.run import Run
from ralph.engine.settle import Judgement, judge_and_record, put_rules_back, reopened, settle, trailers_for
from ralph.engine.wait import LOOK, wait
from ralph.host.files import read_state
from ralph.host.git.refs import MovedMeanwhile
from ralph.host.git.repo import RepositoryReplaced
from ralph.journal.run_state import PlanDiff
from ralph.state.names import PLAN_AFTER

REASONS = {signal.SIGINT: Reason.INTERRUPTED, getattr(signal, "SIGHUP", -1): Reason.TERMINAL_CLOSED}

_ALL_DONE = (Reason.COMPLETE, Reason.NAMED_STORIES, Reason.OPEN_FINDINGS)
_MOST_LEFT = 100
_SETTLE_TRIES = 4


class Loop:
    def __init__(self, run: Run, history: History) -> None:
        self._run = run
        self._history = history
        self._diff = PlanDiff()
        self._dirty = run.tree.dirty()
        self._has_baseline = False
        self._before: Reading | None = None
        """The plan before the current iteration."""
        self._settling: Settling | None = None
        """What was announced for the current iteration."""
        self._trailers: dict[str, str] = {}
        run.journal.listen(self._remember)

    def run(self) -> Stop:
        """Run until there is a reason to stop. An error leaves the iteration open for the next run to close."""
        try:
            stop = self._until_stopped()
        except RepositoryReplaced as error:
            stop = Stop(Reason.REPOSITORY, "; ".join(filter(None, (str(error), self._put_plan_back(), error.hint))))
        except (RalphError, OSError):
            with contextlib.suppress(RalphError, OSError):
                self._put_plan_back()
            raise
        left = self._uncommitted() if self._run.rules.commits and stop.reason in _ALL_DONE else ()
        self._run.journal.write(RunEnded(stop.reason, stop.detail, left[:_MOST_LEFT]))
        return stop

    def _uncommitted(self) -> tuple[str, ...]:
        """Files that differ from HEAD now and did not when the run started, without the loop's own."""
        new = self._run.tree.dirty() - self._dirty
        return tuple(sorted(path for path in new if not self._run.places.is_own(path)))

    def _until_stopped(self) -> Stop:
        while True:
            self._rest()
            self._take_in()
            try:
                reading: Reading = self._run.plan.load()
            except PlanError as error:
                return Stop(Reason.BAD_PLAN, str(error))
            match move := self._decide(reading):
                case Stop():
                    return move
                case Wait():
                    self._wait(move)
                case SetAside():
                    self._set_aside(move, reading)
                case Retry():
                    self._retry(move, reading)
                case Prove():
                    self._prove(reading)
                case Work():
                    if refusal := self._take_baseline(move, reading):
                        return refusal
                    if question := self._iterate(move, reading):
                        return question

    def _take_in(self, busy: Collection[str] = ()) -> None:
        """What people left for this run."""
        for left in self._run.inbox.take(busy):
            if isinstance(left, SetAside):
                self._set_aside(left, self._run.plan.load())
            else:
                self._run.journal.write(Noted(left) if isinstance(left, str) else left)

    def _decide(self, reading: Reading) -> Move:
        run = self._run
        if (seen := self._diff.news(reading.plan)) is not None:
            run.journal.write(seen)
        if run.control.stop.requested:
            said = "`ralph stop --now`" if run.control.wish().now else ""
            return Stop(REASONS.get(run.control.stop.signum or 0, Reason.TERMINATED), said)
        if waiting := run.requests.waiting():
            return Stop(Reason.WAITING, waiting)
        for news in run.agents.news(reading.plan):
            run.journal.write(news)
        needs_setup = not all(marker.exists() for marker in run.rules.setup_markers)
        now, needs_exam = run.control.clock(), run.proof.exam.is_due(reading.plan)
        move = decide(
            reading.plan,
            self._history,
            run.rules.limits,
            now,
            needs_setup=needs_setup,
            review=run.rules.verdict.may_review,
            needs_acceptance=run.proof.acceptance.needed(reading.plan),
            needs_exam=needs_exam,
        )
        if not isinstance(move, Stop) and run.control.wish().stop:
            return Stop(Reason.ON_REQUEST, "`ralph stop`")
        writes_tests = isinstance(move, Work) and move.mode is Mode.ACCEPTANCE
        run.journal.write(Decided(move, now, needs_setup, run.rules.verdict.may_review, writes_tests, needs_exam))
        return move

    def _iterate(self, work: Work, reading: Reading) -> Stop | None:
        run = self._run
        self._before = reading
        free, most = self._history.free.get(work.story, 0), cap(self._history, run.rules.limits)
        self._settling = None
        attempt = prepare(run, work, reading, self._history.number + 1, free, most)
        self._trailers = trailers_for(run.id, attempt.number, work.story)
        feedback = to_be_told(self._history.feedback, work.story)
        if work.mode is Mode.EXAM:  # nothing from the sessions that implemented the stories
            feedback = self._history.feedback.get("", "")
        acted = act(run, attempt, feedback, self._admit)
        judged = judge_and_record(run, acted.attempt, acted.evidence, acted.inspection)
        settled = self._settle(judged, commit=run.rules.commits or acted.wants_commit)
        self._before = None
        return Stop(Reason.SHARED_TREE, settled.ask) if settled.ask else None

    def _settle(self, judged: Judgement, *, commit: bool) -> IterationEnded:
        """Settle the iteration, if necessary as one whose work an error speaks against."""
        run = self._run
        first: Exception | None = None
        for tries_left in reversed(range(_SETTLE_TRIES)):
            try:
                return settle(run, judged, commit=commit)
            except MovedMeanwhile:  # a person committed in this very moment: look again whose commits are there
                if not tries_left:
                    raise
            except Exception as error:  # noqa: BLE001
                # After its commit a story is done, whatever fails then. Later errors are about undoing the work: a
                # `git gc` of somebody else's may have been in the way.
                first = first or error
                is_done = commit and run.tree.find_commit(self._trailers)
                if is_done or not tries_left or not is_about_the_work(error):
                    raise first from None
                evidence, commit = with_error(judged.evidence, first, run.places.folder), False
                judged = judge_and_record(run, judged.attempt, evidence, judged.inspection)
        raise AssertionError("every try returns or raises")

    def _admit(self) -> str:
        """Why no further agent may start in the same iteration, e.g. the rate limit; empty: it may."""
        run = self._run
        for limit in AT_EACH_START:
            while move := limit(self._history, run.rules.limits, run.control.clock()):
                move = within_time(move, self._history, run.rules.limits)
                if isinstance(move, Stop):
                    return move.detail
                if wait(run.journal, run.control.stop, run.control.clock, move.until, move.why):
                    return "the run is stopping"
        return ""

    def _put_plan_back(self) -> str:
        """Restore the plan and leave the iteration open: the agent's edits must not be taken for the user's."""
        run, settling = self._run, self._settling
        if self._before is None or not run.tree.is_in_place():
            return ""
        if settling is not None and not settling.keep:
            self._before = run.plan.undump(read_state(run.places.folder / PLAN_AFTER))
        elif settling is not None and (not settling.commit or run.tree.find_commit(self._trailers)):
            return ""  # the work is kept, and the plan says so
        run.plan.write(self._before)
        return "the plan was restored to its state before this iteration"

    def _take_baseline(self, work: Work, reading: Reading) -> Stop | None:
        """Once per run, after any set-up: tell what is already broken from what an agent breaks."""
        if self._has_baseline or work.mode is Mode.SETUP:
            return None
        self._has_baseline = True
        return self._run.proof.checks.baseline(reading.plan, self._run.tree.tree, reading.plan.story(work.story))

    def _wait(self, move: Wait) -> None:
        run = self._run
        if move.ask and run.control.ask is not None:
            if answer := run.control.ask(move.why, move.until, lambda: run.control.wish().is_any):
                run.journal.write(LimitAnswered(answer))
            return
        wait(run.journal, run.control.stop, run.control.clock, move.until, move.why, lambda: run.control.wish().is_any)

    def _rest(self) -> None:
        """Wait while the run is paused. The plan is read afterwards because it may be edited meanwhile."""
        run = self._run
        if run.control.stop.requested or not run.control.wish().is_pause:
            return
        run.journal.write(Paused())
        begun = run.control.clock()
        while run.control.wish().is_pause:
            if run.control.stop.wait(LOOK):
                return
        if not run.control.wish().stop:
            run.journal.write(Resumed(round(max(run.control.clock() - begun, 0), 3)))

    def _set_aside(self, move: SetAside, reading: Reading) -> None:
        """Mark a story failed, as after its last attempt. If killed before that, the next run starts it afresh."""
        story = reading.plan.story(move.story)
        opened, reasons = reopened(self._run, reading.plan, move.story)
        changes = [SetFields(move.story, {"state": State.FAILED}), *opened]
        self._run.plan.write(self._run.plan.planned(reading, changes, {move.story: move.why, **reasons}))
        self._run.journal.write(StorySetAside(move.story, story.title if story else "", move.why, move.by_user))

    def _retry(self, move: Retry, reading: Reading) -> None:
        """Reopen stories that were given up, with all attempts. The prompt still shows the last failure."""
        opened = [SetFields(story, {"state": State.TODO, "attempts": 0}) for story in move.stories]
        self._run.plan.write(self._run.plan.planned(reading, opened, dict.fromkeys(move.stories, "")))
        self._run.journal.write(StoriesRetried(move.stories))

    def _prove(self, reading: Reading) -> None:
        """Run every check once more on the final tree."""
        run = self._run
        tree = run.proof.prover.final(reading.plan)
        results = run.proof.checks(reading.plan, None, "final", self._history.number, tree)
        put_rules_back(run, self._history.number)  # checks run the agents' code
        agreed = run.tracker.agreement(reading.plan)
        for line in (line for result in agreed for line in result.tail.splitlines()):
            run.journal.write(Noted(line, warning=True))
        if run.control.stop.requested:  # not all of them have run, so nothing is proven
            return
        if not results:
            run.journal.write(Noted("no check is configured: nothing proves that the stories are done", warning=True))
        results += agreed
        passed = all(result.passed for result in results if result.required)
        run.journal.write(Proved(tree=tree, passed=passed, results=results))

    def _remember(self, record: Record) -> None:
        if isinstance(record.event, Settling):
            self._settling = record.event
        self._history = fold(self._history, record.event, record.t)
