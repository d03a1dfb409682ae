"""A painted line as spans of text, and lines wrapped to the columns of a picture.

Only the codes of `views.paint` are understood. Whatever else would steer a terminal is taken out, so a picture contains
nothing but text and its style.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from ralph.core.text import clean
from ralph.views.columns import cells

_PAINT = re.compile("\x1b\\[([0-9;]*)m")
_RESET = ("", "0")


class Span(NamedTuple):
    codes: str
    """As in a terminal code, such as `1;31`; empty: plain."""
    text: str


Line = tuple[Span, ...]
"""What fits into one row."""


def line_of(painted: str) -> Line:
    return tuple(span for span in _spans(painted) if span.text)


def wrapped(painted: str, columns: int, indent: int = 4) -> Iterator[Line]:
    """The lines of a text, broken between words where that is possible; what follows is indented."""
    for text in painted.split("\n"):
        characters = [(codes, char) for codes, part in _spans(text) for char in part]
        while len(characters) > (end := _end_of_row(characters, columns)):
            yield _joined(characters[:end])
            characters = [*[("", " ")] * indent, *characters[end + (characters[end][1] == " ") :]]
        yield _joined(characters)


def as_terminal_codes(line: Line) -> str:
    return "".join(f"\x1b[{codes}m{text}\x1b[0m" if codes else text for codes, text in line)


def plain(line: Line) -> str:
    return "".join(text for _, text in line)


def _spans(painted: str) -> Iterator[Span]:
    codes: list[str] = []
    parts = _PAINT.split(painted)
    for number, part in enumerate(parts):
        if number % 2 == 0:
            yield Span(";".join(sorted(codes)), clean(part).replace("\t", " ").replace("\n", " "))
        elif part in _RESET:
            codes = []
        else:
            codes = sorted({*codes, *part.split(";")})


def _end_of_row(characters: list[tuple[str, str]], columns: int) -> int:
    """How many of them go into a row."""
    used, space = 0, 0
    for at, (_, char) in enumerate(characters):
        used += cells(char)
        if char == " ":
            space = at
        if used > columns:
            return space if space > columns // 2 else at
    return len(characters)


def _joined(characters: list[tuple[str, str]]) -> Line:
    groups = groupby(characters, key=itemgetter(0))
    return tuple(Span(codes, "".join(char for _, char in same)) for codes, same in groups)
