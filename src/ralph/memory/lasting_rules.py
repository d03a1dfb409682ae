"""Notice when an agent, unasked, changes a file that every later session of every plan reads."""

from __future__ import annotations

from ralph.core.events import IterationEnded, Record
from ralph.core.text import one_line

FILES = ("CLAUDE.md", "AGENTS.md")
"""File names of a repository's rules for clients, in any folder."""
_FOLDER = ".claude/rules/"


class LastingRules:
    """`allowed` is the file that agents may add to."""

    def __init__(self, allowed: str) -> None:
        self._allowed = allowed
        self._news: list[str] = []

    def listen(self, record: Record) -> None:
        event = record.event
        if not isinstance(event, IterationEnded) or not event.kind.keeps_work:
            return
        for path in event.files:
            if path != self._allowed and (path.rpartition("/")[2] in FILES or path.startswith(_FOLDER)):
                where = f": `git show {event.commit[:9]} -- {one_line(path, 80)}`" if event.commit else ""
                what = f"an agent changed {one_line(path, 80)} in {event.story or 'the set-up'}"
                self._news.append(
                    f"{what}, which every later session of every plan reads; make sure this is intended{where}"
                )

    def news(self) -> list[str]:
        """Messages that have not been shown yet."""
        told, self._news = self._news, []
        return told
