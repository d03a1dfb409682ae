"""`.ralph/activity.log` of seed 000: when each story's prompt was sent, and its length. Never its text."""

from __future__ import annotations

from pathlib import Path

from ralph.core.events import IterationEnded, Record
from ralph.journal.sinks.account import Account
from ralph.journal.sinks.door import Door
from ralph.journal.sinks.sink import Sink
from ralph.journal.sinks.wording import iso, story_name


class ActivityLog(Sink):
    def __init__(self, door: Door, path: Path) -> None:
        self._door = door
        self._path = path

    def __call__(self, record: Record, account: Account) -> None:
        event = record.event
        if not isinstance(event, IterationEnded):
            return
        lines = [
            f"{iso(t)} {story_name(event)} iteration={event.iteration} "
            + (f"prompt_length={agent.prompt}\n" if agent.prompt else "prompt\n")
            for t, agent in account.agents
        ]
        if lines:
            self._door.append(self._path, "".join(lines))
