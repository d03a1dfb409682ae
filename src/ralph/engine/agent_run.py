"""Run one agent process: start it, write its events to the journal, and report how it ended."""

from __future__ import annotations

import contextlib
import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import msgspec

from ralph.core.agent import AgentEvent, Init, Limit, Outcome, Result, Retry, Text, ToolResult, ToolUse, Trouble, add
from ralph.core.authorship import CallLog
from ralph.core.authorship import Session as SessionRecord
from ralph.core.environment import child_environment
from ralph.core.errors import SetupError
from ralph.core.events import AgentEnded, AgentSaid, AgentStarted, Noted
from ralph.core.evidence import Ended, How
from ralph.core.permissions import with_remedies
from ralph.core.plan import Mode
from ralph.core.ports import Agent, ClientEnd, Launch, Reader, Session, events_in, events_of
from ralph.core.rules import Patience
from ralph.core.text import clean, one_line
from ralph.core.trace_context import TraceContext
from ralph.engine.agent_watch import HookWatch, Occupation, SignsOfLife, TestsFailed, Unguarded
from ralph.host.files import make_folder, write_bytes
from ralph.host.process import supervise as host
from ralph.host.process.activity import QuietTimes, stamp
from ralph.host.process.enclosure import Enclosure
from ralph.host.process.raw_log import RawLog
from ralph.host.process.signals import StopSignal
from ralph.host.process.start import UNLIMITED, Allowance
from ralph.host.process.table import ProcessId
from ralph.host.process.tree import cpu_seconds, describe, is_alive
from ralph.host.redaction import redact
from ralph.host.removal import remove_tree
from ralph.journal.records import Journal
from ralph.state.names import CLIENTS, GIT_TRACE
from ralph.state.runs import raw_name

_MOST_EVENTS = 2000
_FEW = 5
SURVIVED = "could not be ended"
_TORN = "the agent's output breaks off in the middle of its last line"
_SHORTEST = 1.0
_HOWS = {
    host.How.EXITED: How.EXITED,
    host.How.TIMED_OUT: How.TIMED_OUT,
    host.How.SILENT: How.SILENT,
    host.How.LINGERED: How.LINGERED,
    host.How.STOPPED: How.STOPPED,
    host.How.OVER_LIMIT: How.STOPPED,
    host.How.FAILED_TO_START: How.FAILED_TO_START,
}


_REFUSALS = (401, 403)
_SURE = 2
"""Refusals in a row, in a run in which no session has worked yet. After the first one a client may still renew its
key."""
_REFUSAL_PAUSE = 30.0
"""Seconds before the one further session after a key that worked before was refused."""


class TurnedAway(Exception):
    """The model's service rejects the key. A client that keeps retrying with it only wastes time."""


class GaveUp(Exception):
    """The client would go on retrying in vain. Its reader has said why."""


_TROUBLES: dict[type[Exception], Trouble] = {Unguarded: Trouble.UNGUARDED, TurnedAway: Trouble.AUTHENTICATION}


Enter = Callable[[Session, Agent, Launch], AbstractContextManager[Enclosure | None]]
"""What the process of a session is started in."""


def in_the_open(session: Session, agent: Agent, launch: Launch) -> AbstractContextManager[None]:
    return nullcontext()


class AgentRunner:
    def __init__(
        self,
        agent: Callable[[str], Agent],
        journal: Journal,
        stop: StopSignal,
        *,
        run: str,
        raw_folder: Path,
        env: Mapping[str, str],
        wanted_env: tuple[str, ...],
        pass_all_env: bool = False,
        promise: str,
        canary: str = "off",
        ceiling: float = 24 * 3600.0,
        note_session: Callable[[SessionRecord], object] = lambda _: None,
        time_left: Callable[[], float | None] = lambda: None,
        allowance: Allowance = UNLIMITED,
        enter: Enter = in_the_open,
        trace: TraceContext | None = None,
    ) -> None:
        self._trace = trace
        self._starts: Counter[tuple[int, str]] = Counter()
        """Processes that have started, by iteration and step."""
        self._enter = enter
        self._allowance = allowance
        self._survivors: tuple[ProcessId, ...] = ()
        """Processes of earlier sessions that could not be ended."""
        self._note_session = note_session
        """Told when a session has ended with its whole process tree."""
        self._ceiling = ceiling
        """Upper bound in seconds for any session, whatever the settings say."""
        self._time_left = time_left
        """Seconds the run has left. None: no time limit."""
        self._canary = canary
        self._have_worked: set[str] = set()
        """Agents of which a session of this run has ended well: their keys were accepted."""
        self._refused: set[str] = set()
        self._windows: dict[tuple[str, str], int] = {}
        """Size of the context window of an agent's model, as reported by an earlier session of this run."""
        self._agent = agent
        self._journal = journal
        self._stop = stop
        self._run = run
        self._raw_folder = raw_folder
        self._env = env
        self._wanted_env = wanted_env
        self._pass_all_env = pass_all_env
        self._promise = promise

    def __call__(self, session: Session, step: str, patience: Patience) -> tuple[Ended, Outcome]:
        session = msgspec.structs.replace(session, prompt=redact(session.prompt))
        try:
            agent = self._agent(session.agent)
            program = agent.find(session, self._env.get("PATH", ""))
        except SetupError as error:  # it was there when the run began
            return Ended(How.FAILED_TO_START, detail=str(error)), Outcome()
        if alive := [describe(process) for process in self._survivors if is_alive(process)]:
            return Ended(How.FAILED_TO_START, detail=_beside(alive)), Outcome()
        session = msgspec.structs.replace(session, folder=self._client_folder(session, step))
        launch = agent.launch(session, program)
        who = agent.NAME, session.model
        _lay_out(launch, session.folder)
        watch = HookWatch(session.hooks, self._canary, self._windows.get(who, 0)) if session.hooks else None
        calls = CallLog(time.time())
        listener = Listener(
            agent.reader(),
            self._journal.write,
            session.task.iteration,
            self._promise,
            watch,
            calls,
            trusts_key=agent.NAME in self._have_worked,
        )
        started: list[ProcessId] = []
        signs = SignsOfLife(
            listener.occupation, lambda: cpu_seconds(started[0]) if started else 0.0, lambda: stamp(session.cwd)
        )

        quiet = QuietTimes(reports_calls=agent.REPORTS_CALLS)

        def on_start(process: ProcessId) -> None:
            started.append(process)
            self._starts[session.task.iteration, step] += 1
            quiet.start(process.pid)
            self._journal.write(
                AgentStarted(
                    iteration=session.task.iteration,
                    step=step,
                    pid=process.pid,
                    start=process.start,
                    agent=agent.NAME,
                    argv=launch.argv,
                    prompt=len(session.prompt),
                )
            )

        env = self._environment(session, agent, step) | launch.env
        make_folder(self._raw_folder, private=True)
        raw_path = self._raw_folder / raw_name(session.task.iteration, step)
        with (
            RawLog(raw_path) as raw,
            RawLog(raw_path.with_suffix(".err.log")) as raw_err,
            self._enter(session, agent, launch) as enclosure,
        ):
            try:
                ending = host.supervise(
                    host.Command(launch.argv, session.cwd, env, launch.stdin, self._allowance, enclosure),
                    host.Limits(self._longest(patience), patience.idle, patience.grace, patience.linger),
                    host.Watcher(
                        on_line=listener.line,
                        on_block=listener.block,
                        on_error=listener.error if listener.reads_errors else None,
                        on_start=on_start,
                        is_final=lambda: listener.is_final,
                        signs_of_life=signs,
                        raw=raw,
                        raw_err=raw_err,
                    ),
                    self._stop,
                )
            except GaveUp:
                ending = host.Ending(how=host.How.STOPPED, message=listener.outcome.detail)
            except (Unguarded, TestsFailed, TurnedAway) as error:
                ending = host.Ending(how=host.How.STOPPED, message=str(error))
                trouble = _TROUBLES.get(type(error), Trouble.OTHER)
                listener.outcome = msgspec.structs.replace(listener.outcome, trouble=trouble, detail=str(error))
            else:
                listener.finish(ending, session.folder)
            finally:
                silent = quiet.stop()
        self._survivors = ending.survivors
        alive = [describe(process) for process in ending.survivors]
        notices = [raw.cut, raw.lost, raw_err.cut, raw_err.lost, _TORN if listener.is_torn else ""]
        if listener.unread:
            notices.append(f"the agent `{agent.NAME}` cannot read some of its client's output: {listener.unread}")
        notices.append(f"{SURVIVED}: {', '.join(alive[:_FEW])}" if alive else "")
        notices.append(ending.message if ending.how is host.How.EXITED else "")
        for notice in filter(None, notices):
            self._journal.write(Noted(notice, warning=True))
        self._note_session(calls.session(time.time(), reports_calls=agent.REPORTS_CALLS, quiet=silent))
        for answered in watch.answers(session.task.iteration) if watch else ():
            self._journal.write(answered)
        if denials := listener.outcome.denials:
            rights = session.rights
            answers = watch.decisions() if watch else {}
            theirs = with_remedies(denials, answers, rights.allowed_tools, mode=rights.permissions)
            if session.task.mode is Mode.EXAM:  # it must not read the history, so there is nothing to allow
                theirs = tuple(denial for denial in theirs if not denial.subject.startswith("git "))
            listener.outcome = msgspec.structs.replace(listener.outcome, denials=theirs)
        if listener.outcome.window:
            self._windows[who] = listener.outcome.window
        ended = _ended(ending)
        if listener.is_torn and not listener.outcome.finished:
            ended = msgspec.structs.replace(ended, detail=f"{ended.detail}\n{_TORN}".strip())
            listener.outcome = msgspec.structs.replace(listener.outcome, note=listener.outcome.note or _TORN)
        listener.outcome = self._once_more(_understood(listener.outcome, ended, agent.NAME), agent.NAME)
        model = listener.outcome.model or session.model
        listener.outcome = msgspec.structs.replace(listener.outcome, agent=agent.NAME, model=model)
        if watch is not None and (command := watch.tests_failed()):
            listener.outcome = msgspec.structs.replace(listener.outcome, tests_failed=command)
        if watch is not None:
            watch.redact()
        if not session.keep and not listener.outcome.trouble:
            _clear(session.folder)
        self._journal.write(
            AgentEnded(
                iteration=session.task.iteration,
                step=step,
                ended=ended,
                outcome=listener.outcome,
                swept=ending.swept,
                raw=str(raw_path),
            )
        )
        return ended, listener.outcome

    def _client_folder(self, session: Session, step: str) -> Path:
        """Fresh for each process."""
        folder = self._raw_folder.parent / CLIENTS / raw_name(session.task.iteration, step).removesuffix(".log")
        if folder.exists():
            remove_tree(folder)
        return folder

    def _once_more(self, outcome: Outcome, agent: str) -> Outcome:
        """A service can refuse a good key for a moment. After sessions that worked, one more is started."""
        if outcome.trouble is not Trouble.AUTHENTICATION:
            self._have_worked |= {agent} if outcome.finished and outcome.ok else set()
            self._refused.discard(agent)
            return outcome
        if agent not in self._have_worked or agent in self._refused:
            return outcome
        self._refused.add(agent)
        again = time.time() + _REFUSAL_PAUSE
        return msgspec.structs.replace(outcome, trouble=Trouble.REFUSED, resets_at=again)

    def _longest(self, patience: Patience) -> float:
        given = (patience.total, self._ceiling, self._time_left())
        return max(min(seconds for seconds in given if seconds is not None), _SHORTEST)

    def _environment(self, session: Session, agent: Agent, step: str) -> dict[str, str]:
        added = {
            "RALPH_LOOP": "1",
            "RALPH_RUN": self._run,
            "RALPH_STORY": session.task.story,
            "RALPH_ITERATION": str(session.task.iteration),
            "RALPH_MODE": session.task.mode.value,
            "RALPH_ATTEMPT": str(session.task.attempt),
        }
        if session.task.reviewer:
            added["RALPH_REVIEWER"] = session.task.reviewer
        if session.task.verdict_only:
            added["RALPH_VERDICT_ONLY"] = "1"
        if session.request:
            added["RALPH_REQUEST_FILE"] = str(session.request)
        added |= {"GIT_TRACE2_EVENT": str(self._raw_folder.parent / GIT_TRACE), "GIT_TRACE2_EVENT_BRIEF": "1"}
        if self._trace is not None:
            number = self._starts[session.task.iteration, step] + 1
            added |= self._trace.session(session.task.iteration, step, number)
        telemetry: Callable[[Mapping[str, str]], tuple[str, ...]] = getattr(agent, "telemetry", lambda _: ())
        wanted = (*agent.ENV, *telemetry(self._env), *self._wanted_env)
        return child_environment(self._env, wanted, added, everything=self._pass_all_env)


class Listener:
    """Turns lines into events, adds them up, and writes those worth showing to the journal."""

    def __init__(
        self,
        read: Reader,
        write: Callable[[AgentSaid], object],
        iteration: int,
        promise: str,
        watch: HookWatch | None = None,
        calls: CallLog | None = None,
        *,
        trusts_key: bool = False,
    ) -> None:
        """`trusts_key`: the key was accepted before, so the client's own retries run out first."""
        self._sure = math.inf if trusts_key else _SURE
        self._watch = watch
        self._calls = calls or CallLog(time.time())
        self._read = read
        self._write = write
        self._iteration = iteration
        self._promise = promise
        self._written = 0
        self._limits: dict[str, Limit] = {}
        self.occupation = Occupation()
        self.outcome = Outcome()
        self.is_final = False
        self.is_torn = False
        self.unread = ""
        """The first error of the reader."""

    def line(self, line: bytes, oversize: bool) -> None:
        """The last line, without a newline, or one over the limit."""
        if oversize:
            return
        is_torn: Callable[[bytes], bool] | None = getattr(self._read, "is_torn", None)
        self.is_torn = is_torn is not None and is_torn(line)
        for event in events_of(self._read, line, self._note):
            self._add(event)

    @property
    def reads_errors(self) -> bool:
        return hasattr(self._read, "error")

    def error(self, line: bytes) -> None:
        for event in events_of(self._read.error, line, self._note):  # type: ignore[attr-defined]
            self._add(event)

    def finish(self, ending: host.Ending, folder: Path) -> None:
        """What the client says by how it ended."""
        last: Callable[[ClientEnd], Iterable[AgentEvent]] | None = getattr(self._read, "finish", None)
        if last is None:
            return
        is_own = ending.how in (host.How.EXITED, host.How.LINGERED)
        end = ClientEnd(
            code=ending.code if is_own else None,
            stderr=clean(ending.err_tail.decode("utf-8", "replace")),
            folder=folder,
        )
        try:
            for event in last(end):
                self._add(event)
        except GaveUp:
            pass
        except Exception as error:  # noqa: BLE001 - a third-party reader
            self._note(error)

    def block(self, block: bytes) -> None:
        for event in events_in(self._read, block, self._note):
            self._add(event)

    def _note(self, error: Exception) -> None:
        self.unread = self.unread or f"{type(error).__name__}: {one_line(str(error), 200)}"

    def _add(self, event: AgentEvent) -> None:
        self.outcome = add(self.outcome, event, self._promise)
        self.occupation.see(event)
        match event:
            case ToolUse(name, id=call, path=path, command=command):
                self._calls.begin(call, name, path, command, time.time())
            case ToolResult(id=call):
                self._calls.end(call, time.time())
            case Text():
                self._calls.speak(time.time())
        if self._watch is not None:
            self._watch.see(event)
        if isinstance(event, Result | Init):
            self.is_final = isinstance(event, Result)
            if isinstance(event, Result) and event.gives_up:
                raise GaveUp
        elif isinstance(event, Retry) and event.status in _REFUSALS and event.attempt >= self._sure:
            raise TurnedAway(f"the model's service returned {event.status}: {event.error or 'no access'}")
        if self._written >= _MOST_EVENTS and not isinstance(event, Limit):  # guards decide by what is recorded
            return
        shown = _shown(event)
        if shown is not None and not self._is_known(shown):
            self._written += 1
            self._write(AgentSaid(self._iteration, shown))

    def _is_known(self, event: AgentEvent) -> bool:
        """Some clients repeat the usage of a limit after each message."""
        if not isinstance(event, Limit):
            return False
        before, self._limits[event.kind] = self._limits.get(event.kind), event
        return event == before


def _lay_out(launch: Launch, folder: Path) -> None:
    """The private configuration of a process."""
    if launch.files or launch.links:
        make_folder(folder.parent, private=True)
        make_folder(folder, private=True)
    for name, text in launch.files.items():
        make_folder((folder / name).parent, private=True)
        write_bytes(folder / name, text.encode("utf-8", "replace"), mode=0o600, durable=False)
    for name, original in launch.links.items():
        if Path(original).exists():
            make_folder((folder / name).parent, private=True)
            (folder / name).symlink_to(original)


def _clear(folder: Path) -> None:
    """A client may keep megabytes there, which tell nothing after a session that went well."""
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                remove_tree(entry)


def _understood(outcome: Outcome, ended: Ended, agent: str) -> Outcome:
    """Agents without typed events report it as text. Only the last lines of a failed session are searched: earlier
    ones may be tool output."""
    if outcome.finished or outcome.trouble or ended.well or ended.how is not How.EXITED:
        return outcome
    from ralph.results.usage_limit import detect_limit  # much to import, for agents that failed

    for words in filter(None, (_last_lines(ended.detail), _last_lines(outcome.text))):
        found = detect_limit(words, agent=agent, now=time.time())
        if found.limit:
            # Money that is not there does not come back by waiting.
            trouble = Trouble.BILLING if found.kind == "billing" else Trouble.LIMIT
            detail = one_line(words, 200)
            return msgspec.structs.replace(outcome, trouble=trouble, resets_at=found.resets_at, detail=detail)
    return outcome


def _beside(alive: list[str]) -> str:
    """Two agents in one working tree would overwrite each other's work."""
    return (
        f"{', '.join(alive[:_FEW])} of an earlier session could not be ended and may still change files; "
        "end it by hand (another user may have to), then run again"
    )


def _last_lines(text: str) -> str:
    return "\n".join([line for line in text.splitlines() if line.strip()][-3:])


def _shown(event: AgentEvent) -> AgentEvent | None:
    match event:
        case Text(text):
            return Text(one_line(text, 200)) if text.strip() else None
        case ToolUse(name, summary, id):  # without path and command
            return ToolUse(one_line(name, 40), one_line(summary, 120), id)
        case Init() | Limit() | Retry():
            return event
        case _:
            return None


def _ended(ending: host.Ending) -> Ended:
    stderr = clean(ending.err_tail[-2000:].decode("utf-8", "replace")).strip()
    return Ended(
        how=_HOWS[ending.how],
        code=ending.code,
        signal=ending.signal,
        seconds=round(ending.duration, 3),
        ran=round(ending.ran, 3),
        detail=ending.message or stderr,
    )
