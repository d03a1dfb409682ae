"""Journals of runs with several workers, made from the journals of serial runs: each becomes the work of one worker.

The iterations are renumbered, stories get names of their own, and accepted work goes through the merge queue.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from ralph.core.agent import Outcome
from ralph.core.events import (
    AnyEvent,
    IterationEnded,
    IterationStarted,
    Judged,
    Landing,
    PlanSeen,
    Queued,
    QueueProved,
    QueueProving,
    Record,
    RunEnded,
    RunStarted,
    SeenStory,
    Settling,
    WorkerLost,
    WorkerStarted,
)
from ralph.core.evidence import Ended, Evidence, How
from ralph.core.moves import Reason
from ralph.core.plan import Mode, State
from ralph.core.verdict import Kind, Verdict
from ralph.journal.workers import iteration_of

START = 1_700_000_000.0


class Lane(NamedTuple):
    """What one worker does: the events of its iterations, and the stories."""

    iterations: list[list[AnyEvent]]
    stories: tuple[SeenStory, ...]


def lane_of(records: Iterable[Record], letter: str) -> Lane:
    """The iterations of a serial run, with stories that no other lane has."""
    iterations: dict[int, list[AnyEvent]] = {}
    is_open = False  # the final checks have the number of the last iteration
    stories: tuple[SeenStory, ...] = ()
    for record in records:
        event = _renamed(record.event, letter)
        if isinstance(event, PlanSeen) and event.whole:
            stories = event.stories
        is_open = is_open or isinstance(event, IterationStarted)
        if is_open and (number := iteration_of(event)):
            iterations.setdefault(number, []).append(event)
        is_open = is_open and not isinstance(event, IterationEnded)
    return Lane(list(iterations.values()), stories)


def _renamed(event: AnyEvent, letter: str) -> AnyEvent:
    text = msgspec.json.encode(event).replace(b"US-", f"{letter}S-".encode())
    renamed: AnyEvent = msgspec.json.decode(text, type=AnyEvent)
    return renamed


def numbered(event: AnyEvent, number: int, **fields: Any) -> AnyEvent:
    return msgspec.structs.replace(event, iteration=number, **fields)


def serial(lane: Lane) -> list[Record]:
    """The lane as a run of its own."""
    events = [numbered(event, number) for number, each in enumerate(lane.iterations, 1) for event in each]
    return told([*_opening(lane.stories), *events, RunEnded(Reason.COMPLETE)])


def interleaved(lanes: Sequence[Lane], choice: random.Random) -> list[Record]:
    """All lanes in one run, each on a worker of its own; what comes next is chosen at random."""
    events: list[AnyEvent] = [*_opening(tuple(story for lane in lanes for story in lane.stories))]
    events += [WorkerStarted(worker=worker, pid=worker) for worker in range(1, len(lanes) + 1)]
    left = [[list(each) for each in lane.iterations] for lane in lanes]
    numbers, count, landing = [0] * len(lanes), 0, -1
    while any(left):
        at = choice.choice([index for index, each in enumerate(left) if each])
        event = left[at][0].pop(0)
        if isinstance(event, Landing):
            if landing >= 0:  # one at a time
                left[at][0].insert(0, event)
                continue
            landing = at
        if isinstance(event, IterationStarted):
            count += 1
            numbers[at] = count
            left[at][0][:] = _through_queue(left[at][0], event.story, count, at + 1)
            event = msgspec.structs.replace(event, worker=at + 1, base="b" * 40)
        if isinstance(event, QueueProving | QueueProved):
            events.append(msgspec.structs.replace(event, iterations=(numbers[at],)))
        else:
            events.append(numbered(event, numbers[at]))
        if isinstance(event, IterationEnded):
            left[at].pop(0)
            landing = -1 if landing == at else landing
    return told([*events, RunEnded(Reason.COMPLETE)])


def _through_queue(events: list[AnyEvent], story: str, number: int, worker: int) -> list[AnyEvent]:
    """Work that is kept is merged before it is settled, and judged again."""
    at = next((n for n, event in enumerate(events) if isinstance(event, Settling) and event.keep), None)
    if at is None:
        return events
    judged = [event for event in events[:at] if isinstance(event, Judged)][-1:]
    merged = f"{number:040x}"
    queue: list[AnyEvent] = [
        Queued(iteration=number, story=story, commit="c" * 40, base="b" * 40),
        QueueProving(iterations=(number,), onto="b" * 40, merged=merged, worker=worker),
        QueueProved(iterations=(number,), merged=merged, passed=True, seconds=1),
        Landing(iteration=number, commit=merged),
    ]
    return [*events[:at], *queue, *judged, *events[at:]]


def _opening(stories: tuple[SeenStory, ...]) -> list[AnyEvent]:
    started = RunStarted(
        run="20231114-221320-ab12",
        workspace="/workspace",
        layout="plan.md",
        plan="/workspace/plan",
        name="Shop",
        pid=4242,
        agent="scripted",
        total=len(stories),
        checks=("tests",),
    )
    return [started, PlanSeen(whole=True, stories=stories)]


def told(events: Iterable[AnyEvent]) -> list[Record]:
    """One second apart."""
    return [Record(number, START + number, event) for number, event in enumerate(events, 1)]


def clashing(count: int = 4) -> list[Record]:
    """A run of `count` workers by hand: a red merge, a text conflict, a rejection, a lost worker, one story merged.

    It has not ended: worker 1 proves a merged tree, and the queue has entries.
    """
    stories = tuple(SeenStory(f"US-{n:03}", f"Story {n}", State.TODO) for n in range(1, count + 5))
    events: list[AnyEvent] = [*_opening(stories)]
    events += [WorkerStarted(worker=worker, pid=worker) for worker in range(1, count + 1)]
    events += [_started(n, n) for n in range(1, 5)]
    events += [*_accepted(1), _proving(1, "base", worker=1), _proved(1), Landing(iteration=1)]
    events += [_ended(1, Kind.ACCEPTED, "done", files=("src/cart.py",), commit="m1")]
    events += [*_accepted(2), _proving(2, "m1", worker=1), _proved(2, why="check tests failed with exit code 1")]
    events += [_ended(2, Kind.RETURNED, "green alone, red merged: check tests failed with exit code 1")]
    events += [*_accepted(3), _ended(3, Kind.RETURNED, "text conflict in src/cart.py")]
    events += [WorkerLost(worker=4, iteration=4, why="killed by signal 9"), _ended(4, Kind.INTERRUPTED, "worker lost")]
    events += [_started(5, 2), _started(6, 3), *_accepted(5), *_accepted(6), _started(7, 2), _started(8, 3)]
    events += [_proving(5, "m1", worker=1)]
    return told(events)


def _started(number: int, worker: int) -> IterationStarted:
    return IterationStarted(
        iteration=number,
        worker=worker,
        base="base",
        story=f"US-{number:03}",
        title=f"Story {number}",
        mode=Mode.IMPLEMENT,
        attempt=1,
    )


def _accepted(number: int) -> list[AnyEvent]:
    evidence = Evidence(mode=Mode.IMPLEMENT, story=None, ended=Ended(How.EXITED, 0), outcome=Outcome())
    queued = Queued(iteration=number, story=f"US-{number:03}", commit=f"c{number}", base="base")
    return [Judged(number, evidence, Verdict(Kind.ACCEPTED)), queued]


def _proving(number: int, onto: str, worker: int) -> QueueProving:
    return QueueProving(iterations=(number,), onto=onto, merged=f"m{number}", worker=worker)


def _proved(number: int, why: str = "") -> QueueProved:
    return QueueProved(iterations=(number,), merged=f"m{number}", passed=not why, why=why, seconds=2)


def _ended(number: int, kind: Kind, headline: str, **fields: Any) -> IterationEnded:
    is_done = kind is Kind.ACCEPTED
    return IterationEnded(
        iteration=number,
        story=f"US-{number:03}",
        title=f"Story {number}",
        mode=Mode.IMPLEMENT,
        kind=kind,
        headline=headline,
        completes=is_done,
        story_state=State.DONE if is_done else State.TODO,
        seconds=10,
        **fields,
    )
