"""Decide what to do next. Pure: no clock, no files, no processes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from ralph.core.fallback import (
    FIRST,
    choose,
    first_choice,
    goes_on_without,
    is_anybody_awake,
    is_anybody_usable,
    paused_until,
)
from ralph.core.history import History
from ralph.core.money import Need, Room, figure, overspent, rooms, story_rooms, unaffordable
from ralph.core.moves import Move, Prove, Reason, Retry, SetAside, Stop, Wait, Work
from ralph.core.plan import Mode, Plan, State, Story
from ralph.core.review import LOST_REVIEWS, OPEN_FINDINGS, ReviewStatus, approved_at
from ralph.core.rules import Limits, OnLimit, OnStuck
from ralph.core.select import in_order, why_nothing_is_ready
from ralph.engine.limits import RUN_LIMITS, not_counted, same_service

_SHOWN = 5


def decide(
    plan: Plan,
    history: History,
    limits: Limits,
    now: float,
    *,
    needs_setup: bool = False,
    review: bool = False,
    needs_acceptance: Callable[[Story], bool] = lambda _: False,
    needs_exam: bool = False,
    busy: Collection[str] = (),
    hold: Callable[[Story, Mode], bool] = lambda _story, _mode: False,
) -> Move:
    """`needs_acceptance`: whether tests for a story have to be written before it is implemented.

    `needs_exam`: whether a round of the exam is due if every story is done.
    `busy`: stories that are being worked on.
    `hold`: whether a story that is ready does not start now; see `schedule`.
    """
    if history.misconfigured and not goes_on_without(history.bench, limits, now):
        return Stop(Reason.MISCONFIGURED, history.misconfigured)
    if limits.exam_only and (stop := _after_exam(plan, history)):
        return stop
    if plan.is_finished and needs_exam:
        return _exam(history, limits, now)
    if plan.is_finished:
        return _when_finished(history, Stop(Reason.COMPLETE), plan.stories, limits)
    named = tuple(story for story in plan.stories if story.id in limits.stories)
    if named and all(story.is_done for story in named):
        return _when_finished(history, Stop(Reason.NAMED_STORIES, "the stories you named are done"), named, limits)
    if move := _limited(history, limits, now):
        return move
    if needs_setup and not history.setup_done:
        if limits.max_attempts and history.setup_failures >= limits.max_attempts:
            return Stop(Reason.NO_PROGRESS, f"the set-up failed {history.setup_failures} times")
        if why := _why_stuck("", history, limits):
            return Stop(Reason.NO_PROGRESS, f"set-up: {why}")
        return _whole_run(Mode.SETUP, history, limits, now)
    too_dear = _too_dear(plan, history, limits)
    others = {story.id for story in plan.stories if story.id not in limits.stories} if limits.stories else set()
    unproven = _unproven(plan, limits)
    skip = {*history.asked, *history.aside, *too_dear, *others, *unproven, *busy}
    paused: dict[Mode, float] = {}
    for ready, usual_mode in in_order(plan, review=review, skip=skip):
        story, mode = ready.id, usual_mode
        first = first_choice(limits, ready, mode)
        if until := paused_until(history.bench, limits, story, mode, now, first):
            paused[mode] = min(until, paused.get(mode, until))
            continue
        if mode is Mode.IMPLEMENT and not ready.attempts and needs_acceptance(ready):
            mode = Mode.ACCEPTANCE
        if mode is Mode.REVIEW and 0 < limits.max_lost_reviews <= history.lost_reviews.get(story, 0):
            return SetAside(story, f"{history.lost_reviews[story]} {LOST_REVIEWS}")
        if why := _why_stuck(story, history, limits):
            return SetAside(story, why)
        if hold(ready, mode):
            continue
        if is_at_cap(history, limits):
            if story in history.retried:  # it had failed, and is not left behind as if it had not
                said = history.stories[story].said if story in history.stories else ""
                return SetAside(story, f"no iterations left{f'; last failure: {said}' if said else ''}")
            return Stop(Reason.ITERATION_CAP, _at_cap(history, limits))
        return _work(story, mode, first, history, limits, now)
    if paused:
        return _wait_for_somebody(paused, history, limits)
    if again := _given_up(plan, history, limits, too_dear):
        return Retry(again)
    if waiting := unproven - others:
        some = ", ".join(sorted(waiting)[:_SHOWN]) + (" …" if len(waiting) > _SHOWN else "")
        return Stop(Reason.UNPROVEN, f"{some}: committed, but unproven; run again without --skip-review")
    return _when_nothing_is_ready(plan, history, too_dear, others)


def _limited(history: History, limits: Limits, now: float) -> Stop | Wait | None:
    """What the first limit that applies asks for."""
    for limit in RUN_LIMITS:
        if move := limit(history, limits, now):
            return within_time(move, history, limits)
    return None


def _exam(history: History, limits: Limits, now: float) -> Move:
    """A round of the exam. Rounds have a limit of their own, so only a cap that the user set applies."""
    return _limited(history, limits, now) or _whole_run(Mode.EXAM, history, limits, now)


def _whole_run(mode: Mode, history: History, limits: Limits, now: float) -> Move:
    """Work that belongs to no story."""
    if until := paused_until(history.bench, limits, "", mode, now):
        return _wait_for_somebody({mode: until}, history, limits)
    return _work("", mode, FIRST, history, limits, now)


def _work(story: str, mode: Mode, first: str, history: History, limits: Limits, now: float) -> Move:
    bench = history.bench
    if history.misconfigured and not is_anybody_usable(bench, limits, story, mode, now, first):
        return Stop(Reason.MISCONFIGURED, history.misconfigured)
    is_awake = is_anybody_awake(bench, limits, story, mode, now, first)
    if not is_awake and (move := same_service(history, limits, now)):
        return within_time(move, history, limits)
    return Work(story, mode, choose(bench, limits, story, now, mode, first))


def _after_exam(plan: Plan, history: History) -> Stop | None:
    """Where `ralph proof exam` ends, unless its tests pass: then the final checks follow."""
    if history.exams and history.exam_failure:
        return Stop(Reason.EXAM, f"no result: {history.exam_failure}")
    if history.exams and not plan.is_finished:
        stories = [story.id for story in plan.stories if not story.is_done]
        more = " …" if stories[_SHOWN:] else ""
        return Stop(Reason.EXAM, f"new tests fail; added {', '.join(stories[:_SHOWN])}{more}")
    return None


def _wait_for_somebody(paused: dict[Mode, float], history: History, limits: Limits) -> Stop | Wait:
    who = "the reviewer's usage limit" if set(paused) == {Mode.REVIEW} else "the usage limit"
    why = f"{who} is reached, and nobody else may do what is left"
    unanswered = limits.on_limit is OnLimit.ASK_EXIT and history.answer == "nobody"
    if limits.on_limit is OnLimit.EXIT or history.answer == "exit" or unanswered:
        return Stop(Reason.USAGE_LIMIT, why)
    asks = limits.on_limit in (OnLimit.ASK, OnLimit.ASK_EXIT) and not history.answer
    return within_time(Wait(min(paused.values()), why, ask=asks), history, limits)


def _too_dear(plan: Plan, history: History, limits: Limits) -> dict[str, Room]:
    """Stories that have spent their own budget, or whose next session no budget pays for, judging by earlier ones."""
    budget, spending = limits.budget, history.spending
    found = overspent(budget, spending.stories)
    shared = list(rooms(budget, spending.run, spending.elsewhere))
    for story in plan.stories:
        need = spending.needs.get(story.id)
        if need is None or story.id in found or story.review.status is ReviewStatus.NEEDS_REVIEW:
            continue
        if room := unaffordable([*shared, *story_rooms(budget, spending.of(story.id))], need):
            found[story.id] = room
    return found


def _unproven(plan: Plan, limits: Limits) -> set[str]:
    """Stories that wait for a review which this run does not start."""
    if not limits.keeps_unproven:
        return set()
    return {story.id for story in plan.stories if story.is_open and story.review.status is ReviewStatus.NEEDS_REVIEW}


def cap(history: History, limits: Limits) -> int:
    """The run's maximum number of iterations; 0: no limit. A cap that follows from the plan grows with stories added
    during the run, with set-up iterations and with rounds of the exam."""
    if limits.max_iterations:
        return limits.max_iterations
    wanted = history.wanted.intersection(limits.stories) if limits.stories else history.wanted
    most = limits.cap(len(wanted))
    return most + history.setup_failures + history.setup_done + history.exams if most else 0


def is_at_cap(history: History, limits: Limits) -> bool:
    return 0 < cap(history, limits) <= history.iterations


def _at_cap(history: History, limits: Limits) -> str:
    count, most = history.iterations, cap(history, limits)
    key = "max_allowed_iterations" if most == limits.max_allowed else "attempts and reviews of the stories"
    return f"{count} iteration{'' if count == 1 else 's'}; the cap is {most} ({key}){not_counted(history)}"


def _given_up(plan: Plan, history: History, limits: Limits, too_dear: dict[str, Room]) -> tuple[str, ...]:
    """The stories this run gave up on and may retry: one unlucky round is no reason to drop a story."""
    if limits.on_stuck is not OnStuck.NEXT or history.rounds >= limits.retry_rounds or is_at_cap(history, limits):
        return ()
    done = {story.id for story in plan.stories if story.is_done}
    return tuple(
        story.id
        for story in plan.stories
        if story.id in history.given_up
        and story.state is State.FAILED
        and story.id not in too_dear
        and not 0 < limits.max_lost_reviews <= history.lost_reviews.get(story.id, 0)
        and (not limits.stories or story.id in limits.stories)
        and done.issuperset(story.depends_on)
    )


def within_time(move: Stop | Wait, history: History, limits: Limits) -> Stop | Wait:
    """Stop at once instead of waiting beyond the run's own time limit."""
    if isinstance(move, Wait) and limits.max_time and move.until >= history.started + limits.max_time:
        return Stop(Reason.TIME_CAP, f"{move.why}; the run's time limit ends before that")
    return move


def _why_stuck(story: str, history: History, limits: Limits) -> str:
    streak = history.stories.get(story)
    why = streak.trip(limits) if streak else ""
    return f"{why}; last failure: {streak.said}" if streak and why and streak.said else why


def _when_finished(history: History, stop: Stop, stories: Sequence[Story], limits: Limits) -> Move:
    """The last act of a run is one full pass of the checks on the final tree."""
    if history.proved is None:
        return Prove()
    done = "every story is done" if stop.reason is Reason.COMPLETE else stop.detail
    if history.proved:
        unsettled = [s.id for s in stories if (where := approved_at(s.review)) and where not in limits.open_findings_at]
        more = " …" if unsettled[_SHOWN:] else ""
        told = f"{done}, but {OPEN_FINDINGS}: {', '.join(unsettled[:_SHOWN])}{more}"
        return Stop(Reason.OPEN_FINDINGS, told) if unsettled else stop
    return Stop(Reason.FINAL_CHECKS, f"{done}, but the checks fail on the final tree")


def _why_too_dear(story: str, room: Room, need: Need) -> str:
    if room.is_spent:
        return f"{story} has spent {figure(room, room.spent)} of {figure(room, room.limit)} ({room.key})"
    least = figure(room, need.micros if room.is_money else need.tokens)
    return f"{figure(room, room.left)} left of {room.key} do not pay for another session of {story} (at least {least})"


def _when_nothing_is_ready(plan: Plan, history: History, too_dear: dict[str, Room], others: set[str]) -> Stop:
    """`others`: stories this run was not asked to work on."""
    reasons = why_nothing_is_ready(plan, unless=others)
    stories = [story for story in plan.stories if story.id not in others]
    questions = [f"{story}: {question}" for story, question in history.asked.items()]
    if questions or any(story.state is State.BLOCKED for story in stories):
        return Stop(Reason.WAITING, "; ".join(questions) or reasons)
    if dear := [story.id for story in stories if story.id in too_dear and story.is_open]:
        told = [_why_too_dear(story, too_dear[story], history.spending.needs.get(story, Need())) for story in dear]
        return Stop(Reason.BUDGET, f"{'; '.join(told[:_SHOWN])}; raise the budget to continue")
    if any(story.state is State.FAILED for story in stories):
        return Stop(Reason.FAILED_STORIES, reasons)
    return Stop(Reason.NOTHING_READY, reasons)
