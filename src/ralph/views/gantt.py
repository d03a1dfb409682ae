"""The timeline of a run: what happened when, one lane for each worker or, without workers, for each kind of work."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from textwrap import wrap

import msgspec
from msgspec import Struct

from ralph.core.text import plural
from ralph.core.verdict import Kind
from ralph.views.attempts import FAILED, Attempt, Span, SpanKind
from ralph.views.axes import Frame, time_axis
from ralph.views.run_view import RunView
from ralph.views.svg import Pen, Svg, Theme, element, plain, room_of
from ralph.views.words import duration

MOST_BARS = 1500
_MOST_LANES = 40
_MOST_ROWS = 4
"""Of one lane: bars that overlap are drawn one above the other."""
_GAP = 0.5
"""Pixels. Bars of one kind that are closer, and short, become one."""


class _Look(Struct, frozen=True):
    word: str
    cls: str
    hatch: str = ""
    """A path in a square of 6 pixels that repeats."""
    ink: str = "c-on-light"
    """The colour of letters on it."""


_LOOKS = {
    SpanKind.AGENT: _Look("work", "c-work", ink="c-on-dark"),
    SpanKind.REVIEW: _Look("review", "c-review", "M-1 1L1 -1M0 6L6 0M5 7L7 5"),
    SpanKind.FIX: _Look("fix", "c-fix", "M-1 5L1 7M0 0L6 6M5 -1L7 1"),
    SpanKind.CHECKS: _Look("checks", "c-checks", "M0 3H6"),
    SpanKind.PROOF: _Look("proof of merged work", "c-proof", "M0 3H6M3 0V6"),
    SpanKind.QUEUE: _Look("in the merge queue", "c-queue", "M3 0V6"),
    SpanKind.WAIT: _Look("waiting", "c-wait", "M0 6L6 0"),
    SpanKind.PAUSE: _Look("paused", "c-pause", "M2 1V5M4 1V5"),
    "accepted": _Look("accepted ✓", "c-accepted", ink="c-on-light"),
    "rejected": _Look("not accepted ✗", "c-rejected", "M0 0L6 6M0 6L6 0"),
    "returned": _Look("returned ↩", "c-wait", "M0 6L6 0"),
    "other": _Look("ended otherwise", "c-other"),
    "open": _Look("not ended", "c-open", "M3 0V6"),
}
_LANES = {
    SpanKind.AGENT: "work",
    SpanKind.REVIEW: "review",
    SpanKind.FIX: "fix",
    SpanKind.CHECKS: "checks",
    SpanKind.PROOF: "proof",
    SpanKind.QUEUE: "queue",
    SpanKind.WAIT: "waits",
    SpanKind.PAUSE: "waits",
}
_OF_RUN = (SpanKind.QUEUE, SpanKind.WAIT, SpanKind.PAUSE)
"""What no worker does."""
_STORIES = "stories"
_SIGNS = {"accepted": "✓ ", "rejected": "✗ ", "returned": "↩ "}
_ENDS = {Kind.ACCEPTED: "accepted", Kind.PARTIAL: "accepted", Kind.RETURNED: "returned"} | dict.fromkeys(
    (Kind.REJECTED, Kind.CRASHED, Kind.TIMED_OUT, Kind.MISCONFIGURED), "rejected"
)


class _Bar(Struct, frozen=True):
    lane: str
    look: str
    since: float
    until: float
    iteration: int
    label: str
    title: str
    row: int = 0
    count: int = 1


def gantt(view: RunView, width: int = 720, theme: Theme = Theme.AUTO) -> str:
    pen, start = Pen(f"gantt-{width}", theme), view.state.started_at
    whole = max(view.state.now - start, 1.0)
    bars = list(_bars(view))
    names = _lanes(bars)
    shown = [name for name in names if name in {*names[:_MOST_LANES], *names[-2:]}]
    rows = {name: _stacked([bar for bar in bars if bar.lane == name], whole / max(width, 1)) for name in shown}
    left = max((room_of(name) for name in shown), default=0) + 20
    frame = Frame(left, pen.head, max(width - left - 12, 50), 0, whole)
    rows = _merged(rows, frame)
    height = 24.0 if len(shown) <= 12 else 14.0
    body, y = pen.heading("Timeline"), frame.top
    tops: dict[str, float] = {}
    for name, found in rows.items():
        tops[name] = y
        y += height * (1 + max((bar.row for bar in found), default=0) * 0.6)
    frame = msgspec.structs.replace(frame, height=max(y - frame.top, height))
    body += time_axis(pen, frame)
    for name, found in rows.items():
        body.append(pen.text(left - 8, tops[name] + height / 2 + 4, name, "c-dim", text_anchor="end"))
        tall = height - 4 if all(not bar.row for bar in found) else height * 0.6 - 2
        for bar in found:
            body += _drawn(pen, frame, bar, tops[name] + 2 + bar.row * height * 0.6, tall)
    used = list(dict.fromkeys(bar.look for found in rows.values() for bar in found))
    used.sort(key=list(_LOOKS).index)
    legend, bottom = _legend(pen, used, frame.bottom + 26, width)
    if not bars:
        body = [*pen.heading("Timeline"), pen.text(12, pen.head + 14, "nothing has happened yet", "c-dim")]
    if bars and view.state.is_parallel:
        told = "✓ accepted, ✗ not accepted or failed, ↩ returned by the merge queue"
        for line in wrap(told, max(int((width - 24) / room_of("x")), 20)):
            body.append(pen.text(12, bottom + 14, line, "c-dim"))
            bottom += 16
    if len(names) > len(shown):
        body.append(pen.text(12, bottom + 12, f"and {len(names) - len(shown)} more lanes", "c-dim"))
        bottom += 18
    return pen.document(width, bottom + 4, "Timeline", _told(view, whole), _hatches(pen, used), *body, *legend)


def _bars(view: RunView) -> Iterator[_Bar]:
    attempts, now = view.attempts.by_iteration, view.state.now
    start, is_parallel = view.state.started_at, view.state.is_parallel
    if not is_parallel:
        for attempt in attempts.values():
            look = _end(attempt)
            until = attempt.until or now
            title = _title(f"{attempt.mode.value} {attempt.story}", attempt, until - attempt.since)
            label = f"{_SIGNS.get(look, '')}{attempt.story or attempt.mode.value}"
            yield _Bar(_STORIES, look, attempt.since - start, until - start, attempt.iteration, label, title)
    for span in view.attempts.spans:
        until = span.until or now
        title = _title(_what(span), attempts.get(span.iteration), until - span.since)
        label = span.story if is_parallel or span.kind not in (SpanKind.CHECKS, *_OF_RUN) else ""
        if is_parallel and span.kind not in (SpanKind.CHECKS, *_OF_RUN):
            label = f"{_sign(span, attempts.get(span.iteration))}{label}"
        yield _Bar(
            _lane(span, is_parallel=is_parallel),
            span.kind,
            span.since - start,
            until - start,
            span.iteration,
            label,
            title,
        )


def _end(attempt: Attempt | None) -> str:
    if attempt is None or attempt.ended is None:
        return "open"
    return _ENDS.get(attempt.ended.kind, "other")


def _sign(span: Span, attempt: Attempt | None) -> str:
    if span.kind is SpanKind.PROOF:
        return _SIGNS["rejected"] if span.label == FAILED else ""
    return _SIGNS.get(_end(attempt), "")


def _lane(span: Span, *, is_parallel: bool) -> str:
    if not is_parallel or span.kind in _OF_RUN:
        return _LANES[span.kind]
    return f"worker {span.worker}" if span.worker else "the run"


def _what(span: Span) -> str:
    what = f"{_LOOKS[span.kind].word}{f', {span.story}' if span.story else ''}"
    return f"{what}: {span.label}" if span.label and span.label != what else what


def _title(what: str, attempt: Attempt | None, seconds: float) -> str:
    iteration = f", iteration {attempt.iteration}" if attempt else ""
    end = f"; {attempt.ended.kind.value}: {attempt.ended.headline}" if attempt and attempt.ended else ""
    return plain(f"{what}{iteration}, {duration(seconds)}{end}")


def _lanes(bars: Iterable[_Bar]) -> list[str]:
    """Stories first, then workers by number or kinds in the order of the work, then what no worker does."""
    kinds = [_STORIES, *dict.fromkeys(_LANES.values())]
    last = [_LANES[kind] for kind in _OF_RUN]

    def place(name: str) -> tuple[int, int]:
        if name.startswith("worker "):
            return 1, int(name.removeprefix("worker "))
        return (2 if name in last else 1, kinds.index(name)) if name in kinds else (0, 0)

    return sorted({bar.lane for bar in bars}, key=place)


def _stacked(bars: list[_Bar], least: float) -> list[_Bar]:
    """Each in the first row where it overlaps none; `least` seconds of overlap are not seen."""
    ends = [0.0] * _MOST_ROWS
    placed = []
    for bar in sorted(bars, key=lambda bar: bar.since):
        row = next((row for row, end in enumerate(ends) if bar.since >= end - least), _MOST_ROWS - 1)
        ends[row] = max(ends[row], bar.until)
        placed.append(msgspec.structs.replace(bar, row=row))
    return placed


def _merged(rows: dict[str, list[_Bar]], frame: Frame) -> dict[str, list[_Bar]]:
    gap = _GAP
    while True:
        found = {name: _joined(bars, frame, gap) for name, bars in rows.items()}
        if sum(map(len, found.values())) <= MOST_BARS:
            return found
        gap *= 2


def _joined(bars: list[_Bar], frame: Frame, gap: float) -> list[_Bar]:
    """Bars of one kind that cannot be told apart are one."""
    pixel = frame.seconds / frame.width
    done: list[_Bar] = []
    open_: dict[tuple[str, int], _Bar] = {}
    for bar in bars:
        key = bar.look, bar.row
        before = open_.get(key)
        is_short = (bar.until - bar.since) < pixel * (gap + 1)
        if before is not None and is_short and bar.since - before.until < pixel * gap:
            open_[key] = _both(before, bar)
            continue
        if before is not None:
            done.append(before)
        open_[key] = bar
    return sorted((*done, *open_.values()), key=lambda bar: bar.since)


def _both(first: _Bar, last: _Bar) -> _Bar:
    count = first.count + last.count
    title = f"{_LOOKS[_known(first.look)].word}: {plural(count, 'bar')}, from iteration {first.iteration}"
    until = max(first.until, last.until)
    return msgspec.structs.replace(first, until=until, count=count, label="", title=title)


def _known(look: str) -> SpanKind:
    return look  # type: ignore[return-value]  # the keys of `_LOOKS` are texts


def _drawn(pen: Pen, frame: Frame, bar: _Bar, y: float, height: float) -> Iterator[Svg]:
    look = _LOOKS[_known(bar.look)]
    x = frame.x(bar.since)
    width = max(frame.x(bar.until) - x, 1.0)
    fill = f"url(#{pen.id(look.cls)})" if look.hatch else None
    yield pen.rect(
        x,
        y,
        width,
        height,
        look.cls,
        element("title", bar.title),
        data_iteration=str(bar.iteration) if bar.iteration else None,
        **({"class_": "c-bar", "fill": fill} if fill else {}),
        rx=2 if width > 6 else None,
    )
    if height >= 10 and (label := _fitting(bar.label, width - 8)):
        if look.hatch:  # letters are not read on lines
            yield pen.rect(x + 2, y + 2, room_of(label) + 4, height - 4, look.cls, pointer_events="none")
        yield pen.text(x + 4, y + height / 2 + 4, label, look.ink, pointer_events="none")


def _fitting(label: str, pixels: float) -> str:
    """The label, else its sign and the end of the story's ID, else the sign alone. Half an ID is none."""
    sign, _, story = plain(label, 60).partition(" ") if label[:2] in _SIGNS.values() else ("", "", plain(label, 60))
    end = re.split(r"[-.\s]", story)[-1]
    shorter = (f"{sign} {story}".strip(), f"{sign} {end}".strip(), sign)
    return next((text for text in shorter if text and room_of(text) <= pixels), "")


def _hatches(pen: Pen, used: list[str]) -> Svg:
    return element(
        "defs",
        *(
            element(
                "pattern",
                pen.rect(0, 0, 6, 6, look.cls),
                pen.path(look.hatch, "c-hatch", stroke_width="1.5", stroke_opacity="0.6"),
                id=pen.id(look.cls),
                width=6,
                height=6,
                patternUnits="userSpaceOnUse",
            )
            for look in (_LOOKS[_known(name)] for name in used)
            if look.hatch
        ),
    )


def _legend(pen: Pen, used: list[str], y: float, width: float) -> tuple[list[Svg], float]:
    drawn, x = [], 12.0
    for look in (_LOOKS[_known(name)] for name in used):
        room = room_of(look.word) + 32
        if x + room > width and x > 12:
            x, y = 12.0, y + 18
        fill: dict[str, str] = {"class_": "c-bar", "fill": f"url(#{pen.id(look.cls)})"} if look.hatch else {}
        drawn.append(pen.rect(x, y, 14, 12, look.cls, **fill))
        drawn.append(pen.text(x + 19, y + 10, look.word, "c-dim"))
        x += room
    return drawn, y + 14


def _told(view: RunView, whole: float) -> str:
    spent: dict[str, float] = {}
    for span in view.attempts.spans:
        word = _LOOKS[span.kind].word
        spent[word] = spent.get(word, 0) + (span.until or view.state.now) - span.since
    parts = "; ".join(f"{word} {duration(seconds)}" for word, seconds in spent.items())
    count = len(view.attempts.by_iteration)
    return f"{plural(count, 'iteration')} in {duration(whole)}{f': {parts}' if parts else ''}."
