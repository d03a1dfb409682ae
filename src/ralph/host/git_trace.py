"""Which git commands ran in an agent's environment, from git's own trace (`GIT_TRACE2_EVENT`)."""

from __future__ import annotations

import contextlib
from datetime import datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.authorship import Span

GIT_TRACE = "git-trace"
"""The file in the run's folder to which every git process of the agents appends."""
_MOST = 8 * 1024 * 1024
_READING = frozenset((
    "blame", "cat-file", "check-attr", "check-ignore", "config", "count-objects", "describe", "diff", "diff-files",
    "diff-index", "diff-tree", "for-each-ref", "fsck", "grep", "help", "log", "ls-files", "ls-remote", "ls-tree",
    "merge-base", "name-rev", "remote", "rev-list", "rev-parse", "shortlog", "show", "show-ref", "status", "var",
    "version",
))  # fmt: skip


class _Line(Struct):
    event: str = ""
    sid: str = ""
    time: str = ""
    """Only the first and the last line of a process have it."""
    t_abs: float = 0
    """Seconds since the process started."""
    name: str = ""


def writing_commands(file: Path, since: float) -> tuple[Span, ...]:
    """When git commands ran that can move a branch or write a stash."""
    started: dict[str, float] = {}
    ended: dict[str, float] = {}
    writes: set[str] = set()
    for line in _lines(file):
        try:
            record = msgspec.json.decode(line, type=_Line)
            if record.sid not in started and record.time:
                started[record.sid] = datetime.fromisoformat(record.time).timestamp()
        except (msgspec.DecodeError, UnicodeDecodeError, ValueError):  # a process was killed while it wrote
            continue
        begun = started.get(record.sid)
        if begun is None:
            continue
        ended[record.sid] = max(ended.get(record.sid, begun), begun + record.t_abs)
        if record.event == "cmd_name" and record.name not in _READING:
            writes.add(record.sid)
    return tuple(Span(started[sid], ended[sid]) for sid in writes if ended[sid] >= since - 1)


def _lines(file: Path) -> list[bytes]:
    with contextlib.suppress(OSError), file.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(size - _MOST, 0))
        return stream.read(_MOST).splitlines()
    return []
