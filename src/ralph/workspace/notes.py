"""The user's notes for the next iteration. Each goes into one prompt and is kept until an agent has worked with it.

A session without a result (a limit, a broken connection, Ctrl-C) or a killed run does not use up a note. Nor does a
review use up a note for every story.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

from ralph.core.control import Note
from ralph.core.events import Guided, IterationEnded, Record
from ralph.core.plan import Mode
from ralph.core.verdict import Kind
from ralph.workspace import inbox

FOLDER = "notes"
_CAME_TO_NOTHING = frozenset({Kind.LIMIT, Kind.TRANSPORT, Kind.INTERRUPTED, Kind.MISCONFIGURED})


def leave(state: Path, note: Note) -> Path:
    return inbox.put(state / FOLDER, note)


def notes_for(state: Path, story: str) -> tuple[tuple[Path, Note], ...]:
    """The notes for the next prompt of this story, oldest first. They are not removed."""
    return tuple(found for found in inbox.look(state / FOLDER, Note) if found[1].is_for(story))


def carry_over(state: Path, to: Path) -> None:
    """Move waiting notes to the workspace where a plan is worked on instead."""
    for path, note in inbox.look(state / FOLDER, Note):
        leave(to, note)
        with contextlib.suppress(FileNotFoundError):
            path.unlink()


class Guidance:
    """The notes of one run's plan: handed out to iterations, recorded, and removed once used."""

    def __init__(self, state: Path, tell: Callable[[Guided], object]) -> None:
        self._state = state
        self._tell = tell
        self._handed: dict[Path, tuple[int, bool]] = {}
        """Note → its iteration, and whether it is for every story."""

    def __call__(self, iteration: int, story: str) -> tuple[str, ...]:
        found = notes_for(self._state, story)
        for path, note in found:
            if self._handed.get(path, (0,))[0] != iteration:  # a step that is tried again gets it again
                self._handed[path] = (iteration, not note.story)
                self._tell(Guided(iteration, note.text, note.story))
        return tuple(note.text for _, note in found)

    def listen(self, record: Record) -> None:
        event = record.event
        if not isinstance(event, IterationEnded) or event.kind in _CAME_TO_NOTHING:
            return
        for path, (iteration, is_general) in list(self._handed.items()):
            if iteration == event.iteration:
                del self._handed[path]
                if is_general and event.mode is Mode.REVIEW:  # it is for the agent that writes the code
                    continue
                with contextlib.suppress(OSError):
                    path.unlink()
