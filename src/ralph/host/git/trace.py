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
_MOVES_REFS_ONLY = frozenset((
    "add", "apply", "archive", "branch", "clean", "clone", "commit-graph", "commit-tree", "fetch", "gc", "hash-object",
    "init", "maintenance", "mktree", "mv", "notes", "pack-refs", "prune", "push", "reflog", "repack", "replace",
    "restore", "rm", "sparse-checkout", "tag", "update-index", "write-tree",
))  # fmt: skip
"""They write, but move neither HEAD nor the current branch, and make no stash."""


class _Line(Struct):
    event: str = ""
    sid: str = ""
    time: str = ""
    """Only the first and the last line of a process have it."""
    t_abs: float = 0
    """Seconds since the process started."""
    name: str = ""


class Traced(Struct, frozen=True):
    """When git commands ran."""

    moved_head: tuple[Span, ...] = ()
    """Those that can move HEAD or its branch, or make a stash."""
    moved_refs: tuple[Span, ...] = ()
    """Those that can write any ref."""


def writing_commands(file: Path, since: float) -> Traced:
    started: dict[str, float] = {}
    ended: dict[str, float] = {}
    writes: dict[str, set[str]] = {}
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
            writes.setdefault(record.sid, set()).add(record.name)
    spans = {sid: Span(started[sid], ended[sid]) for sid in writes if ended[sid] >= since - 1}
    return Traced(
        tuple(span for sid, span in spans.items() if not writes[sid] <= _MOVES_REFS_ONLY),
        tuple(spans.values()),
    )


def _lines(file: Path) -> list[bytes]:
    with contextlib.suppress(OSError), file.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(size - _MOST, 0))
        return stream.read(_MOST).splitlines()
    return []
