"""Decide what to do next. Pure: no clock, no files, no processes."""

from __future__ import annotations

from collections.abc import Sequence

from ralph.core.guard import Guard
from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.lineup import choose
from ralph.core.moves import Move, Prove, Reason, SetAside, Stop, Wait, Work
from ralph.core.plan import Mode, Plan, State
from ralph.core.select import next_work, why_nothing_is_ready
from ralph.core.spending import Room, figure, overspent

_SHOWN = 5


def decide(
    plan: Plan,
    history: History,
    limits: Limits,
    guards: Sequence[Guard],
    now: float,
    *,
    needs_setup: bool = False,
    review: bool = False,
) -> Move:
    if history.misconfigured:
        return Stop(Reason.MISCONFIGURED, history.misconfigured)
    if plan.is_finished:
        return _when_finished(history)
    for guard in guards:
        if move := guard(history, limits, now):
            return within_time(move, history, limits)
    if needs_setup and not history.setup_done:
        if limits.max_attempts and history.setup_failures >= limits.max_attempts:
            return Stop(Reason.NO_PROGRESS, f"setting up has failed {history.setup_failures} times")
        if why := _why_stuck("", history, limits):
            return Stop(Reason.NO_PROGRESS, f"setting up: {why}")
        return Work("", Mode.SETUP, choose(history.bench, limits, "", now))
    too_dear = overspent(limits.budget, history.purse.stories)
    if work := next_work(plan, review=review, skip={*history.asked, *history.aside, *too_dear}):
        story = work[0].id
        if why := _why_stuck(story, history, limits):
            return SetAside(story, why)
        return Work(story, work[1], choose(history.bench, limits, story, now))
    return _when_nothing_is_ready(plan, history, too_dear)


def within_time(move: Stop | Wait, history: History, limits: Limits) -> Stop | Wait:
    """A wait that the run would not live to see the end of helps nobody."""
    if isinstance(move, Wait) and limits.max_time and move.until >= history.started + limits.max_time:
        return Stop(Reason.TIME_CAP, f"{move.why}, and the time of the run would be over before that is")
    return move


def _why_stuck(story: str, history: History, limits: Limits) -> str:
    streak = history.stories.get(story)
    why = streak.trip(limits) if streak else ""
    return f"{why}, the last time: {streak.said}" if streak and why and streak.said else why


def _when_finished(history: History) -> Move:
    if history.proved is None:
        return Prove()
    if history.proved:
        return Stop(Reason.COMPLETE)
    return Stop(Reason.FINAL_CHECKS, "every story is done, but the checks fail on the final tree")


def _when_nothing_is_ready(plan: Plan, history: History, too_dear: dict[str, Room]) -> Stop:
    questions = [f"{story}: {question}" for story, question in history.asked.items()]
    if questions or plan.count(State.BLOCKED):
        return Stop(Reason.WAITING, "; ".join(questions) or why_nothing_is_ready(plan))
    if dear := [story.id for story in plan.stories if story.id in too_dear and story.is_open]:
        rooms = [too_dear[story] for story in dear]
        told = [f"{story} {figure(room, room.spent)}" for story, room in zip(dear, rooms, strict=True)][:_SHOWN]
        most = f"its budget of {figure(rooms[0], rooms[0].limit)} ({rooms[0].key})"
        return Stop(Reason.BUDGET, f"each open story has spent {most}: {', '.join(told)}; a higher one lets it go on")
    if plan.count(State.FAILED):
        return Stop(Reason.FAILED_STORIES, why_nothing_is_ready(plan))
    return Stop(Reason.NOTHING_READY, why_nothing_is_ready(plan))
