"""The pieces that a Markdown document is made of."""

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
    """Code, HTML, a rule, anything in a quote: it takes up lines, and what it says is nobody's task."""


class Block(Struct, frozen=True, gc=False):
    """One piece of a document. All positions are offsets into the text."""

    kind: Kind
    depth: int
    """How many list items are around it."""
    line: int
    start: int
    """Where its first line starts."""
    marker: int
    """Where its bullet, number or `#` is; same as `text` when there is none."""
    text: int
    """Where its text starts. A checkbox belongs to the text."""
    end: int
    """Where its text ends, spaces at the end of the last line left out."""
    box: int = -1
    """The character inside the checkbox that the text starts with, or -1."""
    level: int = 0
    """1 to 6 for a heading."""
