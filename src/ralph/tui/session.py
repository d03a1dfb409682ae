"""The end of an agent's session, read bit by bit while it grows: a log of any size is never read at once or kept."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.agent import AgentEvent, Text, ToolResult, ToolUse
from ralph.core.events import RunStarted
from ralph.views.attempts import AgentSession, Attempt
from ralph.views.transcript import LONGEST, TranscriptEntry, entries, find_log, transcript
from ralph.workspace.agent_stream import AgentStream

_MOST = 1200
_KEPT = 600
"""Events of a session. The older ones are in `ralph log --agent`."""
_SLICE = 0.1
"""Seconds of reading between two looks at what the user wants now."""


class SessionText(Struct, frozen=True):
    entries: tuple[TranscriptEntry, ...] = ()
    dropped: int = 0
    """Entries before these that are not kept."""
    is_reading: bool = False
    """There is more in the log."""


class SessionTail:
    def __init__(
        self,
        of: tuple[object, ...],
        run: RunStarted,
        journal: Path,
        attempt: Attempt,
        session: AgentSession,
        env: Mapping[str, str],
    ) -> None:
        self.of = of
        self._what = run, journal, attempt, session, env
        self._agent = session.agent or run.agent
        self._stream: AgentStream | None = None
        self._news: Iterator[AgentEvent] | None = None
        self._events: list[AgentEvent] = []
        self._dropped = 0
        self._since: dict[str, float] = {}
        """Running calls, seen to begin."""
        self._shown = SessionText()
        self._looked = 0.0

    def read(self, *, is_running: bool) -> SessionText:
        if self._stream is None and (raw := find_log(*self._what)) is not None:
            self._stream = AgentStream(raw, self._agent)
        if self._stream is None:
            return self._from_journal(is_running=is_running)
        was_reading, count = self._news is not None, 0
        until = time.monotonic() + _SLICE
        self._news = self._news or self._stream.news()
        for event in self._news:
            self._add(event, is_live=is_running and not was_reading)
            count += 1
            if time.monotonic() > until:
                break
        else:
            self._news = None
            if not is_running and count:
                for event in self._stream.rest():
                    self._add(event, is_live=False)
        if count or was_reading:
            self._trim()
            found = entries(self._events)
            for each in found:
                each.number += self._dropped
            self._shown = SessionText(tuple(found), self._dropped, self._news is not None)
        return self._shown

    def _add(self, event: AgentEvent, *, is_live: bool) -> None:
        """Cut long texts, and time the calls of a client that does not."""
        if isinstance(event, Text) and len(event.text) > LONGEST:
            event = msgspec.structs.replace(event, text=event.text[: LONGEST + 1])
        elif isinstance(event, ToolUse) and is_live:
            self._since[event.id] = time.time()
        elif isinstance(event, ToolResult):
            since = self._since.pop(event.id, None)
            took = event.seconds if event.seconds is not None or since is None else time.time() - since
            event = msgspec.structs.replace(event, text=event.text[: LONGEST + 1], seconds=took)
        self._events.append(event)
        if len(self._events) > 2 * _MOST:
            self._trim()

    def _trim(self) -> None:
        if len(self._events) > _MOST:
            before = len(entries(self._events))
            del self._events[:-_KEPT]
            self._dropped += before - len(entries(self._events))

    def _from_journal(self, *, is_running: bool) -> SessionText:
        """There is no log here: of a copied run, the journal has the beginnings of what was said."""
        if self._shown.entries and not (is_running and time.monotonic() - self._looked > 2):
            return self._shown
        self._looked = time.monotonic()
        run, journal, attempt, session, env = self._what
        total = transcript(run, journal, attempt, session, env, count=0).total
        start = max(total - _KEPT, 0)
        page = transcript(run, journal, attempt, session, env, start=start, count=_KEPT)
        self._shown = SessionText(page.entries, start)
        return self._shown

    def close(self) -> None:
        if self._stream is not None:
            self._stream.close()
