"""Explain why a run ended, with the evidence, its circuit breakers and what to do next. Read from its journal. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from msgspec import Struct

from ralph.core.events import IterationEnded, Judged, Proved, Record, RunEnded, RunStarted, StepEnded
from ralph.core.evidence import CheckResult
from ralph.core.history import History, fold
from ralph.core.moves import Reason
from ralph.core.plan import State
from ralph.core.proof import KEPT_UNPROVEN
from ralph.core.rules import Limits, OnStuck, Streak
from ralph.core.text import plural
from ralph.core.verdict import Kind
from ralph.engine.decide import cap
from ralph.engine.steps import Position
from ralph.journal.run_state import RunState
from ralph.report.advice import in_worktree, next_step, why_ended

_LAST = 5
_TAIL = 12
_KILLED = "It was killed, or its machine went down: its journal has no end record."
_NEXT_KILLED = "`ralph run` finishes or undoes what it left open, then continues"


class Past(Struct, frozen=True):
    """What explains one iteration."""

    iteration: int
    mode: str
    story: str
    verdict: Kind
    headline: str
    reasons: tuple[str, ...] = ()
    """Besides the headline."""
    worker: int = 0
    """0: a run without workers."""


class Counter(Struct, frozen=True):
    what: str
    count: int
    most: int
    """0: no limit."""


class Explanation(Struct, frozen=True, kw_only=True):
    run: str
    plan: str
    state: str
    """ended, running, paused, or killed."""
    reason: str = ""
    exit_code: int | None = None
    why: str
    detail: str = ""
    next: str
    seconds: float
    done: int
    total: int
    last: tuple[Past, ...] = ()
    failing: tuple[CheckResult, ...] = ()
    """The checks that failed last, each with the end of its output."""
    counters: tuple[Counter, ...] = ()
    stuck: dict[str, str] = {}
    """Stories that failed, are blocked or wait, and why."""
    rescues: tuple[str, ...] = ()


def explain(records: Iterable[Record], *, is_alive: bool) -> Explanation:
    state, history, limits = RunState(), History(), Limits()
    failing: tuple[CheckResult, ...] = ()
    for record in records:
        state.add(record)
        history = fold(history, record.event, record.t)
        failing = _failing(record, failing)
    if state.started is not None:
        limits = state.started.limits
    reason = state.ended.reason if state.ended else None
    standing, why, what_next = tell_standing(state, is_alive)
    return Explanation(
        run=state.started.run if state.started else "",
        plan=state.started.name if state.started else "",
        state=standing,
        reason=reason.value if reason else "",
        exit_code=int(reason.exit_code) if reason else None,
        why=why,
        detail=state.ended.detail if state.ended else "",
        next=what_next,
        seconds=round(state.now - state.started_at, 3),
        done=state.done,
        total=state.total,
        last=tuple(_past(event, state) for event in list(state.iterations)[-_LAST:]),
        failing=failing,
        counters=tuple(_counters(history, limits)),
        stuck=_stuck(state, history),
        rescues=tuple(state.rescues[-_LAST:]),
    )


def tell_standing(state: RunState, is_alive: bool) -> tuple[str, str, str]:
    """Ended, killed, paused or running; why; and what to do next."""
    if state.ended is not None:
        return "ended", why_ended(state), next_step(state)
    if not is_alive:
        return "killed", _KILLED, in_worktree(state, _NEXT_KILLED)
    if state.paused_since is not None:
        return "paused", "It has not ended: it is paused.", "`ralph resume` continues it"
    doing = "It has not ended: it is running."
    if state.waiting is not None:
        until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(state.waiting.until))
        doing = f"It has not ended: it is waiting until {until}. {state.waiting.why}."
    elif state.is_parallel and (started := state.started_by_workers):
        stories = ", ".join(each.story or each.mode.value for each in started[:_LAST])
        more = f" and {len(started) - _LAST} more" if len(started) > _LAST else ""
        doing = f"It has not ended: {plural(len(state.parallel.known), 'worker')}, open are {stories}{more}."
    elif state.current is not None:
        doing = f"It has not ended: iteration {state.current.iteration} works on {state.current.story or 'the set-up'}."
    return "running", doing, "`ralph watch` shows it; `ralph pause` and `ralph stop` control it"


def _failing(record: Record, before: tuple[CheckResult, ...]) -> tuple[CheckResult, ...]:
    """The failures of the latest pass of the checks. A pass without failures clears the earlier ones."""
    match record.event:
        case Judged(evidence=evidence) if evidence.checks:
            results: tuple[CheckResult, ...] = evidence.checks
        case Proved(results=results) if results:
            pass
        case _:
            return before
    return tuple(check for check in results if check.required and not check.passed)


def _past(event: IterationEnded, state: RunState) -> Past:
    started = state.parallel.started(event.iteration)
    worker = started.worker if started else 0
    return Past(event.iteration, event.mode.value, event.story, event.kind, event.headline, event.reasons, worker)


def _counters(history: History, limits: Limits) -> Iterator[Counter]:
    yield Counter("iterations", history.iterations, cap(history, limits))
    yield Counter("without progress, in a row", history.streak.no_progress, limits.no_progress)
    yield Counter("same error, in a row", history.streak.same_error, limits.same_error)
    yield Counter("transport failures, in a row", history.transport, limits.max_transport)
    yield Counter("agents that exited at once, in a row", history.crashes, limits.crash_loop)


def _stuck(state: RunState, history: History) -> dict[str, str]:
    known = history.asked | history.aside
    last = {event.story: event.headline for event in state.iterations}
    stuck = (story for story in state.stories.values() if story.state in (State.FAILED, State.BLOCKED))
    known |= dict.fromkeys(state.waiting_for_proof, KEPT_UNPROVEN)
    return known | {story.id: known.get(story.id) or last.get(story.id) or story.state.value for story in stuck}


def tail(check: CheckResult) -> list[str]:
    """The end of its output, which usually shows the reason."""
    return check.tail.rstrip().splitlines()[-_TAIL:]


_TRIPPED = (Reason.NO_PROGRESS, Reason.SAME_ERROR, Reason.CRASH_LOOP)


class Counters(Struct, frozen=True):
    """One breaker. `why` is empty while it is closed."""

    position: Position
    no_progress: int = 0
    same_error: int = 0
    error: str = ""
    """Message of the last failure."""
    why: str = ""


class Circuits(Struct, frozen=True, kw_only=True):
    run: str
    ended: str = ""
    """The reason it ended, if it has."""
    no_progress_threshold: int = 0
    same_error_threshold: int = 0
    on_stuck: OnStuck = OnStuck.STOP
    whole: Counters
    set_aside_in_a_row: int = 0
    died_at_once: int = 0
    crash_loop_threshold: int = 0
    stories: dict[str, Counters] = {}
    steps: dict[str, Counters] = {}
    """Steps whose own circuit breaker was open when they were last due."""


def circuits(records: Iterable[Record]) -> Circuits:
    history, limits, ended = History(), Limits(), None
    steps: dict[str, Counters] = {}
    for record in records:
        event = record.event
        history = fold(history, event, record.t)
        match event:
            case RunStarted():
                limits = event.limits
            case RunEnded():
                ended = event
            case StepEnded(step=step, skipped=skipped):
                steps.pop(step, None)
                if skipped:
                    steps[step] = Counters(Position.OPEN, why=skipped)
    stopped = ended.detail if ended and ended.reason in _TRIPPED else ""
    stories = {name: _counted(streak, streak.trip(limits)) for name, streak in history.stories.items() if name}
    stories |= {name: Counters(Position.OPEN, why=why) for name, why in history.aside.items()}
    return Circuits(
        run=history.run,
        ended=ended.reason.value if ended else "",
        no_progress_threshold=limits.no_progress,
        same_error_threshold=limits.same_error,
        on_stuck=limits.on_stuck,
        whole=_counted(history.streak, stopped),
        set_aside_in_a_row=history.stuck,
        died_at_once=history.crashes,
        crash_loop_threshold=limits.crash_loop,
        stories=stories,
        steps=steps,
    )


def _counted(streak: Streak, why: str) -> Counters:
    position = Position.OPEN if why else Position.CLOSED
    return Counters(position, streak.no_progress, streak.same_error, streak.said, why)
