"""What an agent says and does, read from the raw log of its session, during the session and afterwards.

The run's own live view and `ralph watch` read the same file the same way, through the adapter that wrote the command
line. The journal only says which session it is.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.agents.registry import agent as find_agent
from ralph.config.prices import list_prices
from ralph.core.agent import (
    AgentEvent,
    Compacting,
    Outcome,
    Result,
    Retry,
    Text,
    Tokens,
    ToolResult,
    ToolUse,
    add,
)
from ralph.core.errors import RalphError
from ralph.core.events import AgentEnded, AgentStarted, RunStarted
from ralph.core.ports import Reader, events_in
from ralph.core.text import clean, one_line
from ralph.host.process.output import LineSplitter, Oversize
from ralph.host.process.raw_log import RawTail
from ralph.journal.run_state import RunState
from ralph.state.names import RAW, WORKERS
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path, raw_name

_KEPT = 60
"""How many lines and calls are kept for a view."""
_LINES = 12
"""How many lines of one message are kept."""


class Call(Struct):
    """A tool call and its result."""

    id: str
    summary: str
    since: float
    ok: bool | None = None
    seconds: float | None = None
    text: str = ""


class AgentStream:
    """The session of one agent process. `poll` reads what is new; everything else is the state so far."""

    def __init__(self, raw: Path, agent: str, clock: Callable[[], float] = time.time) -> None:
        self._raw = raw
        self._tail = RawTail(raw)
        self._lines = LineSplitter()
        self._clock = clock
        self._caught_up = False
        self._read: Reader | None = _reader(agent)
        self.recent: deque[str | Call] = deque(maxlen=_KEPT)
        """Lines the agent wrote and calls it made, oldest first."""
        self.outcome = Outcome()
        self.retry: Retry | None = None
        self.is_compacting = False

    @property
    def tokens(self) -> Tokens:
        """The session's usage so far: taken from its result, or else estimated from the messages."""
        return self.outcome.used

    @property
    def cost_usd(self) -> float | None:
        """None: unknown. An estimate at list prices until the session has ended."""
        if self.outcome.finished and self.outcome.cost_usd is not None:
            return self.outcome.cost_usd
        return list_prices().cost(self.outcome.model, self.tokens) if self.tokens.total else None

    def poll(self, tell: Callable[[AgentEvent], object] | None = None) -> None:
        """`tell`: is given every new event."""
        for event in self.news():
            self._add(event)
            if tell is not None:
                tell(event)
        self._caught_up = True

    def news(self) -> Iterator[AgentEvent]:
        """Events not read yet. Never raises: a log must not break a view."""
        if self._read is None:
            return
        try:
            while data := self._tail.read():
                yield from self._events(self._lines.blocks(data))
        except OSError:
            return

    def rest(self) -> Iterator[AgentEvent]:
        """The rest after the last newline, once the session is over."""
        yield from self._events(self._lines.flush())

    def close(self) -> None:
        self._tail.close()

    def _events(self, blocks: list[bytes | Oversize]) -> Iterator[AgentEvent]:
        for block in blocks:
            if self._read is not None and not isinstance(block, Oversize):
                yield from events_in(self._read, block, lambda _error: None)

    def _add(self, event: AgentEvent) -> None:
        self.outcome = add(self.outcome, event, "")
        if isinstance(event, Text | ToolUse | Result):
            self.retry = None
        match event:
            case Text(text):
                lines = [line for line in clean(text[-20_000:]).splitlines() if line.strip()]
                self.recent.extend(one_line(line, 1000) for line in lines[-_LINES:])
            case ToolUse(name, summary, id):
                self.recent.append(Call(id, one_line(summary or name, 300), self._now()))
            case ToolResult():
                self._end_call(event)
            case Retry():
                self.retry = event
            case Compacting(active):
                self.is_compacting = active

    def _end_call(self, event: ToolResult) -> None:
        for call in reversed(self.recent):
            if isinstance(call, Call) and call.id == event.id and call.ok is None:
                call.ok, call.text = event.ok, one_line(event.text[:1000], 300)
                call.seconds = event.seconds
                if call.seconds is None and self._caught_up:
                    call.seconds = self._clock() - call.since
                return

    def _now(self) -> float:
        """When a call that is read now began: a client prints nothing while its tool runs."""
        if self._caught_up:
            return self._clock()
        try:
            return self._raw.stat().st_mtime
        except OSError:
            return self._clock()


def running_sessions(state: RunState, env: Mapping[str, str]) -> Iterator[AgentStream]:
    """The running sessions, as far as they can be read here."""
    for activity in state.parallel.open.values():
        if activity.agent is not None and (stream := session_stream(state, activity.agent, env)) is not None:
            yield stream


def session_stream(state: RunState, session: AgentStarted, env: Mapping[str, str]) -> AgentStream | None:
    if state.started is None:
        return None
    started = state.parallel.started(session.iteration)
    raw = raw_log(state.started, session, env, started.worker if started else 0)
    stream = AgentStream(raw, session.agent or state.started.agent)
    stream.poll()
    return stream


def raw_log(run: RunStarted, session: AgentStarted | AgentEnded, env: Mapping[str, str], worker: int = 0) -> Path:
    """While a worker's iteration runs, its log is in the worker's own state folder."""
    state = workspace_state(Path(run.workspace), env)
    name = raw_name(session.iteration, session.step)
    own = journal_path(state, run.run).parent / RAW / name
    if not worker or own.exists():
        return own
    logs = [path for path in (state / WORKERS / str(worker)).glob(f"*/runs/*/{RAW}/{name}") if path.is_file()]
    return max(logs, key=_age, default=own)


def _age(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:
        return 0.0


def _reader(agent: str) -> Reader | None:
    try:
        return find_agent(agent).reader()
    except RalphError:  # an adapter that is not installed here
        return None
