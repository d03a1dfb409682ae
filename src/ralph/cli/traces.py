"""`ralph runs trace`: the spans of a recorded run, sent to a receiver or printed."""

from __future__ import annotations

import os
from argparse import Namespace
from collections.abc import Iterable
from itertools import islice

import msgspec

from ralph.cli.output import emit_json, say
from ralph.core.errors import SetupError, UsageError
from ralph.core.events import RunStarted
from ralph.core.exit_codes import ExitCode
from ralph.core.text import plural
from ralph.host.redaction import redact_struct
from ralph.journal.records import read
from ralph.state.locks import is_alive
from ralph.traces.fold import Tracer
from ralph.traces.span import Span
from ralph.traces.switch import ENDPOINTS, INSTALL, endpoint, is_installed, is_url, obstacle, shown
from ralph.workspace.runs import chosen_run

_PATH = "/v1/traces"
_BATCH = 256


def send_trace(args: Namespace) -> int:
    if args.endpoint and not is_url(args.endpoint):
        raise UsageError(f"--endpoint {args.endpoint!r} is not a URL", hint="e.g. --endpoint http://localhost:4318")
    journal = chosen_run(args, os.environ, args.run)
    tracer, spans = Tracer(), []
    for record in read(journal):
        spans += tracer.add(redact_struct(record))
    started = tracer.started
    under_way = started is not None and not tracer.is_over and is_alive(started)
    if not under_way:
        spans += tracer.close()
    if args.json:
        emit_json([msgspec.to_builtins(span) for span in spans])
        return ExitCode.COMPLETE
    if started is None or not spans:
        raise UsageError(
            f"run {journal.parent.name} has no finished spans yet", hint="--json prints those that are finished"
        )
    _send(started, spans, args.endpoint)
    where = shown(args.endpoint) if args.endpoint else endpoint(os.environ)
    more = "; the run is under way, and its other spans are not finished" if under_way else ""
    say(f"sent {plural(len(spans), 'span')} of run {journal.parent.name} to {where}, trace {spans[0].trace}{more}")
    return ExitCode.COMPLETE


def _send(started: RunStarted, spans: Iterable[Span], address: str) -> None:
    if not address and not any(os.environ.get(name, "").strip() for name in ENDPOINTS):
        raise UsageError("no receiver is named", hint=f"use --endpoint URL, or set {ENDPOINTS[1]}")
    if not is_installed():
        raise SetupError("OpenTelemetry is not installed", hint=INSTALL)
    if not address and (why_not := obstacle(os.environ)):
        raise SetupError(why_not, hint="or name the receiver with --endpoint")
    from ralph.traces.otlp import Sender

    troubles: list[str] = []
    url = address.rstrip("/") if not address or address.rstrip("/").endswith(_PATH) else address.rstrip("/") + _PATH
    sender, rest = Sender(troubles.append, url), iter(spans)
    sent = 0
    while batch := list(islice(rest, _BATCH)):
        if not sender.send(started, batch):
            where = shown(address) if address else endpoint(os.environ)
            why = troubles[-1] if troubles else "it gave no reason"
            raise SetupError(
                f"{where} did not take the spans ({sent} sent before): {why}",
                hint="check that it accepts OTLP over HTTP; the usual port is 4318",
            )
        sent += len(batch)
