"""Sanitise text from other tools for use in a plan: one line where required, and nothing hidden. Pure."""

from __future__ import annotations

import re
import unicodedata

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import clean, one_line

LONGEST_TITLE = 200
LONGEST_TEXT = 20_000
_JOINERS = "\u200c\u200d"
_COMMENT = lazy_pattern(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_WRAPPED = lazy_pattern(r"(\*\*|__|~~|\*|_)(?P<text>(?:(?!\1).)+)\1(?P<rest>[ \t]*[:.–—-]?[ \t]*.*)", re.DOTALL)
_TICKED = lazy_pattern(r"^\s*(?:✅|✔️?|☑️?)\s*|\s*(?:✅|✔️?|☑️?|\((?:done|completed|fixed)\))\s*$", re.IGNORECASE)
_STRUCK = lazy_pattern(r"\s*~~.+~~\s*", re.DOTALL)


def visible(text: str) -> str:
    """Without escape sequences, control characters and invisible ones. Joiners in letters and emoji stay."""
    text = clean(text.removeprefix("\ufeff"))
    if text.isascii():
        return text
    return "".join(c for c in text if c in _JOINERS or unicodedata.category(c) not in ("Cf", "Cs", "Co"))


def line(text: str) -> str:
    return one_line(visible(_COMMENT.sub(" ", text)))


def title(text: str) -> str:
    """On one line, without surrounding marks, and short enough to read at a glance."""
    return one_line(unwrapped(_TICKED.sub("", line(text))).rstrip(" :"), LONGEST_TITLE)


def unwrapped(words: str) -> str:
    """`**Add** a page` → `Add a page`."""
    found = _WRAPPED.fullmatch(words)
    return (found["text"] + found["rest"]).strip() if found else words


def looks_done(text: str) -> bool:
    """Struck through, or with a tick that is not a checkbox."""
    return bool(_STRUCK.fullmatch(text) or _TICKED.search(line(text)))


def prose(text: str) -> str:
    """Lines and paragraphs, without comments, trailing spaces and runs of empty lines."""
    text = visible(text.replace("\r\n", "\n").replace("\r", "\n"))
    lines = [found.rstrip() for found in text.split("\n")]
    whole = re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip("\n")
    if len(whole) > LONGEST_TEXT:
        whole = whole[:LONGEST_TEXT].rstrip() + "\n…"
    return whole


def without_comments(text: str) -> str:
    return _COMMENT.sub("", text)


def slug(text: str) -> str:
    """For comparing names: letters and digits only."""
    return re.sub(r"[\W_]+", " ", text.casefold()).strip()
