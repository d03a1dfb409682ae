"""Fallbacks: models and agents in their order, and which of them are paused. Pure.

A choice is a name from the settings: a model, an agent, or `agent/model`. The empty choice is the configured default.
If the settings name a reviewer of its own, it is a choice, too: only the agent that met a limit is replaced, and a
story is never reviewed by its author."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from ralph.core.agent import Limit, Trouble
from ralph.core.events import AgentSaid, AnyEvent, IterationEnded, IterationStarted, Judged, RunStarted
from ralph.core.plan import Mode
from ralph.core.rules import Limits
from ralph.core.verdict import Kind

FIRST = ""
_LIMIT = "the usage limit is reached"
_FAILURES = (Kind.REJECTED, Kind.CRASHED, Kind.TIMED_OUT)


class Rest(Struct, frozen=True):
    """Since when a choice is paused, and until when if that is known."""

    since: float
    until: float | None = None
    why: str = ""


class Failures(Struct, frozen=True):
    count: int
    last: float


class Bench(Struct, frozen=True):
    """What is known about the choices of a run."""

    current: str = FIRST
    """Of the iteration that started last."""
    choices: dict[int, str] = {}
    """By number: of the iterations that have not ended."""
    reviewer: str = ""
    """See `Limits.reviewer`."""
    worker: str = ""
    authors: dict[str, str] = {}
    """By story: who did the work that is kept."""
    resting: dict[str, Rest] = {}
    failures: dict[str, dict[str, Failures]] = {}
    """By story and choice: rejections in a row."""
    used: dict[str, dict[str, Limit]] = {}
    """By choice and usage window: the share used."""

    def of(self, iteration: int) -> str:
        return self.choices.get(iteration, self.current)


def note(bench: Bench, event: AnyEvent, t: float) -> Bench:
    change = msgspec.structs.replace
    match event:
        case RunStarted(heard=heard, limits=limits):  # by the first choice's agent; whether by itself is not known
            if limits.reviewer:
                bench = change(bench, reviewer=limits.reviewer, worker=limits.worker)
            for limit in heard:
                bench = _hears(bench, bench.current, limit)
            reached = [limit.resets_at for limit in heard if limit.rejected and limit.resets_at is not None]
            return _rests(bench, bench.current, Rest(t, max(reached), _LIMIT)) if reached else bench
        case AgentSaid(iteration=number, event=Limit() as limit):
            return _hears(bench, bench.of(number), limit)
        case IterationStarted(iteration=number, choice=choice, mode=mode):
            if mode is Mode.REVIEW and bench.reviewer:
                choice = {FIRST: bench.reviewer, bench.worker: FIRST}.get(choice, choice)
            return change(bench, current=choice, choices=bench.choices | {number: choice})
        case Judged(iteration=number, evidence=evidence) if evidence.outcome.trouble is Trouble.BUDGET:
            return _rests(bench, bench.of(number), Rest(t, why="its budget was spent"))
        case IterationEnded(iteration=number):
            choices = {other: choice for other, choice in bench.choices.items() if other != number}
            return change(_after(bench, event, bench.of(number), t), choices=choices)
        case _:
            return bench


def _after(bench: Bench, event: IterationEnded, choice: str, t: float) -> Bench:
    change, kind, story = msgspec.structs.replace, event.kind, event.story
    if kind is Kind.LIMIT:
        return _rests(bench, choice, Rest(t, event.resets_at, _LIMIT))
    if kind in _FAILURES:
        known = bench.failures.get(story, {})
        before = known.get(choice)
        failed = Failures((before.count if before else 0) + 1, t)
        return change(bench, failures=bench.failures | {story: known | {choice: failed}})
    if not kind.keeps_work:
        return bench
    if event.mode in (Mode.IMPLEMENT, Mode.FIX) and bench.authors.get(story, FIRST) != choice:
        bench = change(bench, authors=bench.authors | {story: choice})
    if kind is not Kind.ACCEPTED:
        return bench
    return change(bench, failures={name: known for name, known in bench.failures.items() if name != story})


def set_back(bench: Bench, back: float) -> Bench:
    """Shift recorded times after the clock was set back by this many seconds."""
    change = msgspec.structs.replace
    return change(
        bench,
        resting={name: change(rest, since=rest.since - back) for name, rest in bench.resting.items()},
        failures={
            story: {name: change(failed, last=failed.last - back) for name, failed in known.items()}
            for story, known in bench.failures.items()
        },
    )


def _hears(bench: Bench, choice: str, limit: Limit) -> Bench:
    if limit.utilization is None or limit.resets_at is None:
        return bench
    known = bench.used.get(choice, {})
    return msgspec.structs.replace(bench, used=bench.used | {choice: known | {limit.kind: limit}})


def _rests(bench: Bench, choice: str, rest: Rest) -> Bench:
    return msgspec.structs.replace(bench, resting=bench.resting | {choice: rest})


def choose(bench: Bench, limits: Limits, story: str, now: float, mode: Mode = Mode.IMPLEMENT) -> str:
    """The choice that works on this story now. If all of them failed at it, the one with the fewest failures."""
    names = _order(bench, limits, story, mode)
    awake = [name for name in names if not rests_until(bench, limits, name, now)] or names[:1]
    failed = {name: _failed(bench, limits, story, name, now) for name in awake}
    most = max(limits.fallback_after, 1)
    chosen = min(awake, key=lambda name: max(failed[name] - most + 1, 0))
    if mode is Mode.REVIEW and limits.reviewer:
        return {limits.reviewer: FIRST, FIRST: limits.worker}.get(chosen, chosen)
    return chosen


def _order(bench: Bench, limits: Limits, story: str, mode: Mode) -> list[str]:
    """Who may do this, in this order. Where the settings name a reviewer of its own, the author does not review."""
    if mode is not Mode.REVIEW or not limits.reviewer:
        return [FIRST, *limits.fallback]
    names = dict.fromkeys((limits.reviewer, *limits.fallback, FIRST))
    return [name for name in names if name != bench.authors.get(story, FIRST)] or [limits.reviewer]


def _everybody(limits: Limits) -> list[str]:
    return list(dict.fromkeys((FIRST, *filter(None, (limits.reviewer,)), *limits.fallback)))


def paused_until(bench: Bench, limits: Limits, story: str, mode: Mode, now: float) -> float:
    """When somebody can do this again, if everybody who may is at a usage limit. 0: somebody can now."""
    if not limits.reviewer and not limits.fallback:
        return 0.0  # there is only one choice, and a guard waits for it
    untils = []
    for name in _order(bench, limits, story, mode):
        rest = bench.resting.get(name)
        is_limit = (rest is not None and rest.why == _LIMIT) or _at_share(bench, limits, name) > now
        untils.append(rests_until(bench, limits, name, now) if is_limit else 0.0)
    return min(untils)


def is_anybody_left(bench: Bench, limits: Limits, now: float) -> bool:
    """Whether another choice can work while one is paused."""
    rests = [rests_until(bench, limits, choice, now) for choice in _everybody(limits)]
    return len(rests) > 1 and any(rests) and not all(rests)


def rests_until(bench: Bench, limits: Limits, choice: str, now: float) -> float:
    """0: not paused. An implausible reset time is not waited for, because there is an alternative."""
    rest = bench.resting.get(choice)
    until = _at_share(bench, limits, choice)
    if rest is not None:
        until = max(until, _rest_ends(rest, limits))
    return until if until > now else 0.0


def _rest_ends(rest: Rest, limits: Limits) -> float:
    if rest.until is None:
        return rest.since + limits.fallback_cooldown
    return rest.since + limits.doubtful_wait if limits.is_doubtful(rest.until, rest.since) else rest.until


def first_awake(bench: Bench, limits: Limits, now: float) -> float:
    """When the first paused choice may work again."""
    return min(rests_until(bench, limits, choice, now) for choice in _everybody(limits))


def _at_share(bench: Bench, limits: Limits, choice: str) -> float:
    """Until when so much of its usage window is used that the rest is reserved for interactive use."""
    windows = bench.used.get(choice, {}).values() if 0 < limits.limit_share < 1 else ()
    return max((w.resets_at or 0.0 for w in windows if (w.utilization or 0.0) >= limits.limit_share), default=0.0)


def explain(bench: Bench, limits: Limits, story: str, now: float) -> Iterator[tuple[str, str]]:
    """Each choice, and what prevents it from working."""
    for choice in (FIRST, *limits.fallback):
        why = ""
        if rests_until(bench, limits, choice, now):
            at_share = _at_share(bench, limits, choice) > now
            why = f"{limits.limit_share:.0%} of a usage limit is used" if at_share else bench.resting[choice].why
        elif (failed := _failed(bench, limits, story, choice, now)) >= max(limits.fallback_after, 1):
            why = f"failed {failed} times in a row at this story"
        yield choice, why


def _failed(bench: Bench, limits: Limits, story: str, choice: str, now: float) -> int:
    failed = bench.failures.get(story, {}).get(choice)
    if failed is None or abs(now - failed.last) > limits.fallback_cooldown:
        return 0
    return failed.count


def parts(choice: str, agents: Sequence[str]) -> tuple[str, str]:
    """Agent and model of a choice; empty: as configured."""
    name, slash, model = choice.partition("/")
    if choice in agents:
        return choice, ""
    if slash and name in agents:
        return name, model
    return "", choice
