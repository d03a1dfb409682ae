"""Fallbacks: models and agents in their order, and which of them are paused. Pure.

A choice is a name from the settings: a model, an agent, or `agent/model`. The empty choice is the configured default.
If the settings name a reviewer of its own, it is a choice, too: only the agent that met a limit is replaced, and a
story is never reviewed by its author."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from ralph.core.agent import Limit, Trouble
from ralph.core.complexity import complexity
from ralph.core.events import AgentSaid, AnyEvent, IterationEnded, IterationStarted, Judged, RunStarted
from ralph.core.plan import Mode, Story
from ralph.core.rules import Limits
from ralph.core.text import one_line
from ralph.core.verdict import Kind

FIRST = ""
OTHER = "other"
"""As `review.agent`: an agent of the run, but not the one that did the work."""
_LIMIT = "the usage limit is reached"
_UNREACHABLE = "its service cannot be reached"
_FAILURES = (Kind.REJECTED, Kind.CRASHED, Kind.TIMED_OUT)
_NOT_HEARD = (Kind.INTERRUPTED, Kind.RETURNED)
"""Ends that do not show whether the service answered."""
_UNUSABLE = (None, Trouble.AUTHENTICATION, Trouble.BILLING, Trouble.MODEL)
"""Troubles that another agent does not have: no program, no login, no credit, no such model."""


class Rest(Struct, frozen=True):
    """Since when a choice is paused, and until when if that is known."""

    since: float
    until: float | None = None
    why: str = ""
    window: str = ""
    """The usage window that the agent reported as used up."""
    is_unusable: bool = False
    """It was not found, not logged in, or the like: waiting does not help."""


class Failures(Struct, frozen=True):
    count: int
    last: float


class Bench(Struct, frozen=True):
    """What is known about the choices of a run."""

    current: str = FIRST
    """Of the iteration that started last."""
    choices: dict[int, str] = {}
    """By number: of the iterations that have not ended."""
    begun: dict[int, float] = {}
    """By number: when they started."""
    reviewer: str = ""
    """See `Limits.reviewer`."""
    worker: str = ""
    authors: dict[str, str] = {}
    """By story: who did the work that is kept."""
    resting: dict[str, Rest] = {}
    failures: dict[str, dict[str, Failures]] = {}
    """By story and choice: rejections in a row."""
    unreachable: dict[str, Failures] = {}
    """By choice: failures in a row to reach its service."""
    used: dict[str, dict[str, Limit]] = {}
    """By choice and usage window: the share used."""
    agents: dict[str, str] = {}
    """See `Limits.agents`."""

    def of(self, iteration: int) -> str:
        return self.choices.get(iteration, self.current)

    def is_firsts(self, iteration: int) -> bool:
        """Whether the agent of the first choice does it, maybe with another model."""
        return not self.agents or self.agents.get(self.of(iteration)) == self.agents[FIRST]


def note(bench: Bench, event: AnyEvent, t: float) -> Bench:
    change = msgspec.structs.replace
    match event:
        case RunStarted(heard=heard, limits=limits):  # by the first choice's agent; whether by itself is not known
            if limits.worker or limits.agents:
                bench = change(bench, reviewer=limits.reviewer, worker=limits.worker, agents=limits.agents)
            if event.authors:
                bench = change(bench, authors=event.authors)
            for limit in heard:
                bench = _hears(bench, bench.current, limit)
            reached = [limit.resets_at for limit in heard if limit.rejected and limit.resets_at is not None]
            return _rests(bench, bench.current, Rest(t, max(reached), _LIMIT)) if reached else bench
        case AgentSaid(iteration=number, event=Limit() as limit):
            return _hears(_told(bench, bench.of(number), limit, t), bench.of(number), limit)
        case IterationStarted(iteration=number, choice=choice, mode=mode):
            if mode is Mode.REVIEW and bench.worker:
                choice = {FIRST: bench.reviewer, bench.worker: FIRST}.get(choice, choice)
            choices, begun = bench.choices | {number: choice}, bench.begun | {number: t}
            return change(bench, current=choice, choices=choices, begun=begun)
        case Judged(iteration=number, evidence=evidence) if evidence.outcome.trouble is Trouble.BUDGET:
            return _rests(bench, bench.of(number), Rest(t, why="its budget was spent"))
        case Judged(iteration=number, evidence=evidence, verdict=verdict) if (
            verdict.kind is Kind.MISCONFIGURED and evidence.outcome.trouble in _UNUSABLE
        ):
            return _rests(bench, bench.of(number), Rest(t, why=one_line(verdict.headline, 200), is_unusable=True))
        case IterationEnded(iteration=number):
            after = _reached(_after(bench, event, bench.of(number), t), event, t)
            choices = {other: choice for other, choice in bench.choices.items() if other != number}
            begun = {other: since for other, since in bench.begun.items() if other != number}
            return change(after, choices=choices, begun=begun)
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


def _reached(bench: Bench, event: IterationEnded, t: float) -> Bench:
    """With several workers, one that started before the last failure and fails too is no second time."""
    choice = bench.of(event.iteration)
    before = bench.unreachable.get(choice)
    if event.kind is Kind.TRANSPORT:
        if before is not None and bench.begun.get(event.iteration, t) < before.last:
            return bench
        failed = Failures((before.count if before else 0) + 1, t)
        return msgspec.structs.replace(bench, unreachable=bench.unreachable | {choice: failed})
    if before is None or event.kind in _NOT_HEARD:
        return bench
    others = {name: failed for name, failed in bench.unreachable.items() if name != choice}
    return msgspec.structs.replace(bench, unreachable=others)


def _told(bench: Bench, choice: str, limit: Limit, t: float) -> Bench:
    """An agent may report a usage limit and still finish its work: it is the next session that cannot work."""
    rest = bench.resting.get(choice)
    if limit.rejected and limit.resets_at is not None:
        return _rests(bench, choice, Rest(t, limit.resets_at, _LIMIT, limit.kind))
    if limit.rejected or rest is None or not rest.window or rest.window != limit.kind:
        return bench
    resting = {name: other for name, other in bench.resting.items() if name != choice}
    return msgspec.structs.replace(bench, resting=resting)


def set_back(bench: Bench, back: float) -> Bench:
    """Shift recorded times after the clock was set back by this many seconds."""
    change = msgspec.structs.replace
    return change(
        bench,
        resting={name: change(rest, since=rest.since - back) for name, rest in bench.resting.items()},
        begun={number: since - back for number, since in bench.begun.items()},
        unreachable={name: change(failed, last=failed.last - back) for name, failed in bench.unreachable.items()},
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


def first_choice(limits: Limits, story: Story, mode: Mode) -> str:
    """Who does this, as far as it depends on the story: by routing, or as the next of several reviewers."""
    if mode is Mode.REVIEW:
        return limits.reviewers.get(next_reviewer(tuple(limits.reviewers), story), FIRST)
    return limits.routes.get(complexity(story).level.value, FIRST) if limits.routes else FIRST


def next_reviewer(reviewers: Sequence[str], story: Story | None) -> str:
    """The first reviewer who has not given a verdict in this round."""
    heard = story.ledger.heard if story else ()
    return next((name for name in reviewers if name not in heard), reviewers[0] if reviewers else "")


def choose(
    bench: Bench, limits: Limits, story: str, now: float, mode: Mode = Mode.IMPLEMENT, first: str = FIRST
) -> str:
    """The choice that works on this story now. If all of them failed at it, the one with the fewest failures.

    `first`: see `first_choice`.
    """
    names = _order(bench, limits, story, mode, first)
    awake = [name for name in names if not rests_until(bench, limits, name, now)]
    awake = awake or _worth_a_try(bench, limits, names, now)
    failed = {name: _failed(bench, limits, story, name, now) for name in awake}
    most = max(limits.fallback_after, 1)
    chosen = min(awake, key=lambda name: max(failed[name] - most + 1, 0))
    if mode is Mode.REVIEW and _has_reviewers(limits, first):  # without a choice, who reviews is in the settings
        return {limits.reviewer or None: FIRST, FIRST: limits.worker}.get(chosen, chosen)
    return chosen


def _worth_a_try(bench: Bench, limits: Limits, names: list[str], now: float) -> list[str]:
    """One of those that all rest: a service may answer again, a spent budget may be raised."""
    if not limits.agents:  # a run of an older version
        return names[:1]
    usable = [name for name in names if not _is_unusable(bench, limits, name, now)] or names
    return [name for name in usable if not _limited_until(bench, limits, name, now)][:1] or usable[:1]


def _has_reviewers(limits: Limits, first: str) -> bool:
    return bool(first or limits.reviewer or limits.reviewed_by_other)


def _order(bench: Bench, limits: Limits, story: str, mode: Mode, first: str) -> list[str]:
    """Who may do this, in this order. Where the settings name a reviewer of its own, the author does not review."""
    if mode is not Mode.REVIEW or not _has_reviewers(limits, first):
        return list(dict.fromkeys((first, *limits.fallback)))
    author = bench.authors.get(story, FIRST)
    by = _agent(limits, author)
    if first:  # a stand-in for one of several reviewers must not share a vendor with another reviewer
        taken = {by, *(_agent(limits, choice) for choice in limits.reviewers.values() if choice)}
        return [first, *(name for name in limits.fallback if _agent(limits, name) not in taken)]
    if limits.reviewed_by_other:
        return [name for name in _everybody(limits) if _agent(limits, name) != by] or [FIRST]
    names = dict.fromkeys((limits.reviewer, *limits.fallback, FIRST))
    return [name for name in names if name != author] or [limits.reviewer]


def _agent(limits: Limits, choice: str) -> str:
    return limits.agents.get(choice) or choice.partition("/")[0]


def _everybody(limits: Limits) -> list[str]:
    named = (limits.reviewer, *limits.fallback, *limits.routes.values(), *limits.reviewers.values())
    return list(dict.fromkeys((FIRST, *filter(None, named))))


def paused_until(bench: Bench, limits: Limits, story: str, mode: Mode, now: float, first: str = FIRST) -> float:
    """When somebody can do this again, if everybody who may is at a usage limit. 0: somebody can now."""
    if len(_everybody(limits)) == 1:
        return 0.0  # there is only one choice, and a guard waits for it
    names = _order(bench, limits, story, mode, first)
    usable = [name for name in names if not _is_unusable(bench, limits, name, now)] or names
    return min(_limited_until(bench, limits, name, now) for name in usable)


def _limited_until(bench: Bench, limits: Limits, choice: str, now: float) -> float:
    """0: not at a usage limit."""
    rest = _rest(bench, limits, choice)
    is_limit = (rest is not None and rest.why == _LIMIT) or _at_share(bench, limits, choice) > now
    return rests_until(bench, limits, choice, now) if is_limit else 0.0


def _is_unusable(bench: Bench, limits: Limits, choice: str, now: float) -> bool:
    rest = _rest(bench, limits, choice)
    return rest is not None and rest.is_unusable and _rest_ends(rest, limits) > now


def goes_on_without(bench: Bench, limits: Limits, now: float) -> bool:
    """Whether the choice that worked last cannot be used, and another one can."""
    others = _everybody(limits)
    is_unusable = _is_unusable(bench, limits, bench.current, now)
    return is_unusable and not all(_is_unusable(bench, limits, choice, now) for choice in others)


def is_anybody_usable(bench: Bench, limits: Limits, story: str, mode: Mode, now: float, first: str = FIRST) -> bool:
    return not all(_is_unusable(bench, limits, name, now) for name in _order(bench, limits, story, mode, first))


def is_anybody_awake(bench: Bench, limits: Limits, story: str, mode: Mode, now: float, first: str = FIRST) -> bool:
    return not all(rests_until(bench, limits, name, now) for name in _order(bench, limits, story, mode, first))


def goes_on(bench: Bench, limits: Limits, now: float) -> bool:
    """Whether somebody else can work instead of the choice that just could not."""
    return bool(rests_until(bench, limits, bench.current, now)) and is_anybody_left(bench, limits, now)


def is_anybody_left(bench: Bench, limits: Limits, now: float) -> bool:
    """Whether another choice can work while one is paused."""
    rests = [rests_until(bench, limits, choice, now) for choice in _everybody(limits)]
    return len(rests) > 1 and any(rests) and not all(rests)


def rests_until(bench: Bench, limits: Limits, choice: str, now: float) -> float:
    """0: not paused. An implausible reset time is not waited for, because there is an alternative."""
    rest = _rest(bench, limits, choice)
    until = max(_at_share(bench, limits, choice), _unreachable_until(bench, limits, choice))
    if rest is not None:
        until = max(until, _rest_ends(rest, limits))
    return until if until > now else 0.0


def _unreachable_until(bench: Bench, limits: Limits, choice: str) -> float:
    failed = bench.unreachable.get(choice)
    if failed is None or not limits.agents or failed.count < max(limits.fallback_after, 1):
        return 0.0
    return failed.last + limits.fallback_cooldown


def _rest(bench: Bench, limits: Limits, choice: str) -> Rest | None:
    """Runs of older versions, which do not record the agents, went on in spite of what an agent said by the way."""
    rest = bench.resting.get(choice)
    return rest if rest is None or limits.agents or not (rest.window or rest.is_unusable) else None


def _rest_ends(rest: Rest, limits: Limits) -> float:
    if rest.until is None:
        return rest.since + limits.fallback_cooldown
    return rest.since + limits.doubtful_wait if limits.is_doubtful(rest.until, rest.since) else rest.until


def first_awake(bench: Bench, limits: Limits, now: float) -> float:
    """When the first paused choice may work again. 0: one can now, or there is only one."""
    if len(_everybody(limits)) == 1:
        return 0.0
    return min(rests_until(bench, limits, choice, now) for choice in _everybody(limits))


def _at_share(bench: Bench, limits: Limits, choice: str) -> float:
    """Until when so much of its usage window is used that the rest is reserved for interactive use."""
    windows = bench.used.get(choice, {}).values() if 0 < limits.limit_share < 1 else ()
    return max((w.resets_at or 0.0 for w in windows if (w.utilization or 0.0) >= limits.limit_share), default=0.0)


def explain(
    bench: Bench, limits: Limits, story: str, now: float, mode: Mode = Mode.IMPLEMENT, first: str = FIRST
) -> Iterator[tuple[str, str]]:
    """Each choice, and what prevents it from working."""
    for choice in _order(bench, limits, story, mode, first):
        why = ""
        if rests_until(bench, limits, choice, now):
            why = _why_resting(bench, limits, choice, now)
        elif (failed := _failed(bench, limits, story, choice, now)) >= max(limits.fallback_after, 1):
            why = f"failed {failed} times in a row at this story"
        yield choice, why


def _why_resting(bench: Bench, limits: Limits, choice: str, now: float) -> str:
    if _at_share(bench, limits, choice) > now:
        return f"{limits.limit_share:.0%} of a usage limit is used"
    rest = _rest(bench, limits, choice)
    return rest.why if rest is not None and _rest_ends(rest, limits) > now else _UNREACHABLE


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


def reviewer_parts(reviewer: str, agents: Sequence[str]) -> tuple[str, str]:
    """What a reviewer looks at, and the choice that it is: `security@codex/gpt-5`. Empty: the one that reviews."""
    page, at, choice = reviewer.rpartition("@")
    return (page, choice) if at and parts(choice, agents)[0] else (reviewer, "")
