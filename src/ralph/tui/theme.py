"""Signs, words and colours. A state is a sign and a word first; colour only repeats it."""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual.color import Color

THEMES = ("textual-dark", "textual-light", "ansi-dark", "ansi-light")
PLAIN = "ansi-dark"
"""Without colour: its colours are those of the terminal, and a filter takes them away."""

STATES = {
    "done": ("✓", "good"),
    "approved with open findings": ("◑", "warn"),
    "unproven": ("○", "warn"),
    "failed": ("✗", "bad"),
    "blocked": ("?", "warn"),
    "in progress": ("▶", "info"),
    "open": ("·", "dim"),
    "gone": ("–", "dim"),
}
"""State of a story → its sign and style."""

_VARIABLES = {
    "good": "text-success",
    "bad": "text-error",
    "warn": "text-warning",
    "info": "text-primary",
    "key": "text-accent",
}


def palette(variables: Mapping[str, str], *, is_plain: bool, is_ansi: bool) -> dict[str, Style]:
    """Name of a style → how it looks in this theme. Without colour, the cursor is reversed."""
    found = {
        "": Style(),
        "bold": Style(bold=True),
        "dim": Style(dim=True),
        "found": Style(underline=True, bold=True),
        "cursor": Style(reverse=True),
        "quiet": Style(bold=True),
    }
    if not is_ansi:
        white = Color.parse("#ffffff").rich_color
        found["cursor"] = Style(bold=True, color=white, bgcolor=Color.parse(variables["primary"]).rich_color)
        found["quiet"] = Style(bold=True, bgcolor=Color.parse(variables["panel"]).rich_color)
    for name, variable in _VARIABLES.items():
        found[name] = Style() if is_plain else Style(color=Color.parse(variables[variable]).rich_color)
    return found
