"""Text that others wrote, in a prompt: fenced, labelled with its origin, without invisible characters. Pure.

Issues, imported plans, notes of earlier sessions and the output of tools are material. Inside a fence, none of their
lines is a heading or a rule of the prompt, and none of them can end the fence.
"""

from __future__ import annotations

import re

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import clean, one_line

_FENCE = lazy_pattern(r"^ {0,3}(`{3,})(.*)$")
_MARKUP = lazy_pattern(r"^[ \t]*(?:#{1,6}(?:\s|$)|`{3}|~{3}|<[!/a-z]|[=_*-]{3,}[ \t]*$)", re.IGNORECASE | re.MULTILINE)
"""A heading, a fence, a tag, an underline or a rule: what gives a prompt its structure."""


def has_markup(text: str) -> bool:
    return _MARKUP.search(text) is not None


def fence_for(*texts: str) -> str:
    """A fence that is longer than every run of backticks in these texts."""
    runs = (run for text in texts for run in re.findall(r"`+", text))
    return "`" * max(3, max(map(len, runs), default=0) + 1)


def fenced(text: str, kind: str = "", fence: str = "") -> str:
    """`kind`: the language, such as `diff`; `fence`: one that several blocks share."""
    text = clean(text).strip("\n")
    fence = fence or fence_for(text)
    return f"{fence}{kind}\n{text}\n{fence}"


def quoted(text: str, origin: str) -> str:
    """The text with the origin it comes from."""
    return f"{one_line(origin)}:\n\n{fenced(text)}"


def cut_middle(text: str, most: int) -> str:
    """Leave out the middle of a long text: its end matters most, and its beginning shows what was run.

    A fence that is open at the cut is closed before it and opened again after it.
    """
    if len(text) <= most:
        return text
    head, middle, tail = text[: most // 4], text[most // 4 : -(most * 3 // 4)], text[-(most * 3 // 4) :]
    closes = f"\n{fence}" if (fence := _open_fence(head)) else ""
    opens = f"{fence}\n" if (fence := _open_fence(head + middle)) else ""
    return f"{head}{closes}\n… ({len(text) - most} characters left out) …\n{opens}{tail}"


def _open_fence(text: str) -> str:
    """The fence that is not closed at the end of the text."""
    opened = ""
    for line in text.split("\n"):
        if (found := _FENCE.match(line)) is None:
            continue
        if not opened:
            opened = found[1]
        elif len(found[1]) >= len(opened) and not found[2].strip():
            opened = ""
    return opened
