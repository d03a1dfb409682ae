"""What a trace is made of, without OpenTelemetry: spans as values, and the tree that they are built in. Pure.

Whatever the records say, the result nests well: a parent exists, and lasts as long as its children.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from ralph.core.trace_context import TraceContext

Attribute = str | bool | int | float | tuple[str, ...]
_MOST_EVENTS = 128
"""Per span, as OpenTelemetry limits them."""


class Status(StrEnum):
    UNSET = "unset"
    OK = "ok"
    ERROR = "error"


class SpanEvent(Struct, frozen=True):
    name: str
    time: float
    attributes: dict[str, Attribute] = {}


class Span(Struct, frozen=True, kw_only=True):
    """A finished span. Times are seconds since the epoch."""

    trace: str
    id: str
    parent: str = ""
    name: str
    start: float
    end: float
    attributes: dict[str, Attribute] = {}
    events: tuple[SpanEvent, ...] = ()
    status: Status = Status.UNSET
    message: str = ""


class OpenSpan:
    """A span that has not finished. `Tree` makes and finishes it."""

    def __init__(self, id: str, parent: OpenSpan | None, name: str, start: float) -> None:
        self.id, self.parent, self.name, self.start = id, parent, name, start
        self.last = start
        """When something in it happened last."""
        self.attributes: dict[str, Attribute] = {}
        self.events: list[SpanEvent] = []
        self.children: dict[str, OpenSpan] = {}
        """Those that are open."""
        self.status, self.message = Status.UNSET, ""
        self.is_finished = False

    def put(self, attributes: Mapping[str, Attribute | None]) -> None:
        """Nothing is said about what is unknown or empty."""
        self.attributes |= {name: value for name, value in attributes.items() if value not in (None, "", ())}

    def judge(self, status: Status, message: str = "") -> None:
        self.status, self.message = status, message if status is Status.ERROR else ""


class Tree:
    """`finished` has the spans in the order in which they ended: the same records always give the same order."""

    def __init__(self, context: TraceContext, now: float, name: str) -> None:
        self._context = context
        self.now = now
        self._numbers: Counter[tuple[object, ...]] = Counter()
        self.finished: list[Span] = []
        self.root = self.open(None, name, "run")

    def open(self, parent: OpenSpan | None, name: str, *parts: object, start: float | None = None) -> OpenSpan:
        """`parts` identify it, together with how often they have come before."""
        self._numbers[parts] += 1
        begun = self.now if start is None else min(start, self.now)
        begun = begun if parent is None else max(begun, parent.start)
        span = OpenSpan(self._context.span(*parts, self._numbers[parts]), parent, name, begun)
        if parent is not None:
            parent.children[span.id] = span
        return span

    def tell(self, span: OpenSpan, event: str, **attributes: Attribute | None) -> None:
        span.last = max(span.last, self.now)
        if len(span.events) < _MOST_EVENTS:
            known = {f"ralph.{name}": value for name, value in attributes.items() if value not in (None, "", ())}
            span.events.append(SpanEvent(event, self.now, known))

    def finish(self, span: OpenSpan, *, end: float | None = None, why: str = "") -> None:
        """With everything in it that is open. `why`: it did not finish by itself. `end`: when, if that is not now."""
        if span.is_finished:
            return
        span.is_finished = True
        for child in list(span.children.values()):
            self.finish(child, why=why)
        if why:
            span.judge(Status.ERROR, why)
        end = max(span.start, span.last, self.now if end is None else end)
        if span.parent is not None:
            span.parent.children.pop(span.id)
            span.parent.last = max(span.parent.last, end)
        self.finished.append(
            Span(
                trace=self._context.trace,
                id=span.id,
                parent=span.parent.id if span.parent else self._context.caller,
                name=span.name,
                start=span.start,
                end=end,
                attributes=dict(span.attributes),
                events=tuple(span.events),
                status=span.status,
                message=span.message,
            )
        )

    def take(self) -> list[Span]:
        taken, self.finished = self.finished, []
        return taken
