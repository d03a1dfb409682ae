"""Spans to a receiver: OTLP over HTTP, as the standard variables configure it. Only this module needs OpenTelemetry."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.trace.export import SpanExportResult
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, SpanKind, StatusCode, TraceFlags
from opentelemetry.trace import Status as OtelStatus

from ralph import __version__
from ralph.core.events import RunStarted
from ralph.core.text import one_line
from ralph.traces.span import Span, Status

SERVICE = "ralph"
_CODES = {Status.UNSET: StatusCode.UNSET, Status.OK: StatusCode.OK, Status.ERROR: StatusCode.ERROR}
_SCOPE = InstrumentationScope("ralph", __version__)
_LOGGER = "opentelemetry"


class Sender:
    """`trouble` is called with each reason why something could not be sent, also while that is still being tried."""

    def __init__(self, trouble: Callable[[str], object], endpoint: str = "") -> None:
        logger = logging.getLogger(_LOGGER)
        logger.propagate = False  # the exporter reports by logging, and nobody reads that
        logger.addHandler(_Listener(trouble))
        self._exporter = OTLPSpanExporter(endpoint=endpoint or None)

    def send(self, started: RunStarted, spans: Sequence[Span]) -> bool:
        """One batch. Whether the receiver took it."""
        resource = resource_of(started)
        made = [readable(span, resource) for span in spans]
        return self._exporter.export(made) is SpanExportResult.SUCCESS


class _Listener(logging.Handler):
    def __init__(self, trouble: Callable[[str], object]) -> None:
        super().__init__(logging.WARNING)
        self._trouble = trouble

    def emit(self, record: logging.LogRecord) -> None:
        self._trouble(one_line(record.getMessage(), 200))


def resource_of(started: RunStarted) -> Resource:
    own: dict[str, str | int] = {
        "service.name": SERVICE,
        "service.version": started.version,
        "host.name": started.host,
        "process.pid": started.pid,
    }
    return Resource({**own}).merge(OTELResourceDetector().detect())


def readable(span: Span, resource: Resource) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=_context(span.trace, span.id),
        parent=_context(span.trace, span.parent) if span.parent else None,
        resource=resource,
        attributes=span.attributes,
        events=[Event(event.name, event.attributes, _nanoseconds(event.time)) for event in span.events],
        kind=SpanKind.INTERNAL,
        instrumentation_scope=_SCOPE,
        status=OtelStatus(_CODES[span.status], span.message or None),
        start_time=_nanoseconds(span.start),
        end_time=_nanoseconds(span.end),
    )


def _context(trace: str, span: str) -> SpanContext:
    return SpanContext(int(trace, 16), int(span, 16), is_remote=False, trace_flags=TraceFlags(TraceFlags.SAMPLED))


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1000) * 1_000_000
