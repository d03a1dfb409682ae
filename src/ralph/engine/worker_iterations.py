"""The iterations of workers: how each of them ends, and how accepted work lands in the run's own tree."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import Any

from msgspec.structs import replace

from ralph.core.agent import Outcome
from ralph.core.errors import RalphError
from ralph.core.events import (
    AnyEvent,
    Committed,
    IterationEnded,
    IterationStarted,
    Judged,
    Landing,
    Noted,
    Record,
    Scheduled,
)
from ralph.core.evidence import Ended, Evidence, How
from ralph.core.fallback import next_reviewer
from ralph.core.history import History
from ralph.core.moves import Stop
from ralph.core.plan import Mode
from ralph.core.ports import Reading
from ralph.core.run_ports import Attempt
from ralph.core.text import one_line
from ralph.core.verdict import Kind, Verdict
from ralph.core.work_tree import Inspection, RolledBack
from ralph.core.worker import (
    CANDIDATES,
)
from ralph.engine.judge import judge
from ralph.engine.loop import Loop
from ralph.engine.merge import MergeQueue
from ralph.engine.plan_text import write_plan
from ralph.engine.queue import Entry
from ralph.engine.run import Run
from ralph.engine.settle import Judgement, finish, plan_after, track, trailers_for
from ralph.engine.workers import Active, Budget, Crew, QueueRules
from ralph.host.files import write_bytes
from ralph.host.git.merging import keep_ref, merge_onto, put_tree, same_but_own
from ralph.host.git.repo import Repo
from ralph.host.git.rescue import PREFIX as RESCUE
from ralph.prompts.foreign import fence_for, fenced
from ralph.state.names import PLAN_BEFORE

_MOST_LOSSES = 3
"""Workers that may be lost with one story; the next time the story counts as crashed."""
_REMEMBERED = (IterationStarted, Judged, Committed, IterationEnded)
_LONGEST_TEXT = 6000


class WorkerIterations(Loop):
    def __init__(
        self,
        run: Run,
        history: History,
        crew: Crew,
        budget: Budget,
        repo: Repo,
        rules: QueueRules,
        users_commits: Callable[[], Iterable[str]] = tuple,
        earlier: Callable[[str], tuple[AnyEvent, ...]] = lambda story: (),
    ) -> None:
        """`users_commits` takes in what a person committed meanwhile, and says so. `earlier`: what earlier runs did
        for a story."""
        super().__init__(run, history)
        self._users_commits, self._earlier = users_commits, earlier
        self._crew, self._budget, self._repo, self._rules = crew, budget, repo, rules
        self._active: dict[int, Active] = {}
        self._by_worker: dict[int, int] = {}
        self._queue = MergeQueue(run, crew, repo, rules, self._active, self._return)
        self._carried: dict[str, tuple[str, str]] = {}
        """By story: its last candidate that clashed, and the base of that."""
        self._files: dict[str, tuple[str, ...]] = {}
        """By story: files that its attempts changed."""
        self._past: dict[str, list[AnyEvent]] = {}
        self._losses: dict[str, int] = {}
        self._noted: set[str] = set()
        """What is said about the run, or by one worker for all of them."""
        self._refusal: Stop | None = None
        self._last: Scheduled | None = None
        self._is_stopping = False
        self._has_started = False

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

    def _return(self, active: Active, why: str, output: str, *, is_clash: bool = True) -> None:
        """Back to its story: the next session starts with this work on the new tip."""
        assert active.judged is not None
        run = self._run
        self._queue.remove(active.number)
        self._carried[active.story] = (active.candidate, active.base)
        ref = f"{RESCUE}{run.id}/{active.number}"
        keep_ref(self._repo, ref, active.candidate)
        with contextlib.suppress(RalphError):
            keep_ref(self._repo, f"{CANDIDATES}{run.id}/{active.number}", "", active.candidate)
        text = [f"- your earlier work passed its checks, but {why}" if is_clash else f"- {why}"]
        if is_clash:
            text.append(
                "- it is in the working tree again, on top of what was merged; conflicts are marked in the files"
            )
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

    def _land_next(self) -> bool:
        """Settle one candidate that is proven on exactly this tip, in the run's own tree."""
        ready = self._queue.ready()
        if ready:
            self._land(self._active[ready[0].iteration], ready[0])
        return bool(ready)

    def _land(self, active: Active, entry: Entry) -> None:
        assert active.judged is not None
        run, tip = self._run, self._queue.tip()
        merged, onto = self._queue.merge_of(entry) or (merge_onto(self._repo, tip, entry.commit, entry.base).tree, tip)
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
        put_tree(self._repo, merged, onto)
        inspection = run.tree.inspect(checkpoint)
        evidence = active.merged_evidence or active.judged.evidence
        verdict = judge(evidence)
        run.journal.write(Judged(active.number, evidence, verdict))
        self._active.pop(active.number)
        if self._rules.is_merge:
            attempt = replace(attempt, parents=(entry.commit,))
        ended = self._settle(Judgement(attempt, evidence, inspection, verdict), commit=True)
        self._before = None
        kept = ended.kind.keeps_work
        is_same = kept and same_but_own(self._repo, self._queue.tip(), merged, run.places.is_own)
        if kept:
            self._carried.pop(active.story, None)
            if is_same:  # its content is on the branch
                with contextlib.suppress(RalphError):
                    keep_ref(self._repo, f"{CANDIDATES}{run.id}/{active.number}", "", active.candidate)
            self._queue.landed(active.number, self._queue.tip(), as_proven=is_same)
        else:
            self._queue.remove(active.number)

    def _remember(self, record: Record) -> None:
        super()._remember(record)
        event = record.event
        if isinstance(event, Noted):
            self._noted.add(event.text)
        if isinstance(event, Landing):
            self._rebase_past(event)
        if isinstance(event, IterationEnded) and event.files:
            known = dict.fromkeys((*self._files.get(event.story, ()), *event.files))
            self._files[event.story] = tuple(known)[:200]
        if isinstance(event, _REMEMBERED):
            story = getattr(event, "story", "") or self._story_of(getattr(event, "iteration", 0))
            if story:
                self._past.setdefault(story, []).append(event)

    def _rebase_past(self, landing: Landing) -> None:
        """For reviewers and later sessions the work begins where it was merged, not where its worker began."""
        past = self._past.get(self._story_of(landing.iteration), [])
        for at, event in enumerate(past):
            if isinstance(event, IterationStarted) and event.iteration == landing.iteration:
                past[at] = replace(event, checkpoint={"head": landing.onto}, base=landing.onto)

    def _story_of(self, iteration: int) -> str:
        active = self._active.get(iteration)
        return active.story if active else ""

    def _number(self) -> int:
        return max(self._history.number, *self._active, 0) + 1


def _no_evidence(attempt: Attempt) -> Evidence:
    return Evidence(
        mode=attempt.mode, story=attempt.story, ended=Ended(How.STOPPED), outcome=Outcome(), interrupted=True
    )
