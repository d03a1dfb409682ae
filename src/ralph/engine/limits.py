"""The limits that make a run wait or stop: pure functions of the history, the settings and the time.

`RUN_LIMITS` is the order in which they are asked. The usage limit of the agent's account is in `usage_limit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ralph.core.fallback import goes_on
from ralph.core.history import History
from ralph.core.money import Room, Scope, figure, rooms
from ralph.core.moves import Reason, Stop, Wait
from ralph.core.rules import Limits, OnStuck
from ralph.core.verdict import Kind
from ralph.engine.usage_limit import usage

Limit = Callable[[History, Limits, float], Stop | Wait | None]
_LOOK_AGAIN = 15.0
"""Seconds between checks. Another run may release its reservation, or die and no longer count."""
_NAMES = {Scope.RUN: "this run's budget", Scope.DAY: "today's budget", Scope.WORKSPACE: "the workspace's budget"}
_WAYS_ON = {
    Scope.RUN: "a new run starts with the full budget",
    Scope.DAY: "it resets tomorrow",
    Scope.WORKSPACE: "reset it with `ralph runs cost --reset`",
}
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 300.0
"""Seconds between sessions after a broken connection."""
_HOUR = 3600.0


def iterations(history: History, limits: Limits, now: float) -> Stop | None:
    """The iteration limit from the settings, and the single iteration of `--once`. See `decide` for the limit that
    follows from the plan."""
    if limits.once and history.last_kind is not None and history.iterations:
        if history.last_kind is Kind.TIMED_OUT:
            return Stop(Reason.ONCE_TIMED_OUT, "the single iteration (--once) timed out")
        if history.last_kind is Kind.ACCEPTED:
            return Stop(Reason.ONCE, "the single iteration (--once) was accepted")
        return Stop(Reason.ITERATION_CAP, f"the single iteration (--once) was {history.last_kind.value}")
    if limits.max_iterations and history.iterations >= limits.max_iterations:
        many = "" if history.iterations == 1 else "s"
        had = f"{history.iterations} iteration{many}"
        return Stop(Reason.ITERATION_CAP, f"{had}; the cap is {limits.max_iterations}{not_counted(history)}")
    return None


def not_counted(history: History) -> str:
    """Why the last iteration has a higher number than the cap."""
    free = sum(history.free.values())
    return f"; {free} more ended by a usage limit or a lost connection, not counted" if free else ""


def run_time(history: History, limits: Limits, now: float) -> Stop | None:
    """The time limit of a run. A running agent is stopped by its own timeout; this starts no new work."""
    taken = now - history.started
    if not limits.max_time or taken < limits.max_time:
        return None
    return Stop(Reason.TIME_CAP, f"the run took {_duration(taken)}; the limit is {_duration(limits.max_time)}")


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60} h {minutes % 60:02} m" if minutes >= 60 else f"{minutes} m {rest:02} s"


def crash_loop(history: History, limits: Limits, now: float) -> Stop | None:
    """Stop when agents keep crashing at startup: the next one would crash too. The last output is the reason."""
    if not limits.crash_loop or history.crashes < limits.crash_loop:
        return None
    return Stop(
        Reason.CRASH_LOOP,
        f"the agent crashed within a second of starting, {history.crashes} times in a row: {history.crash}",
    )


def breaker(history: History, limits: Limits, now: float) -> Stop | None:
    """The circuit breaker of the run: nothing gets proven, or the same error keeps coming back. Each story also has its
    own breaker, which sets the story aside; see `decide`."""
    streak = history.streak
    if limits.same_error and streak.same_error >= limits.same_error and _is_the_runs(history, limits):
        return Stop(Reason.SAME_ERROR, _with_failure(f"the same error {streak.same_error} times in a row", streak.said))
    if limits.on_stuck is OnStuck.NEXT:
        if limits.no_progress and history.stuck >= limits.no_progress:
            return Stop(Reason.NO_PROGRESS, f"{history.stuck} stories in a row were set aside")
    elif limits.no_progress and streak.no_progress >= limits.no_progress:
        return Stop(
            Reason.NO_PROGRESS, _with_failure(f"{streak.no_progress} iterations in a row without progress", streak.said)
        )
    return None


def _is_the_runs(history: History, limits: Limits) -> bool:
    """With `on_stuck: next`, an error seen in only one story sets that story aside instead of stopping the run."""
    return limits.on_stuck is OnStuck.STOP or len(history.error_from) > 1


def _with_failure(what: str, said: str) -> str:
    return f"{what}; last failure: {said}" if said else what


def budget(history: History, limits: Limits, now: float) -> Stop | Wait | None:
    """Money and token budgets: no iteration starts once a budget is spent."""
    taken: Room | None = None
    spending = history.spending
    for room in rooms(limits.budget, spending.run, spending.elsewhere, spending.held):
        if room.is_spent:
            return Stop(Reason.BUDGET, _spent(room))
        if room.is_taken and taken is None:
            taken = room
    if taken is not None:
        rest = figure(taken, taken.limit - taken.spent)
        who = "running sessions" if taken.scope is Scope.RUN else "other runs"
        return Wait(now + _LOOK_AGAIN, f"the rest of {_NAMES[taken.scope]}, {rest}, is reserved by {who}")
    return _out_of_reach(history, limits)


def _spent(room: Room) -> str:
    whole, spent = figure(room, room.limit), figure(room, room.spent)
    return f"{_NAMES[room.scope]} of {whole} ({room.key}) is spent: {spent}; {_WAYS_ON[room.scope]}"


def _out_of_reach(history: History, limits: Limits) -> Stop | None:
    least, chance = limits.budget.least_chance, history.spending.chance
    if not least or chance is None or chance >= least:
        return None
    return Stop(
        Reason.OUT_OF_REACH,
        f"the chance to finish within the budget is {chance:.0%}, below budget.least_chance ({least:.0%})",
    )


def transport(history: History, limits: Limits, now: float) -> Stop | Wait | None:
    """The connection to the model failed or its answer was empty: retry with growing pauses, then give up. For another
    service no pause is needed."""
    return None if goes_on(history.bench, limits, now) else same_service(history, limits, now)


def same_service(history: History, limits: Limits, now: float) -> Stop | Wait | None:
    """The same for work that only the service can do that was not reached."""
    count, said = history.transport, history.transport_said
    if not count or history.last_kind is not Kind.TRANSPORT:
        return None
    if count > limits.max_transport:
        return Stop(Reason.TRANSPORT, f"the connection to the model failed {count} times in a row; last error: {said}")
    since = min(history.last_ended, now)
    pause = min(max(_FIRST_PAUSE * 2 ** (count - 1), history.transport_until - since), _LONGEST_PAUSE)
    until = since + pause
    told = f"the connection to the model failed (attempt {count})" + (f" ({said})" if said else "")
    return Wait(until, told) if until > now else None


def rate(history: History, limits: Limits, now: float) -> Wait | None:
    """Agent starts and tokens per hour, in a sliding window that includes earlier runs of the workspace."""
    waits = []
    starts = [(call, 1) for call in history.calls]
    for most, used, what in (
        (limits.rate_per_hour, starts, "agent start"),
        (limits.tokens_per_hour, history.used, "token"),
    ):
        recent = sorted((min(when, now), count) for when, count in used if when > now - _HOUR)
        total = sum(count for _, count in recent)
        if most and total >= most:
            until = _when_below(recent, total, most) + _HOUR
            many = "" if total == 1 else "s"
            waits.append(Wait(until, f"{total:,} {what}{many} in the last hour; the cap is {most:,}"))
    return max(waits, key=lambda wait: wait.until, default=None)


def _when_below(recent: Sequence[tuple[float, int]], total: int, most: int) -> float:
    """When the oldest uses leave the window, the time of the one that brings the total below the limit."""
    for when, count in recent:
        total -= count
        if total < most:
            return when
    return recent[-1][0]


RUN_LIMITS: tuple[Limit, ...] = (iterations, run_time, crash_loop, breaker, budget, usage, transport, rate)
AT_EACH_START: tuple[Limit, ...] = (rate,)
"""Asked again before each further agent of one iteration."""
