"""Money and token budgets: no iteration starts once a budget is spent."""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Reason, Stop, Wait
from ralph.core.spending import Room, Scope, figure, rooms

_LOOK_AGAIN = 15.0
"""Seconds between checks. Another run may release its reservation, or die and no longer count."""
_NAMES = {Scope.RUN: "this run's budget", Scope.DAY: "today's budget", Scope.WORKSPACE: "the workspace's budget"}
_WAYS_ON = {
    Scope.RUN: "a new run starts with the full budget",
    Scope.DAY: "it resets tomorrow",
    Scope.WORKSPACE: "reset it with `ralph cost --reset`",
}


def guard(history: History, limits: Limits, now: float) -> Stop | Wait | None:
    taken: Room | None = None
    for room in rooms(limits.budget, history.purse.run, history.purse.elsewhere):
        if room.is_spent:
            return Stop(Reason.BUDGET, _spent(room))
        if room.is_taken and taken is None:
            taken = room
    if taken is not None:
        rest = figure(taken, taken.limit - taken.spent)
        return Wait(now + _LOOK_AGAIN, f"the rest of {_NAMES[taken.scope]}, {rest}, is reserved by other runs")
    return _out_of_reach(history, limits)


def _spent(room: Room) -> str:
    whole, spent = figure(room, room.limit), figure(room, room.spent)
    return f"{_NAMES[room.scope]} of {whole} ({room.key}) is spent: {spent}; {_WAYS_ON[room.scope]}"


def _out_of_reach(history: History, limits: Limits) -> Stop | None:
    least, chance = limits.budget.least_chance, history.purse.chance
    if not least or chance is None or chance >= least:
        return None
    return Stop(
        Reason.OUT_OF_REACH,
        f"the chance to finish within the budget is {chance:.0%}, below budget.least_chance ({least:.0%})",
    )
