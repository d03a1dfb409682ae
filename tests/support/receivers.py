"""A real OTLP receiver on loopback: it decodes what it gets with the protocol's own package.

As a program, for a network that only its own processes reach: `receivers.py PORT FILE COMMAND …` runs a command beside
a receiver, and leaves in FILE what that got.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.proto.trace.v1.trace_pb2 import Status as ProtoStatus

ERROR, OK = ProtoStatus.STATUS_CODE_ERROR, ProtoStatus.STATUS_CODE_OK


class Receiver:
    """`spans` in the order of their arrival. With a `code` it refuses everything; it may `hang` before it answers."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.resources: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.requests = 0
        self.code = 200
        self.hang = threading.Event()
        self.hang.set()
        self.port = 0
        self.bodies = b""
        """All that was taken, as one message of the protocol."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def env(self) -> dict[str, str]:
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": self.url}

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        self.requests += 1
        self.hang.wait(60)
        if self.code != 200:
            return
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        self.paths.append(path)
        self.headers.append(headers)
        if path.endswith("/v1/traces") or not path.startswith("/v1/"):
            self.read(body)

    def read(self, body: bytes) -> None:
        self.bodies += body
        request = ExportTraceServiceRequest.FromString(body)
        for batch in request.resource_spans:
            self.resources.append(attributes(batch.resource))
            self.spans += [span for scope in batch.scope_spans for span in scope.spans]

    def wait_for(self, name: str, seconds: float = 30) -> Span:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if found := self.named(name):
                return found[-1]
            time.sleep(0.05)
        raise AssertionError(f"no span {name!r}: {sorted(span.name for span in self.spans)}")

    def named(self, name: str) -> list[Span]:
        return [span for span in self.spans if span.name == name]

    def of(self, trace: str) -> list[Span]:
        return [span for span in self.spans if span.trace_id.hex() == trace]

    @property
    def traces(self) -> list[str]:
        return list(dict.fromkeys(span.trace_id.hex() for span in self.spans))


@contextmanager
def receiver(port: int = 0) -> Iterator[Receiver]:
    known = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            known.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
            self.send_response(known.code)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        known.port = server.server_port
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield known
        finally:
            known.hang.set()
            server.shutdown()
            thread.join()


def attributes(holder: Any) -> dict[str, Any]:
    def value(any_value: Any) -> Any:
        kind = any_value.WhichOneof("value")
        if kind == "array_value":
            return [value(each) for each in any_value.array_value.values]
        return getattr(any_value, kind) if kind else None

    return {each.key: value(each.value) for each in holder.attributes}


def misnested(spans: list[Span], *, caller: str = "") -> list[str]:
    """What is wrong with the spans of one trace."""
    by_id = {span.span_id.hex(): span for span in spans}
    counted = Counter(span.span_id.hex() for span in spans)
    problems = [f"{count} spans with ID {name}" for name, count in counted.items() if count > 1]
    roots = [span for span in spans if span.parent_span_id.hex() == caller]
    if len(roots) != 1:
        problems.append(f"{len(roots)} roots: {[span.name for span in roots]}")
    if len({span.trace_id for span in spans}) > 1:
        problems.append("more than one trace")
    for span in spans:
        if span.end_time_unix_nano < span.start_time_unix_nano:
            problems.append(f"{span.name} ends before it starts")
        times = [event.time_unix_nano for event in span.events]
        if any(not span.start_time_unix_nano <= each <= span.end_time_unix_nano for each in times):
            problems.append(f"an event of {span.name} is outside it")
        if span in roots:
            continue
        parent = by_id.get(span.parent_span_id.hex())
        if parent is None:
            problems.append(f"{span.name} has no parent")
        elif not (
            parent.start_time_unix_nano <= span.start_time_unix_nano
            and span.end_time_unix_nano <= parent.end_time_unix_nano
        ):
            problems.append(f"{span.name} is not within {parent.name}")
    return problems


def drawn(spans: list[Span]) -> str:
    """The tree as indented text, for a person who looks at a failed test."""
    children: dict[str, list[Span]] = {}
    for span in sorted(spans, key=lambda span: span.start_time_unix_nano):
        children.setdefault(span.parent_span_id.hex(), []).append(span)
    ids = {span.span_id.hex() for span in spans}
    start = min((span.start_time_unix_nano for span in spans), default=0)

    def lines(parent: str, depth: int) -> Iterator[str]:
        for span in children.get(parent, ()):
            begun = (span.start_time_unix_nano - start) / 1e9
            took = (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9
            state = {ERROR: f"ERROR {span.status.message}", OK: "ok"}.get(span.status.code, "")
            events = [event.name for event in span.events]
            yield f"{'  ' * depth}{span.name}  {begun:.3f}+{took:.3f} {state} {json.dumps(attributes(span))} {events}"
            yield from lines(span.span_id.hex(), depth + 1)

    return "\n".join(line for parent in children if parent not in ids for line in lines(parent, 0))


def main() -> int:
    port, path, *command = sys.argv[1:]
    with receiver(int(port)) as known:
        code = subprocess.run(command, env={**os.environ, **known.env}, check=False).returncode
        time.sleep(0.5)  # a client may flush a moment after its end
        Path(path).write_bytes(known.bodies)
    return code


if __name__ == "__main__":
    sys.exit(main())
