"""How long each moment of a run is shown: hours become seconds, and what matters stays long enough to be read.

Moments have a rank. Those of the first rank are shown for as long as they need; the others share what time is left, and
where it is not enough for all of a rank, some of them, evenly spread, are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec import Struct

from ralph.core.agent import Retry, Text, ToolUse
from ralph.core.events import (
    AgentSaid,
    AgentStarted,
    Asked,
    CheckEnded,
    CheckStarted,
    HookAnswered,
    IterationEnded,
    IterationStarted,
    Judged,
    LimitAnswered,
    Noted,
    Paused,
    Proved,
    Queued,
    QueueProved,
    QueueProving,
    Record,
    Recovered,
    Resumed,
    RunEnded,
    RunStarted,
    StorySetAside,
    WaitStarted,
    WorkerLost,
)
from ralph.core.plan import Mode, State
from ralph.core.verdict import Kind

_SILENCE = 2.0
"""Seconds without a record after which the clock is seen to run."""
_TICKS = 3


class Pace(Struct, frozen=True):
    rank: int
    least: float
    """Seconds that it takes to see it."""
    most: float
    """Seconds that it takes to read it."""


_END = Pace(0, 2.0, 3.0)
_BEGIN = Pace(0, 0.8, 1.6)
_CAUGHT = Pace(1, 1.2, 2.4)
_CLAIM = Pace(1, 0.8, 1.6)
"""The last words of an agent before its work was rejected."""
_REMARKABLE = Pace(2, 0.6, 1.2)
_KEPT = Pace(2, 0.35, 0.9)
_BEGUN = Pace(3, 0.15, 0.5)
_SMALL = Pace(4, 0.1, 0.4)
_TICK = Pace(5, 0.1, 0.2)

_REMARKABLE_EVENTS = (WaitStarted, LimitAnswered, Asked, Paused, Resumed, StorySetAside, WorkerLost, Recovered)
_SMALL_EVENTS = (AgentStarted, HookAnswered, CheckStarted, CheckEnded, Judged, Queued, QueueProving, QueueProved)


class Moment(Struct, frozen=True):
    after: int
    """The number of records that have been read by then."""
    now: float
    """The time of the run."""
    pace: Pace
    seconds: float = 0
    """How long it is shown."""


def paced(records: Sequence[Record], limit: float) -> list[Moment]:
    """The moments to show, in order. Together they take at most `limit` seconds."""
    moments = list(_moments(records))
    chosen: list[Moment] = []
    left = limit
    for rank in sorted({moment.pace.rank for moment in moments}):
        some = _some([moment for moment in moments if moment.pace.rank == rank], left)
        left -= sum(moment.pace.least for moment in some)
        chosen += some
    wanted = sum(moment.pace.most - moment.pace.least for moment in chosen)
    share = min(max(left, 0) / wanted, 1) if wanted else 0
    return [_timed(moment, share) for moment in sorted(chosen, key=lambda moment: (moment.after, moment.now))]


def _timed(moment: Moment, share: float) -> Moment:
    pace = moment.pace
    # Rounded down, so that the sum of many stays within the limit.
    return msgspec.structs.replace(moment, seconds=int((pace.least + share * (pace.most - pace.least)) * 1000) / 1000)


def _some(moments: list[Moment], left: float) -> list[Moment]:
    """All of them if there is time for all, else as many as there is time for."""
    if sum(moment.pace.least for moment in moments) <= left:
        return moments
    count = max(int(left / max(moment.pace.least for moment in moments)), 0)
    return [moments[number * len(moments) // count] for number in range(count)]


def _moments(records: Sequence[Record]) -> Iterator[Moment]:
    claims = _false_claims(records)
    last = len(records)
    for number, record in enumerate(records, 1):
        pace = _END if number == last else _CLAIM if number in claims else _pace(record)
        if pace is not None:
            yield Moment(number, record.t, pace)
        if number < last and (gap := records[number].t - record.t) > _SILENCE:
            for tick in range(1, _TICKS + 1):
                yield Moment(number, record.t + gap * tick / (_TICKS + 1), _TICK)


def _pace(record: Record) -> Pace | None:
    """None: nothing of it is seen."""
    event = record.event
    match event:
        case RunEnded():
            return _END
        case RunStarted():
            return _BEGIN
        case IterationEnded():
            return _KEPT if _is_kept(event) else _CAUGHT
        case Proved(passed=False) | QueueProved(passed=False):
            return _CAUGHT
        case CheckEnded(result=result) if result.required and not result.passed:
            return _REMARKABLE
        case Noted(warning=True) | Proved(results=(_, *_)):
            return _REMARKABLE
        case IterationStarted():
            return _BEGUN
        case AgentSaid(event=Text() | ToolUse() | Retry()):
            return _SMALL
        case _:
            remarkable = _REMARKABLE if isinstance(event, _REMARKABLE_EVENTS) else None
            return _SMALL if isinstance(event, _SMALL_EVENTS) else remarkable


def _is_kept(event: IterationEnded) -> bool:
    """Whether it went well. A review that is accepted and asks for changes did not, for its story."""
    asks = event.mode is Mode.REVIEW and not event.completes and event.story_state is not State.DONE
    return event.kind is Kind.ACCEPTED and not asks


def _false_claims(records: Iterable[Record]) -> frozenset[int]:
    """The last words of every agent whose work was rejected, by the number of the record."""
    words: dict[int, int] = {}
    found = set()
    for number, record in enumerate(records, 1):
        match record.event:
            case AgentSaid(iteration=iteration, event=Text()):
                words[iteration] = number
            case IterationEnded(iteration=iteration, kind=kind):
                said = words.pop(iteration, 0)
                if kind is Kind.REJECTED and said:
                    found.add(said)
    return frozenset(found)
