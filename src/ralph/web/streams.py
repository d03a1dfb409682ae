"""Server-sent events: what is new, as one viewer can take it. A slow one gets the newest state, not a queue."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from http import HTTPStatus

from anyio.to_thread import run_sync
from starlette.responses import StreamingResponse

from ralph.core.events import AgentStarted
from ralph.web.access import Refused
from ralph.web.feeds import Feed, Home

_PER_DOCUMENT = 0.25
"""Seconds between two documents of a run."""
_BYTES_PER_SECOND = 1_000_000
"""A document of a long run is sent less often."""
_HEARTBEAT = 15.0
_TICK = 0.25
"""Seconds after which a stream notices at the latest that the server stops."""
_MOST = 400
_LATEST = 60
"""Events that a new viewer sees first."""


class Streams:
    def __init__(self, is_stopping: Callable[[], bool]) -> None:
        self._is_stopping = is_stopping
        self._open = 0

    def of(self, source: Feed | Home) -> StreamingResponse:
        if self._open >= _MOST:
            raise Refused(HTTPStatus.TOO_MANY_REQUESTS, f"{_MOST} pages are already open", "close one of them")
        events = self._home(source) if isinstance(source, Home) else self._run(source)
        return StreamingResponse(
            self._counted(events), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"}
        )

    async def _counted(self, events: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        self._open += 1
        told = time.monotonic()
        try:
            async with aclosing(events):
                async for data in events:
                    if data or time.monotonic() - told > _HEARTBEAT:
                        told = time.monotonic()
                        yield data or b": still here\n\n"
        finally:
            self._open -= 1

    async def _home(self, home: Home) -> AsyncGenerator[bytes, None]:
        shown = -1
        async with home.channel.watched():
            await run_sync(home.poll)
            while not self._is_stopping():
                data = b""
                if shown != home.version:
                    shown, document = await run_sync(home.document)
                    data = _event("home", document)
                yield data
                await home.channel.changed(_TICK)

    async def _run(self, feed: Feed) -> AsyncGenerator[bytes, None]:
        """The whole run first, then what is new of it."""
        shown, count, due, heard = -1, -1, 0.0, -1
        live: dict[int, tuple[AgentStarted, int]] = {}
        async with feed.channel.watched():
            await run_sync(feed.poll)
            while not self._is_stopping():
                data = b""
                if shown != feed.version and time.monotonic() >= due:
                    shown, document = await run_sync(feed.document)
                    data += _event("run", document)
                    due = time.monotonic() + max(_PER_DOCUMENT, len(document) / _BYTES_PER_SECOND)
                if count < 0 or feed.view.count < count:
                    count = max(feed.view.count - _LATEST, 0)
                if feed.view.count > count:
                    count, tail = await run_sync(feed.tail, count)
                    data += _event("tail", tail)
                if heard != (heard := feed.version):
                    for number, mark, entries in await run_sync(feed.live, dict(live)):
                        live[number] = mark
                        data += _event("live", entries)
                yield data
                late = due - time.monotonic() if shown != feed.version else _TICK
                await feed.channel.changed(min(max(late, 0.01), _TICK))


def _event(name: str, data: bytes) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), data)
