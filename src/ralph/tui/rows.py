"""Rows of a page: pieces of text, each with the name of a style, and what the row is about.

Every tab is a function that returns rows; one widget shows them. A row is plain text: nothing in it is ever read as
markup, and control characters are removed where the row is made.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from msgspec import Struct

from ralph.core.text import clean, one_line
from ralph.views.columns import cells

Part = tuple[str, str]
"""A text and the name of its style; see `theme.STYLES`."""


class Row(Struct, frozen=True):
    parts: tuple[Part, ...] = ()
    key: str = ""
    """What it is about. Rows with the same key that follow one another are selected together."""
    folds: bool = False
    """Enter unfolds or folds what has this key."""
    whole: str = ""
    """What the row shows only a part of. It is found by all of it."""

    @property
    def text(self) -> str:
        return "".join(text for text, _ in self.parts)

    def has(self, words: str) -> bool:
        """Whether it contains them, whatever their case."""
        wanted = words.lower()
        return wanted in self.text.lower() or wanted in self.whole.lower()


Rows = Sequence[Row]
BLANK = Row()


def row(*parts: Part | str, key: str = "", folds: bool = False, whole: str = "") -> Row:
    shown = (((part, "") if isinstance(part, str) else part) for part in parts)
    return Row(tuple((flat(text), style) for text, style in shown if text), key, folds, whole)


def flat(text: str) -> str:
    """Clean and on one line, with its spaces: code is indented."""
    return clean(text).expandtabs(4).replace("\n", " ")


def head(text: str, more: str = "") -> Row:
    return row((text, "bold"), (f"  {more}" if more else "", "dim"))


def wrapped(text: str, room: int, style: str = "", *, lead: str = "", key: str = "") -> Iterator[Row]:
    """The lines of a text, each wrapped at words; the lead is before every line."""
    before: tuple[Part, ...] = ((lead, "dim"),) if lead else ()
    for line in _lines(text, max(room - cells(lead), 16)):
        yield Row((*before, (line, style)), key)


@lru_cache(maxsize=4096)
def _lines(text: str, width: int) -> tuple[str, ...]:
    """Cached: an agent's texts are wrapped again whenever it adds one."""
    found: list[str] = []
    for line in clean(text).expandtabs(4).splitlines():
        found += (_fitting(line, width) or [""]) if cells(line) > width else [line]
    return tuple(found)


def _fitting(line: str, width: int) -> list[str]:
    """`textwrap` counts characters: where some are two columns wide, half of the width is enough for all."""
    own = width if line.isascii() or cells(line) == len(line) else width // 2
    indent = line[: len(line) - len(line.lstrip())][: own // 2]
    return textwrap.wrap(line, own, subsequent_indent=indent, drop_whitespace=False)


def filtered(rows: Iterable[Row], words: str) -> list[Row]:
    """The rows whose group contains the words, whatever their case. Rows without a key stand for themselves."""
    found: list[Row] = []
    group: list[Row] = []
    for each in rows:
        if group and (not each.key or each.key != group[0].key):
            found += _if_found(group, words)
            group = []
        group.append(each)
    return found + _if_found(group, words)


def no_match(words: str, room: int) -> list[Row]:
    return list(wrapped(f"No line matches “{one_line(words, 40)}”; Esc clears the filter", room, "warn"))


def _if_found(group: list[Row], words: str) -> list[Row]:
    return group if any(each.has(words) for each in group) else []


def find(rows: Rows, words: str, start: int, step: int) -> int:
    """The next row after `start` that contains the words, round the end; -1: none."""
    count = len(rows)
    for distance in range(1, count + 1):
        at = (start + step * distance) % count
        if rows[at].has(words):
            return at
    return -1
