"""The transcript of an agent's session as text: messages, tool calls and their results, tokens and cost."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from ralph.cli.output import emit_line, paint, say_raw
from ralph.cli.words import duration, money, seconds, tokens
from ralph.core.agent import AgentEvent, Compacting, Init, Limit, Result, Retry, Text, ToolResult, ToolUse
from ralph.core.errors import UsageError
from ralph.core.events import AgentEnded, AgentStarted, IterationStarted, Record, RunStarted
from ralph.core.evidence import How
from ralph.core.text import clean, one_line
from ralph.host.process.raw_log import RawTail
from ralph.workspace.agent_stream import AgentStream, raw_log

_LINES = 8
"""Number of lines shown of a tool's result."""
_STDERR = 20


class Session(Struct):
    run: RunStarted
    iteration: IterationStarted
    started: AgentStarted
    ended: AgentEnded | None = None

    @property
    def raw(self) -> Path:
        return raw_log(self.run, self.started, os.environ)


def show_transcript(records: Iterable[Record], wanted: str, *, as_json: bool) -> int:
    """Show the sessions of one iteration; without a number, the last session."""
    for session in _choose(list(_sessions(records)), wanted):
        stream = AgentStream(session.raw, session.started.agent or session.run.agent)
        if as_json:
            for event in (*stream.news(), *stream.rest()):
                emit_line(event)
        else:
            for line in _lines(session, stream):
                say_raw(line)
        stream.close()
    return 0


def _sessions(records: Iterable[Record]) -> Iterator[Session]:
    run: RunStarted | None = None
    iteration: IterationStarted | None = None
    session: Session | None = None
    for record in records:
        match event := record.event:
            case RunStarted():
                run = event
            case IterationStarted():
                iteration = event
            case AgentStarted() if run and iteration:
                if session:
                    yield session
                session = Session(run, iteration, event)
            case AgentEnded() if session and session.started.step == event.step:
                session.ended = event
    if session:
        yield session


def _choose(sessions: list[Session], wanted: str) -> list[Session]:
    if not sessions:
        raise UsageError("no agent was started in this run", hint="`ralph runs` lists the runs")
    if not wanted:
        return sessions[-1:]
    if not wanted.isascii() or not wanted.isdigit():
        raise UsageError(
            f"{one_line(repr(wanted), 60)} is not the number of an iteration",
            hint="`ralph log --agent 3` shows iteration 3 of the last run, `ralph log RUN --agent 3` of another run",
        )
    chosen = {session.raw: session for session in sessions if session.iteration.iteration == int(wanted)}
    if not chosen:
        last = sessions[-1].iteration.iteration
        raise UsageError(f"iteration {wanted} has no session", hint=f"the last iteration of this run is {last}")
    return list(chosen.values())  # a step that was tried again has written over its log


def _lines(session: Session, stream: AgentStream) -> Iterator[str]:
    iteration = session.iteration
    again = f", attempt {iteration.attempt}" if iteration.attempt > 1 else ""
    story = f"{one_line(iteration.story)} {one_line(iteration.title)}".strip()
    yield paint(f"iteration {iteration.iteration}: {iteration.mode.value} {story}{again}", "bold")
    yield paint(f"agent {session.started.agent or session.run.agent}, {session.raw}", "dim")
    if not session.raw.exists():
        yield paint("the raw log no longer exists", "yellow")
    calls: dict[str, str] = {}
    latest = ""
    for event in (*stream.news(), *stream.rest()):
        if isinstance(event, ToolUse):
            calls[event.id] = one_line(event.summary or event.name, 200)
        elif isinstance(event, ToolResult) and event.id != latest:
            yield paint(f"↳ {calls.get(event.id, 'a call')}", "dim")
        latest = event.id if isinstance(event, ToolUse | ToolResult) else ""
        yield from _event(event)
    yield from _errors(session)
    yield _ending(session)


def _event(event: AgentEvent) -> Iterator[str]:
    match event:
        case Init(model=model) if model:
            yield paint(f"model {one_line(model, 80)}", "dim")
        case Text(text):
            yield ""
            yield from clean(text).strip("\n").splitlines()
        case ToolUse(name, summary):
            yield ""
            yield paint(f"⚙ {one_line(summary or name, 200)}", "cyan")
        case ToolResult(ok=ok):
            yield from _returned(event, "dim" if ok else "red")
        case Retry(attempt=attempt, status=status):
            yield paint(f"the client retries (attempt {attempt}, status {status})", "yellow")
        case Compacting(active=True):
            yield paint("the client compacts its context", "yellow")
        case Limit(rejected=True):
            yield paint("usage limit reached", "yellow")
        case Result():
            yield ""
            facts = [tokens(event.tokens), money(event.cost_usd), *([f"{event.turns} turns"] if event.turns else [])]
            yield paint(f"result: {event.trouble or ('ok' if event.ok else 'failed')}, {', '.join(facts)}", "bold")


def _returned(event: ToolResult, style: str) -> Iterator[str]:
    lines = clean(event.text).strip().splitlines()
    shown = lines if len(lines) <= _LINES + 1 else lines[:_LINES]
    for line in shown:
        yield paint(f"    {line[:200]}", style)
    if left := len(lines) - len(shown):
        yield paint(f"    … {left} more lines", "dim")
    facts = [*([] if event.ok else ["failed"]), *([seconds(event.seconds)] if event.seconds is not None else [])]
    if facts:
        yield paint(f"    ({', '.join(facts)})", style)


def _errors(session: Session) -> Iterator[str]:
    tail = RawTail(session.raw.with_suffix(".err.log"))
    end = b""
    while data := tail.read():
        end = (end + data)[-_STDERR * 1000 :]
    tail.close()
    lines = clean(end.decode("utf-8", "replace")).strip().splitlines()
    if lines:
        yield ""
        yield paint("stderr:", "bold")
        yield from (f"    {line[:200]}" for line in lines[-_STDERR:])


def _ending(session: Session) -> str:
    if session.ended is None:
        return paint("the journal has no end of this session: it is still running, or the run was killed", "yellow")
    ended = session.ended.ended
    how = f"exit code {ended.code}" if ended.how is How.EXITED and ended.code is not None else ended.how.value
    return paint(f"session ended after {duration(ended.seconds)}: {how}", "dim")
