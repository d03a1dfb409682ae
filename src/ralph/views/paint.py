"""Colour in a line of text, as terminal codes. Where no colour is wanted they are taken out again.

All other text in a line is cleaned of control characters before, so that only these codes are in it.
"""

from __future__ import annotations

from ralph.core.lazy_pattern import lazy_pattern

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
_PAINT = lazy_pattern("\x1b\\[[0-9;]*m")


def paint(text: str, style: str) -> str:
    """`style`: one or several words, such as `bold red`."""
    return f"\x1b[{';'.join(_CODES[word] for word in style.split())}m{text}\x1b[0m"


def unpainted(text: str) -> str:
    return _PAINT.sub("", text)
