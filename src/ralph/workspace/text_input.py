"""Validate texts from the command line before they become part of a plan. Pure.

A plan may come from anywhere and is only sanitised for display; what Ralph itself writes to one is clean.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Sequence

from ralph.core.errors import UsageError
from ralph.core.text import one_line

_LONGEST_LINE = 500
_LONGEST_TEXT = 20_000
_LARGEST_NUMBER = 1_000_000_000
_ID = re.compile(r"\w[\w.:-]{0,99}")
_JOINERS = "\u200c\u200d"
"""Invisible, but needed in some scripts and emoji."""
_UNFIT = {"Cc": "a control character", "Cs": "a byte that is not UTF-8", "Zl": "a line break", "Zp": "a line break"}


def line(what: str, text: str) -> str:
    """A text on one line: a title, a criterion, a command."""
    text = text.strip()
    if not text:
        raise UsageError(f"{what} is empty", hint="describe it in a few words")
    if "\n" in text or "\r" in text:
        raise UsageError(f"{what} has a line break: {_shown(text)}", hint="put it on one line")
    _refuse_unfit(what, text)
    if len(text) > _LONGEST_LINE:
        raise UsageError(
            f"{what} has {len(text)} characters; the limit is {_LONGEST_LINE}", hint="move the details to --description"
        )
    return text


def prose(what: str, text: str) -> str:
    """A text that may have several lines. Empty removes it."""
    text = text.replace("\r\n", "\n").strip()
    _refuse_unfit(what, text.replace("\n", "").replace("\t", ""))
    if len(text) > _LONGEST_TEXT:
        raise UsageError(
            f"{what} has {len(text):,} characters; the limit is {_LONGEST_TEXT:,}",
            hint="write it to a file in the project and name the file here",
        )
    return text


def lines(what: str, texts: Sequence[str]) -> tuple[str, ...]:
    """A single empty text removes all of them."""
    if [text.strip() for text in texts] == [""]:
        return ()
    return tuple(line(what, text) for text in texts)


def new_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise UsageError(
            f"{_shown(text)} is not a valid story ID",
            hint="use up to 100 letters, digits, '-', '_', '.' and ':', e.g. US-012",
        )
    return text


def priority(number: float) -> float:
    if not math.isfinite(number) or not 0 < number <= _LARGEST_NUMBER:
        raise UsageError(f"invalid priority {number:g}", hint="use a number above 0; 1 is the highest priority")
    return int(number) if number == int(number) else number


def _refuse_unfit(what: str, text: str) -> None:
    for char in text:
        kind = unicodedata.category(char)
        if kind in _UNFIT or (kind == "Cf" and char not in _JOINERS):
            name = _UNFIT.get(kind, "an invisible character")
            raise UsageError(f"{what} has {name} (U+{ord(char):04X}): {_shown(text)}", hint="remove it; use plain text")


def _shown(text: str) -> str:
    return one_line(repr(text), 60)
