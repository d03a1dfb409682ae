"""A sink writes one file, or a few related ones, from the records. `Sinks` combines a run's sinks into one listener.

Between the checkpoint and the end of an iteration, a sink writes only markers for the agent, and those are removed
before the tree is inspected. Everything else waits until the iteration is final: written earlier, it would be
committed with the story or rolled back with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from ralph.core.events import (
    AgentStarted,
    CheckEnded,
    Decided,
    HookAnswered,
    IterationEnded,
    IterationStarted,
    Judged,
    Landing,
    Record,
    RunEnded,
    Scheduled,
)
from ralph.core.evidence import CheckResult
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import Mode
from ralph.core.text import one_line
from ralph.journal.run_state import RunState
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.journal.workers import iteration_of

_TITLES = {Mode.EXAM: "write end-to-end tests"}
_TEST_FILE = lazy_pattern(
    r"(^|/)(tests?|__tests__|specs?)/"
    r"|(^|/)test_[^/]*\.py$|(^|/)conftest\.py$"
    r"|[._-](test|spec)\.[^/.]+$|(Test|Tests|Spec)\.[^/.]+$|\.bats$"
)
_MOST_FILES = 100
_MOST_ENDED = 200


class _Iteration:
    """One iteration with its evidence."""

    def __init__(self, started: IterationStarted | None = None) -> None:
        self.started = started
        self.agents: list[tuple[float, AgentStarted]] = []
        self.checks: tuple[CheckResult, ...] = ()
        self.rolled_back: tuple[CheckResult, ...] = ()


class Account:
    """What the records show so far: the run, and the iteration of the last record with its evidence.

    All sinks of a run share it. A record that belongs to no iteration leaves the last one in place.
    """

    def __init__(self) -> None:
        self.run = RunState()
        self.review = False
        """Stories of this run are reviewed."""
        self.in_tree: int | None = None
        """The iteration that may change the run's own tree now: between its checkpoint and its end."""
        self._open: dict[int, _Iteration] = {}
        self._ended: dict[int, _Iteration] = {}
        self._shown = _Iteration()

    @property
    def started(self) -> IterationStarted | None:
        """It is kept after its end."""
        return self._shown.started

    @property
    def is_open(self) -> bool:
        """Whether an iteration may change the run's own tree now. Workers have trees of their own until they land."""
        return self.in_tree is not None

    @property
    def agents(self) -> list[tuple[float, AgentStarted]]:
        return self._shown.agents

    @property
    def checks(self) -> tuple[CheckResult, ...]:
        """The set it was judged by, or those run so far."""
        return self._shown.checks

    @property
    def rolled_back(self) -> tuple[CheckResult, ...]:
        """Tests that failed during its session, with `rollback: immediate`."""
        return self._shown.rolled_back

    @property
    def run_id(self) -> str:
        return self.run.started.run if self.run.started else ""

    @property
    def attempt(self) -> int:
        return self.started.attempt if self.started else 0

    def add(self, record: Record) -> None:
        self.run.add(record)
        event = record.event
        if isinstance(event, IterationStarted):
            self._open[event.iteration] = _Iteration(event)
        self.show(record)
        shown = self._shown
        match event:
            case Decided(review=review) | Scheduled(review=review):
                self.review = review
            case IterationStarted(worker=0):
                self.in_tree = event.iteration
            case Landing(iteration=number):
                self.in_tree = number
            case AgentStarted():
                shown.agents.append((record.t, event))
            case CheckEnded(result=result) if self._open:
                shown.checks += (result,)
            case HookAnswered(hook="rollback", subject=command, output=output):
                shown.rolled_back += (CheckResult(name="tests", command=command, passed=False, tail=output),)
            case Judged(evidence=evidence):
                shown.checks = evidence.checks
            case IterationEnded(iteration=number):
                self._open.pop(number, None)
                self._ended[number] = shown
                while len(self._ended) > _MOST_ENDED:
                    del self._ended[next(iter(self._ended))]
                self.in_tree = None if self.in_tree == number or not self.run.is_parallel else self.in_tree
            case RunEnded():
                self.in_tree = None

    def show(self, record: Record) -> None:
        """Show the iteration that this record belongs to."""
        number = iteration_of(record.event)
        self._shown = self._open.get(number) or self._ended.get(number) or self._shown


class Sink:
    def __init__(self, files: WorkspaceFiles, path: Path) -> None:
        self.files = files
        self.path = path

    def __call__(self, record: Record, account: Account) -> None:
        """Called with each record, after the account has seen it."""
        raise NotImplementedError

    def tidy(self) -> None:
        """Remove what must not outlive the agent."""


Entries = Callable[[Record, Account], Iterable[str]]
"""What a record adds to a log, each entry with its newline."""


class Log(Sink):
    """A file to which entries are appended, rotated at `limit` bytes."""

    def __init__(self, files: WorkspaceFiles, path: Path, entries: Entries, limit: int | None = None) -> None:
        super().__init__(files, path)
        self._entries = entries
        self._limit = limit

    def __call__(self, record: Record, account: Account) -> None:
        for entry in self._entries(record, account):
            self.files.append(self.path, entry, limit=self._limit)


class Sinks:
    """A listener for a journal. It never raises: errors are collected in `failures`."""

    def __init__(self, files: WorkspaceFiles, sinks: Sequence[Sink]) -> None:
        self._files = files
        self._sinks = tuple(sinks)
        self._account = Account()
        self._later: list[Record] = []
        """Records of other iterations while one lands: what they add must not be committed or rolled back with it."""

    @property
    def failures(self) -> tuple[str, ...]:
        return self._files.failures

    def __call__(self, record: Record) -> None:
        self._account.add(record)
        landing = self._account.in_tree
        if landing is not None and self._account.run.is_parallel and iteration_of(record.event) != landing:
            self._later.append(record)
            return
        self._send(record)
        if landing is None:
            self._send_later()

    def _send_later(self) -> None:
        later, self._later = self._later, []
        for record in later:
            self._account.show(record)
            self._send(record)

    def _send(self, record: Record) -> None:
        for sink in self._sinks:
            try:
                sink(record, self._account)
            except Exception as error:  # noqa: BLE001 - a file for people must not end a run
                self._files.note(sink.path.name, one_line(f"{type(error).__name__}: {error}", 200))

    @property
    def paths(self) -> tuple[Path, ...]:
        """Of the files; a folder stands for one file of each run in it."""
        return tuple(sink.path for sink in self._sinks)

    def catch_up(self, records: Sequence[Record]) -> None:
        """Replay the records of a killed run.

        A record on disk means that the sinks had handled the one before it. Only the last record may have been missed:
        it is sent again, and entries already in a file are not written twice.
        """
        self._files.is_muted = True
        for record in records[:-1]:
            self(record)
        self._files.is_muted = False
        self._files.is_retelling = True
        for record in records[-1:]:
            self(record)
        self._send_later()
        self._files.is_retelling = False
        self.close()
        self._files.sweep()

    def close(self) -> None:
        for sink in self._sinks:
            sink.tidy()


# How the files word times, checks and verdicts. Text from agents is cleaned and kept on one line.


def iso(t: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(t))


def took(seconds: float) -> str:
    whole = max(int(seconds), 0)
    return f"{whole // 60}m {whole % 60:02}s" if whole >= 60 else f"{whole}s"


def mode_name(mode: Mode) -> str:
    """As seed 001 names it."""
    return "review-fix" if mode is Mode.FIX else mode.value


def story_name(event: IterationEnded) -> str:
    return one_line(event.story, 80) or event.mode.value


def story_title(event: IterationEnded) -> str:
    return one_line(event.title, 200) or _TITLES.get(event.mode, "set up the project")


def headline(event: IterationEnded) -> str:
    return one_line(event.headline, 500)


def notices(event: IterationEnded) -> list[str]:
    return [one_line(notice, 500) for notice in event.notices]


def changed_files(event: IterationEnded) -> list[str]:
    return [one_line(path, 300) for path in event.files[:_MOST_FILES]]


def changed_tests(event: IterationEnded) -> list[str]:
    return [path for path in changed_files(event) if _TEST_FILE.search(path)]


def ending(check: CheckResult) -> str:
    """How a check ended, e.g. `exit 0` or `timed out`."""
    if check.timed_out:
        return "timed out"
    return "no exit code" if check.code is None else f"exit {check.code}"


def proof(check: CheckResult) -> str:
    """A check with its command and how it ended, e.g. `pytest -q: passed (exit 0)`."""
    allowed = "" if check.required or check.passed else ", allowed to fail"
    word = "passed" if check.passed else "failed"
    return f"{one_line(check.command, 200)}: {word} ({ending(check)}{allowed})"
