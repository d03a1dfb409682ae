"""Spans to a receiver: OTLP over HTTP, as the standard variables configure it. Only this module needs OpenTelemetry."""

from __future__ import annotations

import logging
import os
import re
import socket
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

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
from ralph.traces.switch import endpoint as where

SERVICE = "ralph"
_CODES = {Status.UNSET: StatusCode.UNSET, Status.OK: StatusCode.OK, Status.ERROR: StatusCode.ERROR}
_SCOPE = InstrumentationScope("ralph", __version__)
_LOGGER = "opentelemetry"
_IN_VAIN = "due to timeout"
_PORTS = {"http": 80, "https": 443}
_PROBE = 1.0
"""Seconds."""
_WIDTH = 200


class Sender:
    """`trouble` is called with each reason why something could not be sent, also while that is still being tried."""

    def __init__(self, trouble: Callable[[str], object], endpoint: str = "") -> None:
        logger = logging.getLogger(_LOGGER)
        logger.propagate = False  # the exporter reports by logging, and nobody reads that
        self._listener = _Listener(trouble, endpoint or where(os.environ))
        logger.addHandler(self._listener)
        self._exporter = OTLPSpanExporter(endpoint=endpoint or None)

    def send(self, started: RunStarted, spans: Sequence[Span]) -> bool:
        """One batch. Whether the receiver took it."""
        self._listener.known = ""
        resource = resource_of(started)
        made = [readable(span, resource) for span in spans]
        return self._exporter.export(made) is SpanExportResult.SUCCESS


class _Listener(logging.Handler):
    def __init__(self, trouble: Callable[[str], object], address: str) -> None:
        super().__init__(logging.WARNING)
        self._trouble, self._address = trouble, address
        self.known = ""
        """Why this batch was not taken so far."""

    def emit(self, record: logging.LogRecord) -> None:
        message = record.getMessage()
        if not (self.known and _IN_VAIN in message):  # which says less
            self.known = reason(message, self._address)
            self._trouble(self.known)


def reason(message: str, address: str) -> str:
    """Why something was not taken, from what the exporter logs. At the end of its patience it does not say."""
    if found := re.search(r"code: (\w+), reason: (.*)", message):
        return one_line(found[2] if found[1] == "None" else f"HTTP {found[1]} {found[2]}", _WIDTH)
    if "CERTIFICATE_VERIFY_FAILED" in message:
        return "its TLS certificate cannot be verified; OTEL_EXPORTER_OTLP_CERTIFICATE names the file of a CA"
    if found := re.search(r"\[Errno -?\d+\] ([\w ,]+)", message):
        return found[1].strip().lower()
    if found := re.search(r"Transient error (.*) encountered", message):
        return one_line(found[1], _WIDTH)
    return _connection(address) if _IN_VAIN in message else one_line(message, _WIDTH)


def _connection(address: str) -> str:
    try:
        parts = urlsplit(address)
        with socket.create_connection((parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80)), _PROBE):
            return "it did not take them in time"
    except (OSError, ValueError) as error:
        return (getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()


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
