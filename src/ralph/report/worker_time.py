"""How the workers of a run used their time, and how long candidates waited in the merge queue: a fold over its
journal. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from ralph.core.events import (
    IterationEnded,
    IterationStarted,
    Landing,
    Queued,
    QueueProved,
    QueueProving,
    Record,
    RunEnded,
    WorkerLost,
    WorkerStarted,
)


class Span(Struct, frozen=True):
    """A time in which a worker was busy."""

    start: float
    end: float
    iteration: int
    story: str
    is_proof: bool = False
    """It ran the proof of a merged tree. False: it worked on the story."""
    result: str = ""
    """The verdict, or `proven` and `red`; empty: not known."""


class WorkerUse(Struct, frozen=True, kw_only=True):
    worker: int
    start: float
    end: float
    busy: float
    """Seconds of work on stories."""
    proving: float
    idle: float
    iterations: int
    is_lost: bool = False
    spans: tuple[Span, ...] = ()


class QueueUse(Struct, frozen=True):
    candidates: int = 0
    merged: int = 0
    mean_wait: float = 0
    """Seconds from the end of the worker's part until the merge, or until it was returned."""
    longest_wait: float = 0
    proofs: int = 0
    failed_proofs: int = 0


class _Worker(Struct):
    start: float
    end: float | None = None
    iterations: int = 0
    is_lost: bool = False
    spans: list[Span] = []
    open: Span | None = None

    def begin(self, span: Span) -> None:
        self.finish(span.start)
        self.open = span

    def finish(self, t: float, result: str = "") -> None:
        if self.open is not None:
            self.spans.append(msgspec.structs.replace(self.open, end=max(t, self.open.start), result=result))
        self.open = None


class WorkerTime:
    """Feed it the records in order."""

    def __init__(self) -> None:
        self._workers: dict[int, _Worker] = {}
        self._stories: dict[int, str] = {}
        self._verdicts: dict[int, str] = {}
        self._queued: dict[int, float] = {}
        self._waits: list[float] = []
        self._counts = QueueUse()
        self._now = 0.0

    def add(self, record: Record) -> None:
        event, t = record.event, record.t
        self._now = t
        match event:
            case WorkerStarted(worker=number):
                worker = self._worker(number, t)
                worker.end, worker.is_lost = None, False
            case WorkerLost(worker=number):
                worker = self._worker(number, t)
                worker.finish(t, "lost")
                worker.end, worker.is_lost = t, True
            case IterationStarted(worker=number, iteration=iteration, story=story) if number:
                self._stories[iteration] = story or event.mode.value
                worker = self._worker(number, t)
                worker.end, worker.is_lost = None, False
                worker.iterations += 1
                worker.begin(Span(t, t, iteration, self._stories[iteration]))
            case Queued(iteration=iteration):
                self._leave(iteration, t)
                self._queued[iteration] = t
                self._count(candidates=1)
            case QueueProving(worker=number, iterations=iterations):
                self._count(proofs=1)
                if number:
                    story = ", ".join(self._stories.get(each, str(each)) for each in iterations)
                    self._worker(number, t).begin(Span(t, t, iterations[0] if iterations else 0, story, True))
            case QueueProved(iterations=iterations, passed=passed):
                self._count(failed_proofs=int(not passed))
                for worker in self._workers.values():
                    if worker.open is not None and worker.open.is_proof and worker.open.iteration in iterations:
                        worker.finish(t, "proven" if passed else "red")
            case Landing(iteration=iteration):
                self._wait(iteration, t)
                self._count(merged=1)
            case IterationEnded(iteration=iteration, kind=kind):
                self._verdicts[iteration] = kind.value
                self._wait(iteration, t)
                self._leave(iteration, t)
            case RunEnded():
                for worker in self._workers.values():
                    worker.finish(t)

    def _worker(self, number: int, t: float) -> _Worker:
        return self._workers.setdefault(number, _Worker(t))

    def _count(self, **more: int) -> None:
        counts = self._counts
        self._counts = msgspec.structs.replace(counts, **{name: getattr(counts, name) + more[name] for name in more})

    def _leave(self, iteration: int, t: float) -> None:
        for worker in self._workers.values():
            if worker.open is not None and worker.open.iteration == iteration and not worker.open.is_proof:
                worker.finish(t)

    def _wait(self, iteration: int, t: float) -> None:
        if (since := self._queued.pop(iteration, None)) is not None:
            self._waits.append(max(t - since, 0))

    def workers(self) -> tuple[WorkerUse, ...]:
        return tuple(self._use(number, self._workers[number]) for number in sorted(self._workers))

    def _use(self, number: int, worker: _Worker) -> WorkerUse:
        end = worker.end if worker.end is not None else self._now
        still = [msgspec.structs.replace(worker.open, end=end)] if worker.open is not None else []
        spans = tuple(self._judged(span) for span in (*worker.spans, *still))
        busy, proving = (sum(s.end - s.start for s in spans if s.is_proof is kind) for kind in (False, True))
        return WorkerUse(
            worker=number,
            start=worker.start,
            end=end,
            busy=round(busy, 3),
            proving=round(proving, 3),
            idle=round(max(end - worker.start - busy - proving, 0), 3),
            iterations=worker.iterations,
            is_lost=worker.is_lost,
            spans=spans,
        )

    def _judged(self, span: Span) -> Span:
        if span.is_proof or span.result:
            return span
        return msgspec.structs.replace(span, result=self._verdicts.get(span.iteration, ""))

    def queue(self) -> QueueUse:
        waits = self._waits
        mean = round(sum(waits) / len(waits), 3) if waits else 0.0
        return msgspec.structs.replace(self._counts, mean_wait=mean, longest_wait=round(max(waits, default=0.0), 3))


def worker_time(records: Iterable[Record]) -> WorkerTime:
    times = WorkerTime()
    for record in records:
        times.add(record)
    return times
