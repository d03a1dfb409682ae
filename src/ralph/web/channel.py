"""Something that is looked at again and again while anybody watches it, once for all who do."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable


class Channel:
    """`look` runs in a thread and says whether anything is new; `pause`: the seconds until it runs again."""

    def __init__(self, look: Callable[[], bool], pause: Callable[[], float]) -> None:
        self.viewers = 0
        self._look, self._pause = look, pause
        self._news: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        self.viewers += 1
        if self._task is None:
            self._news = asyncio.Event()
            self._task = asyncio.create_task(self._run())
        try:
            yield
        finally:
            self.viewers -= 1
            if not self.viewers and self._task is not None:
                self._task.cancel()
                self._task = None

    async def changed(self, seconds: float) -> None:
        """Wait until something is new, at most this long. There is no queue: who is slow sees the newest state."""
        if (news := self._news) is not None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(news.wait(), seconds)

    async def _run(self) -> None:
        while True:
            if await asyncio.to_thread(self._look):
                news, self._news = self._news, asyncio.Event()
                if news is not None:
                    news.set()
            await asyncio.sleep(self._pause())
