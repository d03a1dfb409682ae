"""SVG by hand: elements, escaping, colours.

Nothing here runs, loads or links anything, and there is no `style` attribute, so a strict content security policy
shows every picture. A colour is a class and, with the same meaning, a presentation attribute: any stylesheet overrides
it. The classes, each of one property (`COLOURS`):

fill     c-page c-text c-dim c-on-dark c-on-light, c-work c-review c-fix c-checks c-proof c-queue c-wait c-pause,
         c-accepted c-rejected c-other c-open, c-area c-band c-bar-a c-dot-a c-dot-b
stroke   c-grid c-axis c-hatch c-edge, c-line-a c-line-b c-line-dim c-mark

Themes: `light` and `dark` for a page that knows which; `auto` stands alone: light with a stylesheet for those who
prefer dark, and with its title drawn above; `page` is for a page that has the stylesheet itself (`stylesheet`): no
background, and light where the page says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from html import escape

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import one_line
from ralph.views.columns import cells

Attribute = str | float | None


class Theme(StrEnum):
    LIGHT = "light"
    DARK = "dark"
    AUTO = "auto"
    PAGE = "page"


COLOURS: dict[str, tuple[str, str, str]] = {
    "c-page": ("fill", "#ffffff", "#0d1117"),
    "c-text": ("fill", "#1f2328", "#e6edf3"),
    "c-dim": ("fill", "#59636e", "#9198a1"),
    "c-on-dark": ("fill", "#ffffff", "#ffffff"),
    "c-on-light": ("fill", "#111111", "#111111"),
    "c-grid": ("stroke", "#d9dee4", "#30363d"),
    "c-axis": ("stroke", "#818b98", "#656c76"),
    "c-hatch": ("stroke", "#ffffff", "#0d1117"),
    "c-edge": ("stroke", "#59636e", "#9198a1"),
    # Okabe and Ito: these stay apart for every kind of colour vision.
    "c-work": ("fill", "#0072b2", "#0072b2"),
    "c-review": ("fill", "#e69f00", "#e69f00"),
    "c-fix": ("fill", "#d55e00", "#e0691a"),
    "c-checks": ("fill", "#009e73", "#009e73"),
    "c-proof": ("fill", "#cc79a7", "#cc79a7"),
    "c-queue": ("fill", "#56b4e9", "#56b4e9"),
    "c-wait": ("fill", "#d0d7de", "#484f58"),
    "c-pause": ("fill", "#eaeef2", "#2d333b"),
    "c-accepted": ("fill", "#009e73", "#009e73"),
    "c-rejected": ("fill", "#d55e00", "#e0691a"),
    "c-other": ("fill", "#b6bec7", "#6e7681"),
    "c-open": ("fill", "#56b4e9", "#56b4e9"),
    "c-area": ("fill", "#0072b2", "#4c9bd6"),
    "c-band": ("fill", "#e69f00", "#e69f00"),
    "c-bar-a": ("fill", "#0072b2", "#4c9bd6"),
    "c-dot-a": ("fill", "#0072b2", "#4c9bd6"),
    "c-dot-b": ("fill", "#b35000", "#e69f00"),
    "c-line-a": ("stroke", "#0072b2", "#4c9bd6"),
    "c-line-b": ("stroke", "#b35000", "#e69f00"),
    "c-line-dim": ("stroke", "#59636e", "#9198a1"),
    "c-mark": ("stroke", "#1f2328", "#e6edf3"),
}
FONT = "system-ui, -apple-system, 'Segoe UI', 'DejaVu Sans', sans-serif"
SIZE = 11
"""Of the letters, in pixels."""
_CELL = 6.3
"""About the width of a letter of that size."""
_NOT_XML = lazy_pattern("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NAME = re.compile(r"[a-z0-9-]+")


class Svg(str):
    """Text that is already SVG. Any other text is escaped."""

    __slots__ = ()


def plain(text: str, width: int = 300) -> str:
    """Text from anywhere as an XML document may have it."""
    return _NOT_XML.sub("", one_line(text[: 20 * width], width))


def room_of(text: str) -> float:
    """About how many pixels a text takes."""
    return cells(text) * _CELL


def shortened(text: str, pixels: float) -> str:
    """Cut to so many pixels; empty if not even three letters have room."""
    text = plain(text)
    if room_of(text) <= pixels:
        return text
    while text and room_of(text) + _CELL > pixels:
        text = text[:-1]
    return f"{text.rstrip()}…" if len(text) > 2 else ""


def number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def element(tag: str, *inside: str, **attributes: Attribute) -> Svg:
    """`stroke_width` becomes `stroke-width`, `class_` becomes `class`; None is left out."""
    told = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{_value(value)}"'
        for name, value in attributes.items()
        if value is not None
    )
    content = "".join(part if isinstance(part, Svg) else escape(plain(part), quote=False) for part in inside)
    return Svg(f"<{tag}{told}>{content}</{tag}>" if content else f"<{tag}{told}/>")


def _value(value: str | float) -> str:
    return escape(plain(value, 100_000)) if isinstance(value, str) else number(value)


class Pen:
    """Draws in the colours of a theme. `name` begins the IDs, so that several pictures fit on one page."""

    def __init__(self, name: str, theme: Theme) -> None:
        assert _NAME.fullmatch(name)
        self.name = name
        self.theme = theme

    def colour(self, cls: str) -> dict[str, str]:
        what, light, dark = COLOURS[cls]
        return {"class_": cls, what: dark if self.theme is Theme.DARK else light}

    def rect(self, x: float, y: float, width: float, height: float, cls: str, *inside: str, **more: Attribute) -> Svg:
        return element("rect", *inside, x=x, y=y, width=width, height=height, **{**self.colour(cls), **more})

    def text(self, x: float, y: float, text: str, cls: str = "c-text", **more: Attribute) -> Svg:
        return element("text", text, x=x, y=y, **{**self.colour(cls), **more})

    def path(self, points: str, cls: str, *inside: str, **more: Attribute) -> Svg:
        filled: dict[str, Attribute] = {"fill": "none"} if COLOURS[cls][0] == "stroke" else {}
        return element("path", *inside, d=points, **{**filled, **self.colour(cls), **more})

    @property
    def head(self) -> float:
        """The room for the heading, which a page has itself, and for a label above the highest figure."""
        return 34 if self.theme is Theme.AUTO else 18

    def heading(self, title: str) -> list[Svg]:
        return [self.text(12, 15, title, font_weight="600")] if self.theme is Theme.AUTO else []

    def id(self, name: str) -> str:
        return f"{self.name}-{name}"

    def document(self, width: float, height: float, title: str, description: str, *body: Svg) -> str:
        """A whole document. `description` says the figures in words."""
        parts = [
            element("title", title, id=self.id("title")),
            element("desc", plain(description, 2000), id=self.id("desc")),
        ]
        if self.theme is Theme.AUTO:
            parts.append(element("style", Svg(f"@media(prefers-color-scheme:dark){{{''.join(_rules(2))}}}")))
        if self.theme is not Theme.PAGE:
            parts.append(self.rect(0, 0, width, height, "c-page"))
        return element(
            "svg",
            *parts,
            *body,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {number(width)} {number(height)}",
            width=width,
            height=height,
            role="img",
            aria_labelledby=f"{self.id('title')} {self.id('desc')}",
            font_family=FONT,
            font_size=SIZE,
        )


def _rules(at: int) -> Iterator[str]:
    for cls, colours in COLOURS.items():
        yield f".{cls}{{{colours[0]}:{colours[at]}}}"


def stylesheet() -> str:
    """For a page with pictures of the theme `page`: light, dark and on paper."""
    light, dark = ("".join(_rules(at)) for at in (1, 2))
    return f"{light}@media screen and (prefers-color-scheme:dark){{{dark}}}"
