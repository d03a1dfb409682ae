"""The trace of a run: a process of its own sends it, if the standard variables of OpenTelemetry name a receiver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ralph.core.events import Record, RunStarted
from ralph.core.trace_context import TraceContext
from ralph.journal.records import Listener
from ralph.run.spec import RunSpec, run_folder
from ralph.state.names import JOURNAL

if TYPE_CHECKING:
    from collections.abc import Callable

_PATIENCE = 2.0
"""Seconds that a run waits at its end for the last spans to be sent."""
_MARK = "OTEL_EXPORTER_OTLP_"
"""Without such a variable nothing of this is imported."""


def trace_of(run: str, env: Mapping[str, str], tell: Callable[[str], None]) -> TraceContext | None:
    """None: no trace is sent. Says why not if one is wanted."""
    if not any(name.startswith(_MARK) for name in env):
        return None
    from ralph.traces.switch import context, obstacle

    found = context(run, env)
    if found is not None and (why_not := obstacle(env)):
        tell(why_not)
        return None
    return found


@contextmanager
def traced(spec: RunSpec, env: Mapping[str, str], tell: Callable[[str], None]) -> Iterator[list[Listener]]:
    """What listens to the journal so that a trace is sent."""
    if spec.trace is None:
        yield []
        return
    tracing = _Tracing(run_folder(spec.ref, spec.run, env), env)
    try:
        yield [tracing]
    finally:
        if problem := tracing.end():
            tell(f"{problem}; `ralph runs trace {spec.run}` sends the trace again")


class _Tracing:
    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        from ralph.host.process.companion import Companion

        self._folder, self._env = folder, env
        self._process: Companion | None = None
        self._make = Companion
        self._failed = ""

    def __call__(self, record: Record) -> None:
        if not isinstance(record.event, RunStarted):
            return
        try:
            self._process = self._make("ralph.traces.exporter", [str(self._folder / JOURNAL)], self._env)
        except OSError as error:
            self._failed = f"the process that sends traces could not be started: {error.strerror}"

    def end(self) -> str:
        """What went wrong; empty: everything was sent."""
        if self._process is None:
            return self._failed
        from ralph.traces.delivery import read_delivery
        from ralph.traces.switch import endpoint

        def has_trouble() -> bool:
            delivery = read_delivery(self._folder)
            return delivery is not None and bool(delivery.trouble)

        code = self._process.release(_PATIENCE, has_trouble)
        if code == 0:
            return ""
        delivery = read_delivery(self._folder)
        where = endpoint(self._env)
        if delivery is not None and delivery.trouble:
            return f"not all spans of this run were taken by {where}: {delivery.trouble}"
        if code is None:
            return f"{where} is slow; the last spans of this run are still being sent"
        return f"the process that sends traces ended with exit code {code}"
