"""An asciicast, version 2.

Every player and converter reads it. asciinema 2, which distributions still ship, does not read version 3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from ralph.recording.spans import Line, as_terminal_codes
from ralph.recording.storyboard import Storyboard
from ralph.recording.theme import COLOURS, Colours, Theme

_BEGIN = "\x1b[?25l\x1b[?7l\x1b[2J"
"""No cursor, no wrapping: a player may count the columns of an emoji differently."""
_END = "\x1b[?7h\x1b[?25h"


def as_cast(board: Storyboard, theme: Theme = Theme.AUTO) -> str:
    """With the theme `auto`, a player uses its own colours."""
    header: dict[str, object] = {
        "version": 2,
        "width": board.size.columns,
        "height": board.size.rows,
        "timestamp": int(board.started),
        "duration": round(board.seconds, 3),
        "title": board.title,
    }
    if theme is not Theme.AUTO:
        header["theme"] = _theme(COLOURS[theme])
    return "".join(f"{json.dumps(line)}\n" for line in (header, *_events(board)))


def _theme(colours: Colours) -> dict[str, str]:
    c = colours
    palette = (c.border, c.red, c.green, c.yellow, c.blue, c.blue, c.cyan, c.dim)  # nothing is magenta
    return {"fg": c.text, "bg": c.background, "palette": ":".join(palette)}


def _events(board: Storyboard) -> Iterator[list[object]]:
    now = 0.0
    shown: tuple[Line, ...] = ((),) * board.size.rows
    start = _BEGIN
    for frame in board.frames:
        lines = frame.lines + ((),) * (board.size.rows - len(frame.lines))
        yield [round(now, 3), "o", start + _difference(shown, lines)]
        shown, start = lines, ""
        now += frame.seconds
    last = sum(1 for line in shown if line)
    yield [round(now, 3), "o", f"\x1b[{max(last, 1)};1H{_END}"]  # the last frame stays until here


def _difference(before: tuple[Line, ...], after: tuple[Line, ...]) -> str:
    return "".join(
        # Erased before it is written: after a row that is full, the last character would be erased.
        f"\x1b[{row};1H\x1b[2K{as_terminal_codes(line)}"
        for row, (old, line) in enumerate(zip(before, after, strict=True), 1)
        if old != line
    )
