"""The memory of a plan: where it is, what it holds, how learnings are added, and what other plans learned.

It is a file that people read and edit: `learnings.md`, or the progress log. The loop writes it only between iterations,
because a change during one counts as the agent's. What a user adds meanwhile waits in the state folder.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData, RalphError, SetupError
from ralph.core.events import IterationEnded, Record
from ralph.core.learning import Learning, distinct, in_log, in_notes, news, with_pattern, written
from ralph.core.ports import Locations, PlanRef
from ralph.core.text import one_line
from ralph.host.files import make_folder, open_state, read_bytes
from ralph.journal.sinks.progress import HEADER, listed
from ralph.journal.sinks.table import progress_header
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.plans.registry import layout
from ralph.state import inbox
from ralph.state.locks import is_at_work, turn
from ralph.state.names import LEARNING_INBOX, LEARNINGS
from ralph.state.places import plan_state
from ralph.workspace.archives import archives
from ralph.workspace.find import Choice, find_plans

_LARGEST = 8 * 1024 * 1024
_HEAD, _TAIL = 32 * 1024, 96 * 1024


class Memory(Struct, frozen=True):
    path: Path
    is_log: bool
    """A progress log, which holds more than learnings."""
    root: Path
    """The folder that must contain it: the workspace, or the plan's folder in the state folder."""
    state: Path

    @property
    def name(self) -> str:
        return os.path.relpath(self.path, self.root) if self.root != self.state else str(self.path)


def memory_of(ref: PlanRef, where: Locations, env: Mapping[str, str]) -> Memory:
    state = plan_state(ref, env)
    if where.learnings is not None:
        return Memory(where.learnings, False, ref.root, state)
    if where.progress is not None:
        return Memory(where.progress, True, ref.root, state)
    return Memory(state / LEARNINGS, False, state, state)


def memory_text(memory: Memory, errors: str = "replace") -> str:
    """The whole file. Raises BadData if it is not a regular file or too large."""
    if not os.path.lexists(memory.path):
        return ""
    return read_bytes(memory.path, within=memory.root, limit=_LARGEST).decode("utf-8", errors)


def learnings_of(memory: Memory) -> tuple[Learning, ...]:
    """All learnings, each once, in file order; those that wait for a run come last."""
    return distinct([*learnings_in(memory, memory_text(memory)), *waiting(memory)])


def recent_learnings(memory: Memory) -> tuple[Learning, ...]:
    """For a prompt: only the beginning and the end of a very long file. Never raises."""
    if not Path(os.path.realpath(memory.path)).is_relative_to(os.path.realpath(memory.root)):
        return ()
    try:  # an agent may have put a pipe there: opening it must not block
        stream = open_state(memory.path)
    except OSError:
        return ()
    with stream:
        size = os.fstat(stream.fileno()).st_size
        data = stream.read(_HEAD + _TAIL)
        if size > len(data):
            stream.seek(size - _TAIL)
            data = data[:_HEAD].rpartition(b"\n")[0] + b"\n---\n" + stream.read(_TAIL).partition(b"\n")[2]
    return distinct(learnings_in(memory, data.decode("utf-8", "replace")))


def learnings_in(memory: Memory, text: str) -> tuple[Learning, ...]:
    if not text.strip():
        return ()
    return in_log(text) if memory.is_log else in_notes(text)


def waiting(memory: Memory) -> tuple[Learning, ...]:
    return tuple(learning for _, learning in _look(memory))


def _look(memory: Memory) -> list[tuple[Path, Learning]]:
    return list(inbox.look(memory.state / LEARNING_INBOX, Learning))


class Kept(Struct, frozen=True):
    new: tuple[Learning, ...]
    known: int = 0
    """How many were already known."""
    waits: bool = False
    """A run is active and adds them before its next iteration."""


def keep(ref: PlanRef, memory: Memory, learnings: Sequence[Learning], env: Mapping[str, str]) -> Kept:
    """Save the user's learnings, or leave them for the active run."""
    new = news(learnings, learnings_of(memory))
    if is_at_work(memory.state):
        for learning in new:
            inbox.put(memory.state / LEARNING_INBOX, learning)
        return Kept(new, len(learnings) - len(new), waits=True)
    with turn(ref, env):
        queued = _look(memory)  # left for a run that ended before it read them
        _write(ref, memory, (*(learning for _, learning in queued), *new))
        _remove(queued)
    return Kept(new, len(learnings) - len(new))


def take_in(ref: PlanRef, memory: Memory) -> list[str]:
    """Save the learnings that wait, between iterations of a run. Returns messages about them."""
    queued = _look(memory)
    if not queued:
        return []
    try:
        _write(ref, memory, [learning for _, learning in queued])
    except (BadData, SetupError) as error:  # a file for people must not end a run; retried later
        return [f"your learnings could not be saved: {error}"]
    _remove(queued)
    return [f"new learning from you: {one_line(learning.text, 200)}" for _, learning in queued]


def _remove(queued: Sequence[tuple[Path, Learning]]) -> None:
    for path, _ in queued:
        path.unlink(missing_ok=True)


def _write(ref: PlanRef, memory: Memory, learnings: Sequence[Learning]) -> None:
    """Write into the curated section if there is one: a learning from the user is not a log entry."""
    text = memory_text(memory, errors="surrogateescape")  # keeps bytes that are not UTF-8
    new = news(learnings, learnings_in(memory, text))
    if not new:
        return
    door = WorkspaceFiles(memory.root)
    make_folder(memory.path.parent)
    header = progress_header(ref.layout, ref.name, time.time()) if memory.is_log else HEADER
    curated: str | None = text or header
    for learning in new:
        curated = with_pattern(curated, written(learning)) if curated and memory.is_log else None
    if curated is not None:
        door.replace(memory.path, curated.encode("utf-8", "surrogateescape"))
    elif memory.is_log:
        door.append(memory.path, "".join(f"\n- Learned: {written(one)}\n" for one in new), header=header)
    else:
        door.append(memory.path, listed(new), header=header)
    if door.failures:
        raise SetupError(door.failures[0], hint="check what is at that path")


class Touched:
    """The files that each story's attempts have changed in this run."""

    def __init__(self) -> None:
        self._files: dict[str, dict[str, None]] = {}

    def of(self, story: str) -> tuple[str, ...]:
        return tuple(self._files.get(story, ()))

    def listen(self, record: Record) -> None:
        if isinstance(record.event, IterationEnded):
            self._files.setdefault(record.event.story, {}).update(dict.fromkeys(record.event.files))


_MOST_ARCHIVES = 10
_LOGS = ("progress.txt", "progress.md")
_NOTES = "learnings.md"


def learnings_elsewhere(ref: PlanRef, memory: Memory, env: Mapping[str, str]) -> tuple[Learning, ...]:
    """From accepted work only. Never raises: a plan that cannot be read has nothing to say."""
    learnings: list[Learning] = []
    try:
        refs = find_plans(ref.root, Choice())
    except (RalphError, OSError):
        refs = []
    seen = {memory.path}
    for name, other in _memories(ref, refs, env):
        if other.path in seen:
            continue
        seen.add(other.path)
        learnings += (_elsewhere(one, name) for one in recent_learnings(other) if one.accepted)
    return distinct(learnings)


def _elsewhere(learning: Learning, plan: str) -> Learning:
    """Its story belongs to another plan, and what was curated there need not hold here."""
    story = f"{plan}/{learning.story}" if learning.story else plan
    return msgspec.structs.replace(learning, story=story, curated=False, date=learning.date or "undated")


def _memories(ref: PlanRef, refs: Sequence[PlanRef], env: Mapping[str, str]) -> Iterator[tuple[str, Memory]]:
    for other in refs:
        if other.path != ref.path:
            yield other.name, memory_of(other, layout(other.layout).locations(other), env)
    try:
        latest = archives(ref.root, refs)[-_MOST_ARCHIVES:]
    except (RalphError, OSError):
        return
    for archive in latest:
        name = archive.manifest.name if archive.manifest else archive.name
        for file in (*_LOGS, _NOTES):
            path: Path = archive.path / file
            if path.is_file():
                yield name, Memory(path, file in _LOGS, archive.path, archive.path)
