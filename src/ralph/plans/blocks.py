"""The blocks of a Markdown document."""

from __future__ import annotations

import re
from enum import IntEnum

from msgspec import Struct

CHECKBOX = re.compile(r"\[[ xX]\](?=[ \t\n]|\Z)")


class Kind(IntEnum):
    HEADING = 0
    ITEM = 1
    TEXT = 2
    """A paragraph that is not the first one of a list item."""
    OTHER = 3
    """Code, HTML, a rule, anything in a quote: it takes up lines and never holds a task."""


class Block(Struct, frozen=True, gc=False):
    """One block of a document. All positions are offsets into the text."""

    kind: Kind
    depth: int
    """The number of enclosing list items."""
    line: int
    start: int
    """Offset of its first line."""
    marker: int
    """Offset of its bullet, number or `#`; the same as `text` if there is none."""
    text: int
    """Offset of its text, including a checkbox."""
    end: int
    """Offset of the end of its text, without trailing spaces on the last line."""
    box: int = -1
    """The character inside the checkbox that the text starts with, or -1."""
    level: int = 0
    """1 to 6 for a heading."""
