"""Protects the memory of a plan while an agent runs. Agents may add to it and curate it, but not lose entries.

The entries of a progress log are a record: changed or removed ones are restored. Learnings that are missing from the
curated section or from `learnings.md` may have been tidied up: that is reported, and the previous file is kept.
"""

from __future__ import annotations

import re
import time
from pathlib import Path

from ralph.core.errors import BadData
from ralph.core.learning import Learning, entries_of, in_log, in_notes, is_same, with_entries
from ralph.core.plan import Story
from ralph.core.run_ports import PageBack
from ralph.core.text import one_line
from ralph.host.files import make_folder, write_bytes
from ralph.host.redaction import redacted_lines
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.memory.store import Memory, memory_text

_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,3}[.)])\s")


def _added(before: str, now: str) -> str:
    known = set(before.splitlines())
    return "\n".join(line for line in now.splitlines() if line.strip() and line not in known)


class MemoryWatch:
    """`aside` is a folder that only the run uses."""

    def __init__(self, memory: Memory, aside: Path) -> None:
        self._memory = memory
        self._aside = aside
        self._before = ""

    def look(self) -> None:
        """Remember the file before an agent starts."""
        self._before = self._read()

    def put_back(self, iteration: int, story: Story | None = None) -> PageBack:
        before, now = self._before, self._read()
        origin = story.id if story else ""
        if now != before and (marked := self._with_origins(before, now, origin)) != now and self._write(marked):
            now = marked
        logged = _added(before, now) if self._memory.is_log else ""
        if now == before or not before.strip():
            return PageBack(logged=logged)
        told = []
        if self._memory.is_log and (not now.strip() or entries_of(before) not in now):
            self._keep(iteration, now, "changed")
            done = "and restored" if self._write(with_entries(now, before)) else "and could not be restored"
            told.append(f"entries of {self._memory.name} were changed {done}: entries may only be added")
        if gone := self._gone(before, self._read()):
            kept = self._keep(iteration, before, "before")
            listed = "; ".join(one.text[:80] for one in gone[:3])
            told.append(
                f"learnings removed ({len(gone)}) from {self._memory.name} ({listed}); the previous version is in "
                f"{kept}"
            )
        self._before = self._read()
        return PageBack("; ".join(told), logged=logged)

    def _with_origins(self, before: str, now: str, story: str) -> str:
        """What the agent added, without secrets; among the learnings with the story and the date: readers must not
        take it for a person's."""
        parse = in_log if self._memory.is_log else in_notes
        known = {one.text for one in parse(before)}
        new = [one for one in parse(now) if not one.date and one.text not in known and one.line]
        lines = now.split("\n")
        origin = ", ".join(filter(None, (one_line(story, 60) or "an agent", time.strftime("%Y-%m-%d", time.gmtime()))))
        for one in new:
            last = one.line - 1
            while last + 1 < len(lines) and lines[last + 1][:1] in (" ", "\t") and not _BULLET.match(lines[last + 1]):
                last += 1
            if one.curated or not self._memory.is_log:
                lines[last] = f"{lines[last].rstrip()} ({origin})"
        old, redactor = set(before.split("\n")), redacted_lines()
        return "\n".join(line if line in old else redactor.text(line) for line in lines)

    def _write(self, text: str) -> bool:
        files = WorkspaceFiles(self._memory.root)
        if not self._memory.path.is_file() or self._memory.path.is_symlink():
            files.remove(self._memory.path)  # a symlink or a pipe in its place
        files.replace(self._memory.path, text.encode("utf-8", "surrogateescape"))
        return not files.failures

    def _gone(self, before: str, now: str) -> list[Learning]:
        parse = in_log if self._memory.is_log else in_notes
        left = parse(now)
        known = {one.text for one in left}
        lost = [one for one in parse(before) if one.text not in known]
        return [one for one in lost if not any(is_same(one.text, other.text) for other in left)]

    def _keep(self, iteration: int, text: str, word: str) -> Path:
        path = make_folder(self._aside, private=True) / f"{iteration:04}-{word}-{self._memory.path.name}"
        write_bytes(path, text.encode("utf-8", "surrogateescape"), mode=0o600, durable=False)
        return path

    def _read(self) -> str:
        try:
            return "" if self._memory.path.is_symlink() else memory_text(self._memory, errors="surrogateescape")
        except BadData:
            return ""
