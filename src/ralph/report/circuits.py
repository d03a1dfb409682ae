"""The circuit breakers of a run, from its journal: the count of each, and why one tripped."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from ralph.core.events import Record, RunEnded, RunStarted, StepEnded
from ralph.core.history import History, fold
from ralph.core.limits import Limits, OnStuck, Streak
from ralph.core.moves import Reason
from ralph.engine.circuit import Position

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
