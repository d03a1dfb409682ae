"""Text in columns of a terminal: its width, cut or filled to a width, and a bar of progress."""

from __future__ import annotations

import unicodedata

from ralph.core.text import one_line

BAR = 20


def cells(text: str) -> int:
    """The width of a text in columns: none for combining characters, two for East Asian ones and most emoji."""
    if text.isascii():
        return len(text)
    return sum(map(_cells_of, text))


def _cells_of(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def fit(text: str, room: int | None, ellipsis: str = "…") -> str:
    """On one line, cut to this many columns with an ellipsis."""
    return cut(one_line(text), room, ellipsis)


def cut(text: str, room: int | None, ellipsis: str = "…") -> str:
    """Like `fit`, for a line whose columns are padded with spaces."""
    if room is None or cells(text) <= room:
        return text
    left = room - len(ellipsis)
    if left < 0:
        return ""
    kept = ""
    for char in text:
        left -= _cells_of(char)
        if left < 0:
            break
        kept += char
    return kept.rstrip() + ellipsis


def pad(text: str, room: int, ellipsis: str = "…") -> str:
    text = fit(text, room, ellipsis)
    return text + " " * (room - cells(text))


def progress_bar(done: int, total: int, width: int = BAR) -> str:
    """`[████████░░] 4/6`. Full only if everything is done, empty only if nothing is."""
    filled = width * done // total if total else 0
    if done > 0 and filled == 0:
        filled = 1
    return f"[{'█' * filled}{'░' * (width - filled)}] {done}/{total}"
