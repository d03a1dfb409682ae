"""Sends the trace of a run while it lasts: `python -m ralph.traces.exporter JOURNAL`, started by `ralph run`.

It only follows the journal, so nothing that happens to it or to the receiver reaches the run, and it completes the
trace of a run that is killed. Before that it sends what is left of earlier runs whose sender was killed, too. Spans
that a receiver does not take are kept and tried again; when the run has ended, not for longer than `_LAST` seconds.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ralph.core.errors import BadData
from ralph.core.events import RunStarted
from ralph.host.process.companion import end_within, outlive_terminal, run_is_over
from ralph.host.process.tree import identify
from ralph.journal.records import Follower, read
from ralph.state.locks import is_alive
from ralph.state.names import JOURNAL
from ralph.traces.delivery import Delivery, read_delivery, write_delivery
from ralph.traces.fold import Tracer
from ralph.traces.span import Span

if TYPE_CHECKING:
    from ralph.traces.otlp import Sender

_LOOK = 0.5
"""Seconds between two looks at the journal."""
_BATCH = 256
_BATCHING = 2.0
_PAUSES = (2.0, 5.0, 15.0, 60.0)
"""Seconds before the next attempt, after that many failures."""
_LAST = 10.0
_LONGEST = 15
"""Seconds after the end of the run at which this process is ended, whatever hangs."""
_ALIVE = 5.0
"""Seconds between two looks whether a run that is silent is alive."""
_MOST_RUNS = 20

Send = Callable[[RunStarted, list[Span]], bool]


class Shipment:
    """The spans of one run on their way."""

    def __init__(self, folder: Path, send: Send) -> None:
        self._folder, self._send = folder, send
        self.tracer = Tracer()
        me = identify(os.getpid())
        self._state = replace(
            read_delivery(folder) or Delivery(), pid=os.getpid(), start=me.start if me else "", trouble=""
        )
        self._skip = self._state.sent
        self._waiting: list[Span] = []
        self._is_closed = False
        write_delivery(folder, self._state)

    def add(self, spans: list[Span]) -> None:
        """Those that an earlier process sent are left out: the same records give the same spans in the same order."""
        left_out = min(self._skip, len(spans))
        self._skip -= left_out
        self._waiting += spans[left_out:]

    def close(self) -> None:
        self.add(self.tracer.close())
        self._is_closed = True

    @property
    def is_empty(self) -> bool:
        return not self._waiting

    def ship(self) -> bool:
        """All that waits, in batches; false if the receiver did not take one."""
        while self._waiting and self.tracer.started is not None:
            batch = self._waiting[:_BATCH]
            if not self._send(self.tracer.started, batch):
                return False
            del self._waiting[: len(batch)]
            # What is closed here could be closed otherwise by the next run, so that counts only as a whole.
            sent = self._state.sent if self._is_closed else self._state.sent + len(batch)
            self._note(sent=sent, trouble="")
        return True

    def complete(self) -> None:
        self._note(is_complete=True)

    def trouble(self, why: str) -> None:
        if why != self._state.trouble:
            self._note(trouble=why)

    def _note(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)
        write_delivery(self._folder, self._state)


def follow(journal: Path, shipment: Shipment) -> bool:
    """Until the run has ended. Whether everything was sent."""
    follower, tracer = Follower(journal), shipment.tracer
    due = looked = time.monotonic()
    failures = 0
    while not tracer.is_over:
        is_gone = run_is_over(_LOOK)
        if not is_gone and time.monotonic() > looked + _ALIVE:
            looked, is_gone = time.monotonic(), tracer.started is not None and not is_alive(tracer.started)
        for record in follower.news():
            shipment.add(tracer.add(record))
        if is_gone or tracer.is_over:
            break
        if not shipment.is_empty and time.monotonic() >= due:
            failures = 0 if shipment.ship() else failures + 1
            due = time.monotonic() + (_PAUSES[min(failures, len(_PAUSES)) - 1] if failures else _BATCHING)
    end_within(_LONGEST)
    shipment.close()
    until = time.monotonic() + _LAST
    while not shipment.ship():
        if failures or time.monotonic() + 1 > until:
            return False
        time.sleep(1)
    shipment.complete()
    return True


class Line:
    """To the receiver. OpenTelemetry is much to import, so that this process has said before what it is about."""

    def __init__(self) -> None:
        self.trouble: Callable[[str], object] = lambda why: None
        self._sender: Sender | None = None

    def open(self) -> None:
        from ralph.traces.otlp import Sender

        self._sender = self._sender or Sender(self._tell)

    def _tell(self, why: str) -> None:
        self.trouble(why)

    def send(self, started: RunStarted, spans: list[Span]) -> bool:
        assert self._sender is not None
        return self._sender.send(started, spans)


def complete_earlier(journal: Path, line: Line) -> None:
    """Send what is left of runs that were killed together with the process that sent their traces."""
    runs = sorted(path.parent for path in journal.parent.parent.glob(f"*/{JOURNAL}") if path != journal)
    for folder in runs[-_MOST_RUNS:]:
        delivery = read_delivery(folder)
        if delivery is None or delivery.is_complete or delivery.is_under_way:
            continue
        shipment = Shipment(folder, line.send)
        line.trouble = shipment.trouble
        try:
            for record in read(folder / JOURNAL):
                shipment.add(shipment.tracer.add(record))
        except BadData:
            continue
        started = shipment.tracer.started
        if started is None or (not shipment.tracer.is_over and is_alive(started)):
            continue
        shipment.close()
        if not shipment.ship():
            return
        shipment.complete()


def main(path: str) -> int:
    outlive_terminal()
    journal, line = Path(path), Line()
    shipment = Shipment(journal.parent, line.send)
    line.open()
    complete_earlier(journal, line)
    line.trouble = shipment.trouble
    return 0 if follow(journal, shipment) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
