"""The colours of pictures, light and dark. All have a contrast of at least 4.5 to the background."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Theme(StrEnum):
    AUTO = "auto"
    """As the viewer's system is set."""
    LIGHT = "light"
    DARK = "dark"


class Colours(Struct, frozen=True):
    background: str
    border: str
    text: str
    dim: str
    red: str
    green: str
    yellow: str
    blue: str
    cyan: str


COLOURS = {
    Theme.LIGHT: Colours(
        background="#ffffff",
        border="#d1d9e0",
        text="#1f2328",
        dim="#59636e",
        red="#cf222e",
        green="#1a7f37",
        yellow="#9a6700",
        blue="#0969da",
        cyan="#1b7c83",
    ),
    Theme.DARK: Colours(
        background="#0d1117",
        border="#3d444d",
        text="#e6edf3",
        dim="#9198a1",
        red="#ff7b72",
        green="#3fb950",
        yellow="#d29922",
        blue="#58a6ff",
        cyan="#39c5cf",
    ),
}
