"""From the records of a run to its spans: run, story, iteration, and in it session, proof, checks, merge. Pure.

A story's iterations may lie far apart, with others between them: its span lasts from the first to the last of them.
Of texts only names and the loop's own reasons are told, which the journal has redacted: no prompt, no answer, no
command of an agent and no output.
"""

from __future__ import annotations

from ralph.core import events as told
from ralph.core.events import AnyEvent, Record
from ralph.core.exit_codes import ExitCode
from ralph.core.plan import State
from ralph.core.text import one_line
from ralph.core.trace_context import TraceContext
from ralph.core.verdict import Kind
from ralph.traces import gen_ai
from ralph.traces.checks import Checks
from ralph.traces.sessions import Sessions
from ralph.traces.span import OpenSpan, Span, Status, Tree

KILLED = "killed: the process of the run is gone"
_FAILED = frozenset(
    (Kind.REJECTED, Kind.LIMIT, Kind.TRANSPORT, Kind.CRASHED, Kind.TIMED_OUT, Kind.MISCONFIGURED, Kind.RETURNED)
)
_WIDTH = 300
_Queue = told.Queued | told.QueueProving | told.QueueProved | told.Landing
_Rest = told.WaitStarted | told.WaitEnded | told.Paused | told.Resumed


class Tracer:
    """Finished spans from the records of one run, as they come."""

    def __init__(self) -> None:
        self.started: told.RunStarted | None = None
        """How the run began, once that is known."""
        self._run: _Run | None = None

    @property
    def is_over(self) -> bool:
        return self._run is not None and self._run.is_over

    def add(self, record: Record) -> list[Span]:
        """The spans that ended with this record."""
        if self._run is None:
            if isinstance(record.event, told.RunStarted):
                self.started = record.event
                self._run = _Run(record.event, record.t)
            return []
        if self._run.is_over:
            return []
        self._run.see(record)
        return self._run.tree.take()

    def close(self) -> list[Span]:
        """What is open, of a run that will add no record: everything that was under way was killed."""
        if self._run is None or self._run.is_over:
            return []
        self._run.end(KILLED)
        return self._run.tree.take()


class _Run:
    def __init__(self, started: told.RunStarted, now: float) -> None:
        context = TraceContext(started.run, started.traceparent, started.tracestate)
        self.tree = Tree(context, now, "ralph run")
        self.is_over = False
        self._sessions = Sessions(self.tree, started.agent, started.model)
        self._checks = Checks(self.tree)
        self._stories: dict[str, OpenSpan] = {}
        self._iterations: dict[int, OpenSpan] = {}
        self._merges: dict[int, OpenSpan] = {}
        self._waits: list[OpenSpan] = []
        self._pause: OpenSpan | None = None
        self._count = 0
        self.tree.root.put(
            {
                "ralph.run": started.run,
                "ralph.plan": one_line(started.name, 100),
                "ralph.layout": started.layout,
                "ralph.branch": started.branch,
                "ralph.agent": started.agent,
                "ralph.stories": started.total,
                "gen_ai.request.model": started.model,
            }
        )

    def see(self, record: Record) -> None:
        event, tree = record.event, self.tree
        tree.now = max(tree.now, record.t)
        match event:
            case told.IterationStarted():
                self._start_iteration(event)
            case told.IterationEnded():
                self._end_iteration(event)
            case told.AgentStarted() | told.AgentSaid() | told.AgentEnded() | told.Charged() | told.HookAnswered():
                self._sessions.see(event, self._of(event.iteration))
            case told.StepEnded():
                self._end_step(event)
            case told.SessionTaken(iteration=number):
                self._sessions.settle(number)
                if number in self._iterations:
                    self._checks.prove(number, self._iterations[number], "proof")
            case told.Judged(iteration=number, verdict=verdict):
                why = one_line(verdict.headline, _WIDTH)
                tree.tell(self._of(number), "verdict", kind=verdict.kind.value, grade=verdict.grade, reason=why)
                self._checks.proven(number, verdict)
            case told.CheckStarted(iteration=number):
                self._checks.start(event, self._merges.get(number) or self._of(number))
            case told.CheckEnded(iteration=number):
                self._checks.end(event, self._of(number))
            case told.Baseline() | told.Proved():
                self._checks.end_all(event)
            case told.Queued() | told.QueueProving() | told.QueueProved() | told.Landing():
                self._see_queue(event)
            case told.WaitStarted() | told.WaitEnded() | told.Paused() | told.Resumed():
                self._see_rest(event)
            case told.StorySetAside(story=story, why=why) if story in self._stories:
                self._stories[story].judge(Status.ERROR, one_line(why, _WIDTH))
            case told.RunEnded():
                self._end_run(event)
            case _:
                self._see_moment(event)

    def _of(self, number: int) -> OpenSpan:
        return self._iterations.get(number) or self.tree.root

    def _start_iteration(self, event: told.IterationStarted) -> None:
        number = event.iteration
        self._checks.begin_work()
        if number in self._iterations:  # by no journal that Ralph wrote
            self.tree.finish(self._iterations[number])
        parent = (self._stories.get(event.story) or self._start_story(event)) if event.story else self.tree.root
        span = self.tree.open(parent, f"iteration {event.mode.value}", "iteration", number)
        self._iterations[number] = span
        self._count += 1
        span.put(
            {
                "ralph.iteration": number,
                "ralph.mode": event.mode.value,
                "ralph.story": one_line(event.story, 60),
                "ralph.attempt": event.attempt,
                "ralph.worker": event.worker or None,
                "ralph.choice": event.choice,
            }
        )

    def _start_story(self, event: told.IterationStarted) -> OpenSpan:
        story = one_line(event.story, 60)
        span = self.tree.open(self.tree.root, f"story {story}", "story", event.story)
        span.put({"ralph.story": story, "ralph.story.title": one_line(event.title, 100)})
        self._stories[event.story] = span
        return span

    def _end_iteration(self, event: told.IterationEnded) -> None:
        number = event.iteration
        self._sessions.settle(number)
        span, cost = self._iterations.pop(number, None), self._sessions.forget(number)
        self._checks.forget(number)
        self._merges.pop(number, None)
        if span is None:
            return
        span.put(
            {
                "ralph.verdict": event.kind.value,
                "ralph.grade": event.grade,
                "ralph.files": len(event.files),
                "ralph.commit": event.commit,
                "ralph.rescue": event.rescue,
                "ralph.cost.usd": event.cost_usd if cost is None else cost,
                **gen_ai.used(event.tokens),
            }
        )
        if event.kind in _FAILED:
            span.put({"error.type": event.kind.value})
            span.judge(Status.ERROR, one_line(event.headline, _WIDTH) or event.kind.value)
        elif event.kind is Kind.ACCEPTED:
            span.judge(Status.OK)
        self.tree.finish(span)
        self._judge_story(event)

    def _judge_story(self, event: told.IterationEnded) -> None:
        if (story := self._stories.get(event.story)) is None:
            return
        story.put({"ralph.grade": event.grade, "ralph.attempts": event.attempts or None})
        if event.story_state is None:
            return
        story.put({"ralph.story.state": event.story_state.value})
        if event.story_state is State.FAILED:
            story.judge(Status.ERROR, one_line(event.why or event.headline, _WIDTH))
        else:
            story.judge(Status.OK if event.story_state is State.DONE else Status.UNSET)

    def _end_step(self, event: told.StepEnded) -> None:
        number = event.iteration
        self._sessions.settle(number)
        if event.kind == "agent" or event.skipped:
            return
        start = self.tree.now - max(event.seconds, 0)
        name = one_line(event.step, 60)
        span = self.tree.open(self._of(number), f"step {name}", "step", number, event.step, start=start)
        span.put({"ralph.step": name, "ralph.step.kind": event.kind, "ralph.tries": event.tries})
        if not event.ok:
            span.judge(Status.ERROR, "the step failed")
        self.tree.finish(span)

    def _see_queue(self, event: _Queue) -> None:
        match event:
            case told.Queued(iteration=number) if number in self._iterations and number not in self._merges:
                self._merges[number] = self.tree.open(self._iterations[number], "merge", "merge", number)
            case told.QueueProving(iterations=numbers, merged=merged):
                for number in numbers:
                    if (parent := self._merges.get(number) or self._iterations.get(number)) is not None:
                        span = self._checks.prove(number, parent, "merge proof", merged)
                        batch = tuple(map(str, numbers))
                        span.put({"ralph.merged": merged, "ralph.batch": batch, "ralph.worker": event.worker or None})
            case told.QueueProved(iterations=numbers, merged=merged):
                for number in numbers:
                    self._checks.merged(number, merged, passed=event.passed, why=event.why)
            case told.Landing(iteration=number) if number in self._merges:
                self.tree.tell(self._merges[number], "landing", commit=event.commit)

    def _see_rest(self, event: _Rest) -> None:
        match event:
            case told.WaitStarted(why=why):
                span = self.tree.open(self.tree.root, "wait", "wait")
                span.put({"ralph.why": one_line(why, _WIDTH)})
                self._waits.append(span)
            case told.WaitEnded() if self._waits:
                self.tree.finish(self._waits.pop(0))
            case told.Paused() if self._pause is None:
                self._pause = self.tree.open(self.tree.root, "paused", "paused")
            case told.Resumed() if self._pause is not None:
                self.tree.finish(self._pause)
                self._pause = None

    def _see_moment(self, event: AnyEvent) -> None:
        tree = self.tree
        match event:
            case told.WorkerStarted(worker=worker):
                tree.tell(tree.root, "worker started", worker=worker, seconds=event.seconds)
            case told.WorkerLost(worker=worker, why=why):
                tree.tell(tree.root, "worker lost", worker=worker, why=one_line(why, _WIDTH))
            case told.Asked(verb=verb):
                tree.tell(tree.root, "request", verb=verb.value)
            case told.Recovered(run=run):
                tree.tell(tree.root, "recovered", run=run)
            case told.HostRefused(iteration=number, host=host):
                tree.tell(self._of(number), "host refused", host=host, port=event.port, count=event.count)
            case told.RolledBack(iteration=number):
                tree.tell(self._of(number), "rolled back", removed=event.removed, rewritten=event.rewritten)
            case told.Committed(iteration=number):
                tree.tell(self._of(number), "committed", commit=event.commit, by_agent=event.by_agent)

    def _end_run(self, event: told.RunEnded) -> None:
        root, reason = self.tree.root, event.reason
        root.put({"ralph.reason": reason.value})
        if reason.exit_code is ExitCode.COMPLETE:
            root.judge(Status.OK)
        else:
            detail = one_line(event.detail, _WIDTH)
            root.put({"error.type": reason.value})
            root.judge(Status.ERROR, f"{reason.value}: {detail}" if detail else reason.value)
        self.end("")

    def end(self, why: str) -> None:
        """`why`: the run has no record of its end."""
        self._sessions.settle_all()
        self.tree.root.put({"ralph.iterations": self._count, "ralph.cost.usd": self._sessions.cost})
        for story in self._stories.values():
            is_open = bool(story.children)
            self.tree.finish(story, end=None if is_open else story.last, why=why if is_open else "")
        self.tree.finish(self.tree.root, why=why)
        self.is_over = True
