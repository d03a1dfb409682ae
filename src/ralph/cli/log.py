"""`ralph log`: the events of a run, and the transcript of a session."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Iterable, Iterator
from pathlib import Path

from msgspec import Struct

from ralph.cli.output import emit_line, note, paint, say, say_raw
from ralph.cli.plain_view import describe
from ralph.core.agent import AgentEvent, Compacting, Init, Limit, Result, Retry, Text, ToolResult, ToolUse
from ralph.core.errors import RalphError, UsageError
from ralph.core.events import (
    AgentEnded,
    AgentStarted,
    AnyEvent,
    Baseline,
    CheckEnded,
    IterationStarted,
    QueueProved,
    QueueProving,
    Record,
    RunStarted,
)
from ralph.core.evidence import CheckResult, How
from ralph.core.text import clean, one_line
from ralph.host.files import read_bytes
from ralph.host.process.raw_log import RawTail
from ralph.journal.records import Follower, read
from ralph.journal.run_state import RunState
from ralph.journal.workers import iteration_of
from ralph.state.locks import is_alive
from ralph.views.words import clock, duration, money, seconds, tokens
from ralph.workspace.agent_stream import AgentStream, raw_log
from ralph.workspace.runs import chosen_run, chosen_runs

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
        return raw_log(self.run, self.started, os.environ, self.iteration.worker)


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
    """In the order of their start."""
    run: RunStarted | None = None
    iterations: dict[int, IterationStarted] = {}
    sessions: list[Session] = []
    running: dict[int, Session] = {}
    for record in records:
        match event := record.event:
            case RunStarted():
                run = event
            case IterationStarted():
                iterations[event.iteration] = event
            case AgentStarted(iteration=number) if run and number in iterations:
                running[number] = Session(run, iterations[number], event)
                sessions.append(running[number])
            case AgentEnded(iteration=number, step=step) if number in running and running[number].started.step == step:
                running[number].ended = event
    yield from sessions


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
        last = max(session.iteration.iteration for session in sessions)
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


_TICK = 0.2


def run(args: Namespace) -> int:
    try:
        path = chosen_run(args, os.environ, args.run)
    except UsageError as error:
        if _show_story(args):
            return 0
        error.hint = f"{error.hint}; no run worked on a story with this ID" if args.run else error.hint
        raise
    wanted = Wanted(args.worker, args.story)
    if args.agent is not None:
        if args.follow:
            raise UsageError(
                "--agent cannot be combined with --follow", hint="`ralph watch -v` shows one while it runs"
            )
        return show_transcript(wanted.among(read(path)), args.agent, as_json=args.json)
    if args.check is not None:
        return _show_output(wanted.among(read(path)), args.check)
    state = RunState()
    if not args.follow:
        for record in read(path):
            _show(record, state, args, wanted)
        wanted.check(state)
        return 0
    follower = Follower(path)
    while True:
        alive = is_alive(state.started)  # before reading: the run may end in between
        for record in follower.news():
            _show(record, state, args, wanted)
        if state.ended is not None:
            wanted.check(state)
            return 0
        if not alive:
            note("the run was killed; the next `ralph run` finishes or undoes what it left open")
            return 0
        time.sleep(_TICK)


def _show_story(args: Namespace) -> bool:
    """The iterations of the story that is named instead of a run. False: no run worked on one with this ID."""
    if not args.run or args.follow or args.agent is not None or args.check is not None or args.story:
        return False
    is_known = False
    for journal in chosen_runs(args, os.environ):
        state, wanted, heading = RunState(), Wanted(args.worker, args.run), f"run {journal.parent.name}"
        for record in read(journal):
            if wanted.has(record.event, state) and heading and not args.json:
                say(heading, "bold")
                heading = ""
            _show(record, state, args, wanted)
        is_known = is_known or wanted.is_known
    return is_known


class Wanted:
    """Which records are shown: those of a worker, of a story, or of both; without either, all."""

    def __init__(self, worker: int | None, story: str | None) -> None:
        self._worker = worker
        self._story = story
        self.is_known = False
        """A record was shown."""

    def has(self, event: AnyEvent, state: RunState) -> bool:
        """`state`: of the run before this event."""
        if self._worker is None and self._story is None:
            return True
        started = list(_started(event, state))
        stories = {each.story.lower() for each in started}
        workers = {each.worker for each in started} | {getattr(event, "worker", 0)}
        is_own = self._story is None or self._story.lower() in stories
        is_own = is_own and (self._worker is None or self._worker in workers)
        self.is_known = self.is_known or is_own
        return is_own

    def among(self, records: Iterable[Record]) -> Iterator[Record]:
        """These of the records, and the start of the run."""
        state = RunState()
        for record in records:
            if self.has(record.event, state) or isinstance(record.event, RunStarted):
                yield record
            state.add(record)
        self.check(state)

    def check(self, state: RunState) -> None:
        """Nothing was shown: say why."""
        if self.is_known or (self._worker is None and self._story is None):
            return
        if self._worker is not None and self._worker not in state.parallel.known:
            count = len(state.parallel.known)
            have = f"it has the workers {_numbers(state)}" if count else "it was a run without workers"
            raise UsageError(f"this run has no worker {self._worker}", hint=have)
        what = f"story {one_line(self._story, 60)}" if self._story is not None else f"worker {self._worker}"
        raise UsageError(f"no iteration of {what} in this run", hint="`ralph runs` lists the runs")


def _numbers(state: RunState) -> str:
    numbers = sorted(state.parallel.known)
    return ", ".join(map(str, numbers[:20])) + (" …" if len(numbers) > 20 else "")


def _started(event: AnyEvent, state: RunState) -> Iterator[IterationStarted]:
    """The open iterations of an event. Without workers, what has no number belongs to the one that is open."""
    if isinstance(event, IterationStarted):
        yield event
        return
    batch = event.iterations if isinstance(event, QueueProving | QueueProved) else (iteration_of(event),)
    for activity in (state.parallel.open[number] for number in batch if number in state.parallel.open):
        if activity.started is not None:
            yield activity.started
    if not state.is_parallel and state.current is not None:
        yield state.current


def _show_output(records: Iterable[Record], name: str) -> int:
    failed = [
        check
        for record in records
        for check in _checks(record.event)
        if not check.passed and name.lower() in check.name.lower()
    ]
    if not failed:
        raise UsageError(
            f"no check {f'with {name!r} in its name ' if name else ''}has failed in this run",
            hint="`ralph log` shows the checks; `ralph verify` runs them now",
        )
    check = failed[-1]
    note(f"{check.name}: {'timed out' if check.timed_out else f'exit code {check.code}'}")
    try:
        say(read_bytes(Path(check.output)).decode("utf-8", "replace").rstrip("\n"))
    except (RalphError, OSError):  # a step has no log file, and logs may be deleted: the journal has the end
        note("only the end of its output was kept:")
        say(check.tail)
    return 0


def _checks(event: AnyEvent) -> tuple[CheckResult, ...]:
    match event:
        case CheckEnded(result=result):
            return (result,)
        case Baseline(results=results):
            return results
        case _:
            return ()


def _show(record: Record, state: RunState, args: Namespace, wanted: Wanted) -> None:
    is_before = wanted.has(record.event, state)
    state.add(record)
    if not is_before:
        return
    if args.json:
        emit_line(record)
    elif line := describe(record, state, verbose=args.verbose):
        indented = line.replace("\n", "\n" + " " * len("00:00:00 "))
        say_raw(f"{paint(clock(record.t), 'dim')} {indented}", at_once=args.follow)
