"""Texts given on the command line, looked at before they become part of a plan. Pure.

A plan may come from anywhere and is only cleaned when it is shown; what Ralph itself writes into one is clean.
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
"""Invisible, but letters and emoji are made with them."""
_UNFIT = {"Cc": "a control character", "Cs": "a byte that is not UTF-8", "Zl": "a line break", "Zp": "a line break"}


def line(what: str, text: str) -> str:
    """Something that is one line: a title, a criterion, a command."""
    text = text.strip()
    if not text:
        raise UsageError(f"{what} is empty", hint="say in a few words what it is")
    if "\n" in text or "\r" in text:
        raise UsageError(f"{what} has a line break: {_shown(text)}", hint="put it on one line")
    _refuse_unfit(what, text)
    if len(text) > _LONGEST_LINE:
        raise UsageError(
            f"{what} has {len(text)} characters, more than {_LONGEST_LINE}", hint="put the details into --description"
        )
    return text


def prose(what: str, text: str) -> str:
    """Something that may have several lines. Empty takes it away."""
    text = text.replace("\r\n", "\n").strip()
    _refuse_unfit(what, text.replace("\n", "").replace("\t", ""))
    if len(text) > _LONGEST_TEXT:
        raise UsageError(
            f"{what} has {len(text):,} characters, more than {_LONGEST_TEXT:,}",
            hint="write it into a file of the project, and name the file here",
        )
    return text


def lines(what: str, texts: Sequence[str]) -> tuple[str, ...]:
    """A single empty text takes all of them away."""
    if [text.strip() for text in texts] == [""]:
        return ()
    return tuple(line(what, text) for text in texts)


def new_id(text: str) -> str:
    if not _ID.fullmatch(text):
        raise UsageError(
            f"{_shown(text)} cannot be the id of a story",
            hint="use letters, digits, '-', '_', '.' and ':', at most 100 of them, e.g. US-012",
        )
    return text


def priority(number: float) -> float:
    if not math.isfinite(number) or not 0 < number <= _LARGEST_NUMBER:
        raise UsageError(f"a priority of {number:g} is not possible", hint="1 is the highest; use a number above 0")
    return int(number) if number == int(number) else number


def _refuse_unfit(what: str, text: str) -> None:
    for char in text:
        kind = unicodedata.category(char)
        if kind in _UNFIT or (kind == "Cf" and char not in _JOINERS):
            name = _UNFIT.get(kind, "an invisible character")
            raise UsageError(
                f"{what} has {name} (U+{ord(char):04X}): {_shown(text)}", hint="leave it out, and use plain text"
            )


def _shown(text: str) -> str:
    return one_line(repr(text), 60)
