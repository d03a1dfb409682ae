"""The transcript of a session in pages: what the agent wrote, the calls it made, and what came of them.

From the raw log where it is there; of a run that was copied without its logs, the journal has the beginnings of the
texts and the calls. All of it is an agent's text: invisible and control characters are shown, not obeyed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import islice
from pathlib import Path

from msgspec import Struct

from ralph.core.agent import AgentEvent, Compacting, Init, Limit, Result, Retry, Text, ToolResult, ToolUse
from ralph.core.events import AgentSaid, AgentStarted, RunStarted
from ralph.core.text import one_line, plural, shown
from ralph.host.redaction import redact
from ralph.journal.records import pick
from ralph.state.names import RAW
from ralph.state.runs import raw_name
from ralph.views.attempts import AgentSession, Attempt
from ralph.workspace.agent_stream import AgentStream, raw_log

LONGEST = 20_000
"""Characters of one entry. The full text is in the raw log."""


class EntryKind(StrEnum):
    TEXT = "text"
    CALL = "call"
    NOTE = "note"
    RESULT = "result"


class TranscriptEntry(Struct):
    number: int
    kind: EntryKind
    text: str
    """What was written; of a call, what it is about."""
    tool: str = ""
    answer: str = ""
    """The beginning of the tool's result."""
    ok: bool | None = None
    """Of a call; None: it has not ended, or nothing is known about it."""
    seconds: float | None = None
    is_cut: bool = False


class Transcript(Struct, frozen=True):
    entries: tuple[TranscriptEntry, ...]
    total: int
    source: str
    """The file it is from; empty: the journal."""


def transcript(
    run: RunStarted,
    journal: Path,
    attempt: Attempt,
    session: AgentSession,
    env: Mapping[str, str],
    *,
    start: int = 0,
    count: int = 200,
    search: str = "",
) -> Transcript:
    """A page of the entries that contain `search`, whatever its case."""
    raw = find_log(run, journal, attempt, session, env)
    events = _from_log(raw, session.agent or run.agent) if raw else _from_journal(journal, attempt.iteration)
    wanted = search.lower()
    found = [
        entry
        for entry in entries(events)
        if not wanted or wanted in entry.text.lower() or wanted in entry.answer.lower() or wanted in entry.tool.lower()
    ]
    page = tuple(islice(found, max(start, 0), max(start, 0) + max(count, 0)))
    return Transcript(page, len(found), str(raw) if raw else "")


def find_log(
    run: RunStarted, journal: Path, attempt: Attempt, session: AgentSession, env: Mapping[str, str]
) -> Path | None:
    """Beside the journal, also of a copied run; else where the run wrote it."""
    beside = journal.parent / RAW / raw_name(attempt.iteration, session.step)
    if beside.is_file():
        return beside
    started = AgentStarted(iteration=attempt.iteration, step=session.step, pid=0, start="")
    there = raw_log(run, started, env, attempt.worker)
    return there if there.is_file() else None


def _from_log(raw: Path, agent: str) -> Iterator[AgentEvent]:
    stream = AgentStream(raw, agent)
    try:
        yield from stream.news()
        yield from stream.rest()
    finally:
        stream.close()


def _from_journal(journal: Path, iteration: int) -> Iterator[AgentEvent]:
    """Only its own lines are decoded: a page of a long journal is asked for again and again."""
    own = b'"event":{"type":"%s","iteration":%d,' % (AgentSaid.__name__.encode(), iteration)
    for record in pick(journal, [own]):
        if isinstance(record.event, AgentSaid):
            yield record.event.event


def entries(events: Iterable[AgentEvent]) -> list[TranscriptEntry]:
    found = Entries()
    for event in events:
        found.add(event)
    return list(found.found)


class Entries:
    """A call and its result are one entry; lines of one message are one, too. `most`: how many are kept."""

    def __init__(self, most: int | None = None) -> None:
        self.found: deque[TranscriptEntry] = deque(maxlen=most)
        self._calls: dict[str, TranscriptEntry] = {}
        self._count = 0

    def _put(self, kind: EntryKind, text: str, tool: str = "") -> TranscriptEntry:
        shown, is_cut = _shown(text)
        self.found.append(TranscriptEntry(self._count, kind, shown, tool, is_cut=is_cut))
        self._count += 1
        return self.found[-1]

    def add(self, event: AgentEvent) -> None:
        found, put = self.found, self._put
        match event:
            case Text(more=True) if found and found[-1].kind is EntryKind.TEXT and found[-1].is_cut:
                pass  # a message of ten megabytes is not cleaned again for each of its lines
            case Text(text, more=True) if found and found[-1].kind is EntryKind.TEXT:
                joined, is_cut = _shown(f"{found[-1].text}\n{text}")
                found[-1].text, found[-1].is_cut = joined, found[-1].is_cut or is_cut
            case Text(text) if text.strip():
                put(EntryKind.TEXT, text)
            case ToolUse(name, summary, id):
                self._calls[id] = put(EntryKind.CALL, event.command or event.path or summary, one_line(name, 60))
            case ToolResult(id) if id in self._calls:
                call = self._calls.pop(id)
                call.answer, is_cut = _shown(event.text)
                call.ok, call.seconds, call.is_cut = event.ok, event.seconds, call.is_cut or is_cut
            case Init(model=model) if model:
                put(EntryKind.NOTE, f"model {model}{f', {event.note}' if event.note else ''}")
            case Retry(attempt=number, status=status, error=error):
                put(
                    EntryKind.NOTE,
                    f"the client retries (attempt {number}{f', status {status}' if status else ''}) {error}",
                )
            case Limit(rejected=True):
                put(EntryKind.NOTE, f"usage limit reached: {event.kind}")
            case Compacting(active):
                put(EntryKind.NOTE, f"the client {'compacts' if active else 'has compacted'} its context")
            case Result():
                how = "ended well" if event.ok else f"ended with an error: {event.detail or event.trouble or ''}"
                put(
                    EntryKind.RESULT, f"the session {how}, {plural(event.turns, 'turn')}, {event.tokens.total:,} tokens"
                )
            case _:
                pass


def _shown(text: str) -> tuple[str, bool]:
    """Cut before it is cleaned: a client may print a gigabyte on one line."""
    return redact(shown(text[:LONGEST])), len(text) > LONGEST
