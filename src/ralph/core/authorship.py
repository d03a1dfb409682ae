"""Tells what the agent changed from what somebody else changed in the same working tree meanwhile. Pure.

What can be known: when the agent's process tree lived, when each of its tool calls ran and which file it named, when
a file was last written, and which git commands ran in the agent's own environment. What can be done:

| known | author |
|---|---|
| a file was written after the agent had ended, or before it started | somebody else |
| … while the agent ran, and no tool call was open | somebody else |
| … while the agent's whole process tree did nothing | somebody else |
| … while a tool call was open, or the agent does not report its calls | unknown |
| a tool call named the file | the agent; unknown if it was also written after the end |
| a file is older than the checkpoint: a folder was renamed | unknown |
| HEAD moved while a git command of the agent ran | the agent |
| … after the agent had ended, before it started, between its tool calls, or while it did nothing | somebody else |
| … at another time | unknown |

An unknown file is treated as the agent's: a rollback saves it under a rescue ref and says so. Unknown commits are never
taken off a branch: the run stops and asks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import StrEnum

from msgspec import Struct

from ralph.core.lazy_pattern import lazy_pattern

_EARLY = 0.5
_LATE = 1.0
"""Seconds around a tool call: the events of a stream arrive early or late."""
_COARSE = 0.05
"""File systems round the time of a write."""
_READING = frozenset({"Read", "Grep", "Glob", "LS", "TodoWrite", "NotebookRead", "WebFetch", "WebSearch"})
_STAYS = lazy_pattern(r"(?<![&>])&(?![&>])|\b(?:nohup|setsid|disown|daemon\w*|tmux|screen|systemd-run|at|batch)\b")
"""A command that may leave a process running after the call has returned."""


class Author(StrEnum):
    AGENT = "agent"
    OTHER = "other"
    UNKNOWN = "unknown"


class Span(Struct, frozen=True):
    """Seconds since the epoch."""

    start: float
    end: float

    def has(self, moment: float, early: float = 0, late: float = 0) -> bool:
        return self.start - early <= moment <= self.end + late


class Session(Struct, frozen=True, kw_only=True):
    """One period in which processes of the loop could write: an agent, the steps or checks that followed it."""

    life: Span
    is_agent: bool = True
    reports_calls: bool = False
    calls: tuple[Span, ...] = ()
    """When a tool that can write was running."""
    paths: frozenset[str] = frozenset()
    """Absolute paths that its tool calls named."""
    quiet: tuple[Span, ...] = ()
    """When its whole process tree did nothing."""


AT_ANY_TIME = Session(life=Span(-math.inf, math.inf))
"""Where times cannot be compared, every file may be the agent's."""


class CallLog:
    """Collects the tool calls of one session from its events."""

    def __init__(self, started: float) -> None:
        self._started = self._last = started
        self._open: dict[str, float] = {}
        self._calls: list[Span] = []
        self._paths: set[str] = set()
        self._endless: float | None = None
        """Since when a process of the agent may be running beside its calls."""

    def begin(self, call: str, tool: str, path: str, command: str, now: float) -> None:
        if tool in _READING:
            return
        if not self._calls and not self._open:  # hooks of the client's own may run before the first message
            self._calls.append(Span(self._started, now))
        self._open.setdefault(call, now)
        if path:
            self._paths.add(path)
        elif self._endless is None and (not command or _STAYS.search(command)):
            self._endless = now

    def end(self, call: str, now: float) -> None:
        self._last = now
        if (start := self._open.pop(call, None)) is not None:
            self._calls.append(Span(start, now))

    def speak(self, now: float) -> None:
        """The model sent a message. After its last one, hooks of the client's own may run."""
        self._last = now

    def session(self, ended: float, *, reports_calls: bool, quiet: tuple[Span, ...] = ()) -> Session:
        start = min(self._last, self._endless or ended, *self._open.values())
        return Session(
            life=Span(self._started, ended),
            reports_calls=reports_calls,
            calls=(*self._calls, Span(start, ended)),
            paths=frozenset(self._paths),
            quiet=quiet,
        )


class Move(Struct, frozen=True):
    """One change of HEAD, as its reflog has it."""

    old: str
    new: str
    at: float
    lasted: float = 1.0
    """Git records whole seconds; the last move is known better, from the file of its ref."""
    is_switch: bool = False
    """To another branch."""


def file_author(path: str, written: float, checkpoint: float, sessions: Sequence[Session]) -> Author:
    """The author of a file that differs from the checkpoint. `written`: when its inode last changed."""
    if written < checkpoint - _COARSE:
        return Author.UNKNOWN
    session = next((one for one in sessions if one.life.has(written, _COARSE, _COARSE)), None)
    is_named = any(path in one.paths for one in sessions)
    if session is None:
        return Author.UNKNOWN if is_named else Author.OTHER
    if is_named:
        return Author.AGENT
    if any(span.has(written, -_COARSE, -_COARSE) for span in session.quiet):
        return Author.OTHER
    if not session.reports_calls or any(call.has(written, _EARLY, _LATE) for call in session.calls):
        return Author.UNKNOWN
    return Author.OTHER


def move_author(at: float, traced: Sequence[Span], sessions: Sequence[Session], lasted: float = 1.0) -> Author:
    """The author of a commit, or of another change of HEAD, made between `at` and `lasted` seconds later."""
    moment = Span(at, at + lasted)
    slack = min(lasted, 1) or _COARSE
    if any(_overlap(span, moment, slack, slack) for span in traced):
        return Author.AGENT
    agents = [one for one in sessions if one.is_agent and _overlap(one.life, moment, _COARSE, _COARSE)]
    for session in agents:
        if any(span.start <= moment.start and moment.end <= span.end for span in session.quiet):
            continue
        if not session.reports_calls or any(_overlap(call, moment, _EARLY, _LATE) for call in session.calls):
            return Author.UNKNOWN
    return Author.OTHER


def _overlap(span: Span, other: Span, early: float, late: float) -> bool:
    return span.start - early <= other.end and other.start <= span.end + late


class Branch(Struct, frozen=True):
    """What becomes of the branch when the agent's work is undone."""

    kept: int = 0
    """How many of the moves are kept, from the first one on."""
    ask: str = ""
    """What the user has to look at before the run continues, as the beginning of a sentence."""
    can_undo: bool = True
    """Otherwise everything is left as it is."""


def branch_after(moves: Sequence[Move], authors: Sequence[Author]) -> Branch:
    """Only moves of the agent's are undone, and only if nothing of somebody else's lies on top of them."""
    kept = next((n for n, author in enumerate(authors) if author is Author.AGENT), len(moves))
    if any(move.is_switch for move in moves[:kept]):
        return Branch(kept, "the branch was switched while the agent worked", can_undo=False)
    if any(author is not Author.AGENT for author in authors[kept:]):
        return Branch(kept, "there are commits on top of the agent's that may be yours", can_undo=False)
    if Author.UNKNOWN in authors:
        return Branch(kept, "there are new commits that may be yours or the agent's")
    return Branch(kept)
