"""An animated SVG: no script, no font and no link, so that it also moves inside an `<img>`.

The frames are stacked on a strip that is moved behind a window. What frames have in common is written once: a row, and
the rows above the panel. The strip rests at the last frame, which is what is seen where nothing moves.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape

from ralph.recording.spans import Line
from ralph.recording.storyboard import Frame, Storyboard
from ralph.recording.theme import COLOURS, Colours, Theme
from ralph.views.columns import cells

_CHARACTER = 8.4
_ROW = 18
_BASELINE = 14
_FONT = 14
_MARGIN = 16
_TOP = 40
_BOTTOM = 12
_CLASSES = {"1": "b", "2": "d", "31": "r", "32": "g", "33": "y", "34": "l", "36": "c"}
_FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono','Liberation Mono',monospace"
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BLOCKS = re.compile("[█░▒]")


def as_svg(board: Storyboard, theme: Theme = Theme.AUTO) -> str:
    parts = _Parts()
    height = board.size.rows * _ROW
    frames = [parts.frame(frame, number * height) for number, frame in enumerate(board.frames)]
    strip = f'<g id="strip" transform="translate(0,{-height * (len(frames) - 1)})">'
    style = f"{_style(theme)}{_animation(board, height)}"
    return "\n".join(
        (*_window(board, style), f"<defs>{''.join(parts.definitions)}</defs>", strip, *frames, "</g>", "</svg></svg>\n")
    )


def as_still(board: Storyboard, frame: Frame, theme: Theme) -> str:
    """One frame as a picture that does not move."""
    parts = _Parts()
    shown = parts.frame(frame, 0)
    defined = f"<defs>{''.join(parts.definitions)}</defs>"
    return "\n".join((*_window(board, _style(theme)), defined, shown, "</svg></svg>\n"))


def _window(board: Storyboard, style: str) -> Iterator[str]:
    """The frame of a terminal window, up to where its content begins."""
    inner, rows = round(board.size.columns * _CHARACTER), board.size.rows * _ROW
    width, height = inner + 2 * _MARGIN, rows + _TOP + _BOTTOM
    title = _escaped(board.title)
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' role="img" aria-label="{title}" font-family="{_FONTS}" font-size="{_FONT}" xml:space="preserve">'
    )
    yield f"<title>{title}</title>"
    yield f"<style>{style}</style>"
    yield f'<rect class="w" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>'
    yield "".join(f'<circle class="o" cx="{_MARGIN + 5 + 18 * n}" cy="18" r="5"/>' for n in range(3))
    yield f'<text class="d" x="{width / 2:g}" y="23" text-anchor="middle">{title}</text>'
    yield f'<svg x="{_MARGIN}" y="{_TOP}" width="{inner}" height="{rows}">'


class _Parts:
    """What frames share, written once and used by its name."""

    def __init__(self) -> None:
        self.definitions: list[str] = []
        self._names: dict[object, str] = {}

    def frame(self, frame: Frame, top: int) -> str:
        log = self._used(frame.log, self._block(frame.log), 0) if any(frame.log) else ""
        place = f' transform="translate(0,{top})"' if top else ""
        return f"<g{place}>{log}{self._block(frame.panel, len(frame.log))}</g>"

    def _block(self, lines: Sequence[Line], first: int = 0) -> str:
        rows = ((number * _ROW + _BASELINE, line) for number, line in enumerate(lines, first) if line)
        return "".join(self._used(line, _text(line), y) for y, line in rows)

    def _used(self, key: object, content: str, y: int) -> str:
        if (name := self._names.get(key)) is None:
            name = self._names[key] = f"p{len(self._names)}"
            self.definitions.append(f'<g id="{name}">{content}</g>')
        return f'<use href="#{name}" y="{y}"/>' if y else f'<use href="#{name}"/>'


def _text(line: Line) -> str:
    """Each span has its place and its width, so that columns stay columns with any font."""
    column, parts = 0, []
    for codes, text in line:
        shown = text.strip(" ")
        x = (column + len(text) - len(text.lstrip(" "))) * _CHARACTER
        column += cells(text)
        if not shown:
            continue
        classes = " ".join(_CLASSES[code] for code in codes.split(";") if code in _CLASSES)
        width = f' textLength="{cells(shown) * _CHARACTER:g}"' if len(shown) > 1 else ""
        stretch = ' lengthAdjust="spacingAndGlyphs"' if width and _BLOCKS.search(shown) else ""
        named = f' class="{classes}"' if classes else ""
        parts.append(f'<text{named} x="{x:g}"{width}{stretch}>{_escaped(shown)}</text>')
    return "".join(parts)


def _escaped(text: str) -> str:
    """Many fonts have no pause sign, and others draw it as an emoji of two columns."""
    return escape(_NOT_XML.sub("\ufffd", text.replace("⏸", "‖")), quote=True)


def _style(theme: Theme) -> str:
    # A right-to-left text stays where it is, as in a terminal: it must not reorder the line around it.
    shared = "text{white-space:pre;direction:ltr;unicode-bidi:bidi-override}.b{font-weight:700}"
    if theme is Theme.AUTO:
        light, dark = _colours(COLOURS[Theme.LIGHT]), _colours(COLOURS[Theme.DARK])
        return f"{shared}{light}@media (prefers-color-scheme:dark){{{dark}}}"
    return shared + _colours(COLOURS[theme])


def _colours(colours: Colours) -> str:
    fills = zip("drgylc", (getattr(colours, name) for name in _NAMES), strict=True)
    classes = "".join(f".{name}{{fill:{colour}}}" for name, colour in fills)
    return (
        f"text{{fill:{colours.text}}}.w{{fill:{colours.background};stroke:{colours.border}}}"
        f".o{{fill:{colours.border}}}{classes}"
    )


_NAMES = ("dim", "red", "green", "yellow", "blue", "cyan")


def _animation(board: Storyboard, height: int) -> str:
    total, now, steps = board.seconds, 0.0, []
    for number, frame in enumerate(board.frames):
        steps.append(f"{now / total * 100:.6g}%{{transform:translateY({-height * number}px)}}")
        now += frame.seconds
    steps.append(f"to{{transform:translateY({-height * (len(board.frames) - 1)}px)}}")
    return (
        f"#strip{{animation:play {total:g}s step-end infinite}}@keyframes play{{{''.join(steps)}}}"
        "@media (prefers-reduced-motion:reduce){#strip{animation:none}}"
    )
