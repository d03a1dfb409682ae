"""`.ralph/run_state.json` and `.ralph/aggregate.json` of seed 002: the position of a run, and its totals."""

from __future__ import annotations

from collections import deque
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
    Record,
    RunEnded,
    RunStarted,
    StepEnded,
    WaitEnded,
    WaitStarted,
)
from ralph.core.moves import BY_SIGNAL, Reason, Work
from ralph.core.plan import State
from ralph.core.text import one_line
from ralph.journal.run_state import RunState
from ralph.journal.sinks.account import Account
from ralph.journal.sinks.door import Door
from ralph.journal.sinks.sink import Sink
from ralph.journal.sinks.wording import headline, iso

_ERRORS = 20


class RunStateFile(Sink):
    """Written when a task is chosen, not when it starts: the tree is recorded in between."""

    def __init__(self, door: Door, path: Path) -> None:
        self._door = door
        self._path = path
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
            case RunStarted() | WaitStarted() | WaitEnded() | RunEnded():
                self._write(record.t, account)

    def _write(self, now: float, account: Account) -> None:
        run = account.run
        ended = run.ended
        told = {
            "run_id": account.run_id,
            "pid": run.started.pid if run.started else 0,
            "status": _status(run),
            "reason": ended.reason.value if ended else None,
            "detail": one_line(ended.detail, 500) if ended and ended.detail else None,
            "loop_count": run.count + (1 if self._work else 0),
            "current_task": _task(run, self._work),
            "last_step": one_line(self._step, 100) or None,
            "tasks": _tasks(run),
            "started_at": iso(run.started_at),
            "updated_at": iso(now),
            "errors": list(self._errors),
        }
        self._door.replace(self._path, _pretty(told))


class Aggregate(Sink):
    """Written once, when the run has ended."""

    def __init__(self, door: Door, path: Path) -> None:
        self._door = door
        self._path = path
        self._calls = 0
        self._model = ""

    def __call__(self, record: Record, account: Account) -> None:
        match record.event:
            case AgentStarted():
                self._calls += 1
            case AgentSaid(event=Init(model=model)) | AgentEnded(outcome=Outcome(model=model)) if model:
                self._model = model
            case RunEnded(reason=reason, detail=detail):
                self._door.replace(self._path, _pretty(self._told(reason, detail, record.t, account)))

    def _told(self, reason: Reason, detail: str, now: float, account: Account) -> dict[str, Any]:
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


def _pretty(told: dict[str, Any]) -> bytes:
    return msgspec.json.format(msgspec.json.encode(told), indent=2) + b"\n"
