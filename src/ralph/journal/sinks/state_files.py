"""Files that show the state of a run: markers while an agent runs, and the position and totals of seed 002."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ralph.core.agent import Init, Outcome
from ralph.core.events import (
    AgentEnded,
    AgentSaid,
    AgentStarted,
    Decided,
    IterationEnded,
    IterationStarted,
    Record,
    RunEnded,
    RunStarted,
    StepEnded,
    WaitEnded,
    WaitStarted,
)
from ralph.core.moves import BY_SIGNAL, Reason, Work
from ralph.core.plan import Mode, State
from ralph.core.text import one_line
from ralph.journal.run_state import RunState
from ralph.journal.sinks.sink import Account, Sink, headline, iso, mode_name
from ralph.journal.sinks.workspace_files import WorkspaceFiles

Content = Callable[[Account], bytes | None]
"""The text; None if there is nothing to write."""
_ERRORS = 20


class Markers(Sink):
    """Files that exist while an agent runs and are removed before its tree is inspected.

    Agents of workers run in other trees: nothing is written for them.
    """

    def __init__(self, files: WorkspaceFiles, contents: Mapping[Path, Content]) -> None:
        super().__init__(files, next(iter(contents)))
        self._contents = dict(contents)
        self._are_there = False

    def __call__(self, record: Record, account: Account) -> None:
        match record.event:
            case IterationStarted(worker=0):
                self._write(account)
            case AgentStarted() if not self._are_there and account.is_open:  # the second agent of an iteration
                self._write(account)
            case AgentEnded() | StepEnded() | IterationEnded() | RunEnded():
                self.tidy()

    def _write(self, account: Account) -> None:
        self._are_there = True
        for path, content in self._contents.items():
            data = content(account)
            if data is not None:
                self.files.replace(path, data)

    def tidy(self) -> None:
        self._are_there = False
        for path in self._contents:
            self.files.remove(path)


def current_story(account: Account) -> bytes | None:
    """`.ralph/current-story` of seed 000: the ID and nothing else."""
    story = account.started.story if account.started else ""
    return f"{one_line(story)}\n".encode() if story else None


def checkpoint(account: Account) -> bytes | None:
    """`.ralph/.checkpoint` of seed 000: the commit before the story. An unborn branch has none."""
    head = account.started.checkpoint.get("head") if account.started else None
    return f"{head}\n".encode() if isinstance(head, str) and head else None


def ralph_active(account: Account) -> bytes | None:
    """`.ralph-active` of seed 001, with every story's review fields from before the iteration."""
    run, started = account.run.started, account.started
    if run is None or started is None:
        return None
    payload = {
        "timestamp": iso(account.run.started_at),
        "pid": run.pid,
        "max_iterations": run.max_iterations,
        "mode": "direct",
        "skipReview": not account.review,
        "reviewCap": run.review_cap,
        "iterationMode": mode_name(started.mode if started.mode in (Mode.REVIEW, Mode.FIX) else Mode.IMPLEMENT),
        "preIterationSnapshot": {
            story.id: {"passes": story.state is State.DONE, "reviewStatus": story.review, "reviewCount": story.reviews}
            for story in account.run.stories.values()
        },
    }
    return _pretty(payload)


class RunStateFile(Sink):
    """`.ralph/run_state.json` of seed 002: the position of a run.

    Written when a task is chosen, not when it starts: the tree is recorded in between.
    """

    def __init__(self, files: WorkspaceFiles, path: Path) -> None:
        super().__init__(files, path)
        self._work: Work | None = None
        self._step = ""
        self._errors: deque[dict[str, Any]] = deque(maxlen=_ERRORS)

    def __call__(self, record: Record, account: Account) -> None:
        match record.event:
            case StepEnded(step=step):
                self._step = step
            case Decided(move=Work() as work):
                self._work = work
                self._write(record.t, account)
            case IterationEnded() as event:
                self._work = None
                if event.kind.feeds_breaker and not event.kind.keeps_work:
                    error = {"loop": event.iteration, "task": one_line(event.story), "error": headline(event)}
                    self._errors.append({"at": iso(record.t), **error})
                self._write(record.t, account)
            case IterationStarted(worker=worker) if worker:
                self._write(record.t, account)
            case RunStarted() | WaitStarted() | WaitEnded() | RunEnded():
                self._write(record.t, account)

    def _write(self, now: float, account: Account) -> None:
        run = account.run
        ended = run.ended
        running = [Work(each.story, each.mode) for each in run.started_by_workers] or (
            [self._work] if self._work else []
        )
        tasks = [_task(run, work) for work in running]
        state = {
            "run_id": account.run_id,
            "pid": run.started.pid if run.started else 0,
            "status": _status(run),
            "reason": ended.reason.value if ended else None,
            "detail": one_line(ended.detail, 500) if ended and ended.detail else None,
            "loop_count": run.count + len(running),
            "current_task": tasks[0] if tasks else None,
            **({"current_tasks": tasks} if run.is_parallel else {}),
            "last_step": one_line(self._step, 100) or None,
            "tasks": _tasks(run),
            "started_at": iso(run.started_at),
            "updated_at": iso(now),
            "errors": list(self._errors),
        }
        self.files.replace(self.path, _pretty(state))


class Aggregate(Sink):
    """`.ralph/aggregate.json` of seed 002: the totals, written once, when the run has ended."""

    def __init__(self, files: WorkspaceFiles, path: Path) -> None:
        super().__init__(files, path)
        self._calls = 0
        self._model = ""

    def __call__(self, record: Record, account: Account) -> None:
        match record.event:
            case AgentStarted():
                self._calls += 1
            case AgentSaid(event=Init(model=model)) | AgentEnded(outcome=Outcome(model=model)) if model:
                self._model = model
            case RunEnded(reason=reason, detail=detail):
                self.files.replace(self.path, _pretty(self._totals(reason, detail, record.t, account)))

    def _totals(self, reason: Reason, detail: str, now: float, account: Account) -> dict[str, Any]:
        run, started, tokens = account.run, account.run.started, account.run.tokens
        return {
            "version": started.version if started else "",
            "run_id": account.run_id,
            "agent": one_line(started.agent, 100) if started else "",
            "model": one_line(self._model or (started.model if started else ""), 100),
            "tokens": {**msgspec.structs.asdict(tokens), "total": tokens.total},
            "cost_usd": None if run.cost_usd is None else round(run.cost_usd, 6),
            "started_at": iso(run.started_at),
            "ended_at": iso(now),
            "elapsed_seconds": round(max(now - run.started_at, 0), 3),
            "agent_seconds": round(run.agent_seconds, 3),
            "calls": self._calls,
            "loops": run.count,
            "tasks": _tasks(run),
            "reason": reason.value,
            "detail": one_line(detail, 500),
        }


def _status(run: RunState) -> str:
    if run.ended is None:
        return "waiting" if run.waiting else "running"
    if run.ended.reason in BY_SIGNAL:
        return "interrupted"
    return "completed" if run.ended.reason is Reason.COMPLETE else "stopped"


def _task(run: RunState, work: Work | None) -> dict[str, Any] | None:
    if work is None:
        return None
    story = run.stories.get(work.story)
    return {
        "id": one_line(work.story) or None,
        "title": one_line(story.title, 200) if story else None,
        "mode": work.mode.value,
    }


def _tasks(run: RunState) -> dict[str, int]:
    def count(state: State) -> int:
        return sum(story.state is state for story in run.stories.values())

    total = run.total or (run.started.total if run.started else 0)
    return {"total": total, "done": count(State.DONE), "failed": count(State.FAILED), "blocked": count(State.BLOCKED)}


def _pretty(value: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"
