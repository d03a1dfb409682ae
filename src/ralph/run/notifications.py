"""Sends the notifications of a run in the background, so that a failing channel does not disturb the run.

Each channel has its own thread and a short queue, so that one that hangs does not delay the others. A failure is
reported once per channel. At the end of the run, pending messages get a limited time and are then dropped.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType

from ralph.config.schema import Notify
from ralph.core.events import Record
from ralph.core.text import one_line
from ralph.host.process.signals import StopSignal
from ralph.host.redaction import redact_struct
from ralph.notify.channels import Channel
from ralph.notify.message import Message, Moment, NotSent
from ralph.report.advice import News

_MOST_WAITING = 20
_AFTER_INTERRUPT = 3.0
"""Seconds for the last messages after Ctrl-C: the user wants the terminal back."""
_TICK = 0.05
_PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0)
"""Seconds before a message is sent again. `Retry-After` makes a pause longer."""
_LONGEST_PAUSE = 60.0
_MORE_AT_THE_END = 30.0
"""Seconds, added to the time for the last messages while one of them is about to be sent again."""
SHORTEST = 0.1
"""Seconds. A socket with a timeout of 0 would not even try."""


class Notifier:
    """Listens to the journal. Leaving the context sends what is pending."""

    def __init__(self, ways: Sequence[Channel], config: Notify, tell: Callable[[str], None], stop: StopSignal) -> None:
        self._timeout = max(config.timeout, SHORTEST)
        self._lines = [_Line(way, self._timeout, tell) for way in ways]
        self._on = frozenset(map(Moment, config.on))
        self._tell = tell
        self._stop = stop
        self._news = News()

    def __call__(self, record: Record) -> None:
        try:
            messages = self._news.hear(record)
        except Exception as error:  # noqa: BLE001 - the journal would treat it as its own error
            self._tell(f"warning: no notification sent: internal error ({type(error).__name__}); the run continues")
            return
        for message in messages:
            self._send(message)

    def __enter__(self) -> Notifier:
        for line in self._lines:
            line.refuse_unfit()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and (message := self._news.broken_off(one_line(str(error)), time.time())):
            self._send(message)
        self._drain()

    def _send(self, message: Message) -> None:
        if message.event in self._on:
            message = redact_struct(message)
            for line in self._lines:
                line.put(message)

    def _drain(self) -> None:
        was_stopped = self._stop.requested
        bound = _AFTER_INTERRUPT if was_stopped else self._timeout + 1
        deadline = time.monotonic() + bound
        for line in self._lines:
            line.close()
        while any(line.is_busy for line in self._lines) and not self._stop.urgent:
            is_retrying = any(line.is_retrying for line in self._lines) and not self._stop.requested
            is_stopped_now = self._stop.requested and not was_stopped  # the user does not want to wait for messages
            if is_stopped_now or time.monotonic() >= deadline + (_MORE_AT_THE_END if is_retrying else 0):
                break
            time.sleep(_TICK)
        for line in self._lines:
            line.give_up()


class _Line:
    """One channel with its thread and queue."""

    def __init__(self, way: Channel, timeout: float, tell: Callable[[str], None]) -> None:
        self._way = way
        self._timeout = timeout
        self._tell = tell
        self._waiting: queue.Queue[Message | None] = queue.Queue(_MOST_WAITING)
        self._cancel = StopSignal()
        self._thread: threading.Thread | None = None
        self._is_told = False
        self._is_unfit = False
        self.is_retrying = False
        """The message was refused for now, and is sent again."""

    @property
    def is_busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def refuse_unfit(self) -> None:
        if problem := self._way.problem():
            self._is_unfit = True
            self._complain(problem)

    def put(self, message: Message) -> None:
        if self._is_unfit:
            return
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name=f"notify {self._way.name}", daemon=True)
            self._thread.start()
        try:
            self._waiting.put_nowait(message)
        except queue.Full:
            self._complain("too many messages are queued")

    def close(self) -> None:
        if self._thread is not None:
            try:
                self._waiting.put_nowait(None)
            except queue.Full:
                self._cancel.request()

    def give_up(self) -> None:
        if self.is_busy:
            self._complain("timed out")
            self._cancel.request()
            assert self._thread is not None
            self._thread.join(2.0)
        if not self.is_busy:
            self._cancel.close()

    def _work(self) -> None:
        while (message := self._waiting.get()) is not None and not self._cancel.requested:
            try:
                self._send(message)
            except NotSent as error:
                self._complain(str(error))
            except Exception as error:  # noqa: BLE001 - nothing that happens here may disturb the run
                self._complain(f"internal error ({type(error).__name__})")
            self.is_retrying = False

    def _send(self, message: Message) -> None:
        """Send it, several times if the other side is busy or not there for a moment."""
        for pause in _PAUSES:
            try:
                self._way.send(message, self._timeout, self._cancel)
                return
            except NotSent as error:
                if error.retry_in is None or error.retry_in > _LONGEST_PAUSE:
                    raise
                self.is_retrying = True
                if self._cancel.wait(max(pause, error.retry_in)):
                    raise
        self._way.send(message, self._timeout, self._cancel)

    def _complain(self, why: str) -> None:
        if not self._is_told:
            self._is_told = True
            self._tell(f"warning: no notification by {self._way.name}: {one_line(why, 200)}; the run continues")
