"""Decide what to do next. Pure: no clock, no files, no processes."""

from __future__ import annotations

from collections.abc import Sequence

from ralph.core.guard import Guard
from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Move, Prove, Reason, Stop, Work
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
            return move
    if needs_setup and not history.setup_done:
        if limits.max_attempts and history.setup_failures >= limits.max_attempts:
            return Stop(Reason.NO_PROGRESS, f"setting up has failed {history.setup_failures} times")
        return Work("", Mode.SETUP)
    too_dear = overspent(limits.budget, history.purse.stories)
    if work := next_work(plan, review=review, skip=history.asked | too_dear if too_dear else history.asked):
        return Work(work[0].id, work[1])
    return _when_nothing_is_ready(plan, history, too_dear)


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
