"""Files that exist while an agent runs and are removed before its tree is inspected."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from ralph.core.events import AgentEnded, AgentStarted, IterationEnded, IterationStarted, Record, RunEnded, StepEnded
from ralph.core.plan import Mode, State
from ralph.core.text import one_line
from ralph.journal.sinks.account import Account
from ralph.journal.sinks.door import Door
from ralph.journal.sinks.sink import Sink
from ralph.journal.sinks.wording import MODES, iso

Content = Callable[[Account], bytes | None]
"""The text; None if there is nothing to write."""


class Markers(Sink):
    def __init__(self, door: Door, contents: Mapping[Path, Content]) -> None:
        self._door = door
        self._contents = dict(contents)
        self._are_there = False

    def __call__(self, record: Record, account: Account) -> None:
        match record.event:
            case IterationStarted():
                self._write(account)
            case AgentStarted() if not self._are_there:  # the second agent of an iteration
                self._write(account)
            case AgentEnded() | StepEnded() | IterationEnded() | RunEnded():
                self.tidy()

    def _write(self, account: Account) -> None:
        self._are_there = True
        for path, content in self._contents.items():
            data = content(account)
            if data is not None:
                self._door.replace(path, data)

    def tidy(self) -> None:
        self._are_there = False
        for path in self._contents:
            self._door.remove(path)


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
        "iterationMode": MODES[started.mode if started.mode in (Mode.REVIEW, Mode.FIX) else Mode.IMPLEMENT],
        "preIterationSnapshot": {
            story.id: {"passes": story.state is State.DONE, "reviewStatus": story.review, "reviewCount": story.reviews}
            for story in account.run.stories.values()
        },
    }
    return msgspec.json.format(msgspec.json.encode(payload), indent=2) + b"\n"
