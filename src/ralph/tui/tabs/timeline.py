"""Timeline: what each worker did when, the iterations with their durations, and every event."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ralph.core.text import one_line
from ralph.tui.rows import BLANK, Row, head, row
from ralph.tui.scene import Scene, mark
from ralph.views.attempts import Attempt, Span, SpanKind
from ralph.views.columns import pad
from ralph.views.words import clock, duration, money

_MOST = 300
_LANES = 16
_NARROW = 70
"""Columns below which an iteration has no bar and no cost."""
_MARKS = {
    SpanKind.AGENT: ("█", "info", "work"),
    SpanKind.FIX: ("▓", "info", "fix"),
    SpanKind.REVIEW: ("▒", "key", "review"),
    SpanKind.CHECKS: ("░", "good", "checks"),
    SpanKind.PROOF: ("▚", "good", "proof of the merge"),
    SpanKind.QUEUE: ("─", "dim", "in the queue"),
    SpanKind.WAIT: ("·", "warn", "waiting"),
    SpanKind.PAUSE: ("=", "warn", "paused"),
}
_SHORT = frozenset((SpanKind.QUEUE, SpanKind.WAIT, SpanKind.PAUSE))
"""Drawn below what is done at the same time."""


def above(scene: Scene) -> list[Row]:
    """Everything but the events."""
    return [*_gantt(scene), *_iterations(scene), BLANK, head("Events", f"{scene.view.count:,}")]


def _gantt(scene: Scene) -> Iterator[Row]:
    view = scene.view
    spans = view.attempts.spans
    if not spans:
        return
    start = view.state.started_at or spans[0].since
    end = max(scene.now if scene.standing.value in ("running", "paused", "waiting") else view.state.now, start + 1)
    room = max(scene.room - 11, 20)
    yield head("Time", f"{clock(start)} – {clock(end)}, {duration(end - start)}")
    lanes: dict[int, list[Span]] = {}
    for span in spans:
        lanes.setdefault(0 if span.kind in (SpanKind.WAIT, SpanKind.PAUSE) else span.worker, []).append(span)
    for worker in sorted(lanes)[:_LANES]:
        name = f"worker {worker}" if worker else "run"
        yield row((pad(name, 10) + " ", "dim"), *_lane(lanes[worker], start, end, room))
    if len(lanes) > _LANES:
        yield row((f"and {len(lanes) - _LANES} more workers", "dim"))
    used = [kind for kind in _MARKS if any(span.kind is kind for span in spans)]
    yield row(*((f"{_MARKS[kind][0]} {_MARKS[kind][2]}  ", _MARKS[kind][1]) for kind in used))
    yield BLANK


def _lane(spans: list[Span], start: float, end: float, room: int) -> Iterator[tuple[str, str]]:
    cells = [(" ", "")] * room
    scale = room / (end - start)
    for span in sorted(spans, key=lambda each: each.kind not in _SHORT):
        sign, style, _ = _MARKS[span.kind]
        first = min(int((span.since - start) * scale), room - 1)
        last = max(min(int(((span.until or end) - start) * scale), room), first + 1)
        cells[first:last] = [(sign, style)] * (last - first)
    for style, group in groupby(cells, key=lambda cell: cell[1]):
        yield "".join(sign for sign, _ in group), style


def _iterations(scene: Scene) -> Iterator[Row]:
    attempts = list(scene.view.attempts.by_iteration.values())
    yield head("Iterations", f"{len(attempts)}; Enter shows one")
    is_narrow = scene.room < _NARROW
    longest = max((_seconds(scene, each) for each in attempts), default=1.0) or 1.0
    for attempt in attempts[-_MOST:]:
        sign, style = mark(attempt.ended.kind) if attempt.ended else ("▶", "info")
        took = _seconds(scene, attempt)
        by = f"w{attempt.worker} " if attempt.worker else ""
        bar = "█" * max(round(10 * took / longest), 1)
        cost = money(attempt.cost_usd, attempt.is_estimated) if attempt.cost_usd is not None else ""
        word = attempt.verdict or "running"
        what = f"{by}{attempt.mode.value} {one_line(attempt.story, 24)}"
        yield row(
            (f"{sign} ", style),
            (f"{attempt.iteration:>3} ", "dim"),
            pad(what, max(min(scene.room - (26 if is_narrow else 47), 36), 14)),
            (f" {pad(word, 10)}", style),
            ("" if is_narrow else f" {bar:<10}", "info"),
            (f" {duration(took):>7}", ""),
            ("" if is_narrow else f" {cost:>7}", "dim"),
            key=f"i{attempt.iteration}",
            whole=f"{attempt.story} {what} {word}",
        )


def _seconds(scene: Scene, attempt: Attempt) -> float:
    if attempt.ended is not None:
        return attempt.ended.seconds
    return max((scene.now if scene.standing.value == "running" else scene.view.state.now) - attempt.since, 0)


def iteration_of(key: str) -> int:
    """The iteration that a row is about; 0: none."""
    return int(key[1:]) if key.startswith("i") and key[1:].isdigit() else 0
