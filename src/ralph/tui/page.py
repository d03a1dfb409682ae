"""A scrolled page of rows with a cursor. Only the rows on the screen are drawn, however many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from ralph.tui.rows import BLANK, Row, Rows

_WIDEST = 2000
_HEADINGS = 30
"""Rows that may follow one another without a key."""


class Page(ScrollView, can_focus=True):
    DEFAULT_CSS = """
    Page { height: 1fr; scrollbar-size: 0 1; overflow-x: auto; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        ("up,k", "move(-1)", "Up"),
        ("down,j", "move(1)", "Down"),
        ("pageup", "leap(-1)", "Page up"),
        ("pagedown", "leap(1)", "Page down"),
        ("home,g", "edge(0)", "First"),
        ("end,G", "edge(1)", "Last"),
        ("enter", "choose", "Open"),
    ]

    class Moved(Message):
        """The cursor is on another row because the user moved it."""

        def __init__(self, page: Page) -> None:
            super().__init__()
            self.page, self.row = page, page.current

    class Chosen(Moved): ...

    class Resized(Message):
        """Its rows are made for another width."""

    def __init__(self, name: str, *, follows: bool = False, starts: Callable[[Row], bool] | None = None) -> None:
        """`follows`: while the cursor is on the last row, it stays there as rows are added.

        `starts`: where the cursor starts. It then leaves out the rows without a key, which are headings.
        """
        super().__init__(id=name)
        self.rows: Rows = ()
        self.cursor = 0
        self.words = ""
        """What was searched for."""
        self._follows, self._starts = follows, starts
        self._of = ""

    @property
    def current(self) -> Row:
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else BLANK

    def show(self, rows: Rows, of: str = "") -> None:
        """`of`: what they are about. The cursor stays on the row it was on, by its key, unless that has changed."""
        was_last = self.cursor >= len(self.rows) - 1
        before, at = self.current, self.cursor
        same = [n for n in range(max(at - 20, 0), at) if self.rows[n].key == before.key] if before.key else []
        self.rows, is_new, self._of = rows, of != self._of, of
        if is_new:
            self.cursor = len(rows) - 1 if self._follows else 0
        elif self._follows and was_last:
            self.cursor = len(rows) - 1
        elif before.key and (at >= len(rows) or rows[at].key != before.key) and len(rows) < 20_000:
            self.cursor = next((n + len(same) for n, each in enumerate(rows) if each.key == before.key), at)
        if self._starts is not None and (is_new or self.cursor == 0):
            self.cursor = next((n for n, each in enumerate(rows[:_HEADINGS]) if self._starts(each)), 0)
        self.cursor = max(min(self.cursor, len(rows) - 1), 0)
        widest = max((_width(each) for each in rows), default=0) if len(rows) < 20_000 else _WIDEST
        self.virtual_size = Size(min(widest, _WIDEST), len(rows))
        if is_new:
            self.scroll_to(0, self.max_scroll_y if self._follows else 0, animate=False, force=True)
        elif self._follows and was_last:
            self.call_after_refresh(self._reveal)
        self.refresh()

    def select(self, key: str) -> None:
        """Put the cursor on the row with this key, without telling anyone."""
        if self.current.key != key and (at := next((n for n, r in enumerate(self.rows) if r.key == key), -1)) >= 0:
            self.cursor = at
            self._reveal()

    def go(self, at: int) -> None:
        """The user moves to this row."""
        at = max(min(at, len(self.rows) - 1), 0)
        if at != self.cursor:
            self.cursor = at
            self.post_message(self.Moved(self))
        self._reveal()

    def _reveal(self) -> None:
        """Scroll until the whole group of the cursor is seen."""
        first, last = self._group()
        self.scroll_to_region(Region(0, first, 1, last - first + 1), animate=False, force=True, x_axis=False)
        self.refresh()

    def _group(self) -> tuple[int, int]:
        """The first and last row with the key of the current one."""
        key, first, last = self.current.key, self.cursor, self.cursor
        while key and first > 0 and self.cursor - first < 100 and self.rows[first - 1].key == key:
            first -= 1
        while key and last + 1 < len(self.rows) and last - self.cursor < 100 and self.rows[last + 1].key == key:
            last += 1
        return first, last

    def _go_on(self, at: int, step: int) -> None:
        """Go to this row, or the next one in this direction that the cursor does not leave out."""
        if self._starts is None:
            self.go(at)
            return
        last = len(self.rows) - 1
        at = max(min(at, last), 0)
        near = [n for n in range(at, at + step * _HEADINGS, step) if 0 <= n <= last and self.rows[n].key]
        self.go(near[0] if near else self.cursor)
        if not near and step < 0:
            self.scroll_to(y=0, animate=False, force=True)

    def action_move(self, step: int) -> None:
        first, last = self._group()
        at = last + 1 if step > 0 else first - 1
        self._go_on(at, step) if 0 <= at < len(self.rows) else self._reveal()

    def action_leap(self, step: int) -> None:
        self._go_on(self.cursor + step * max(self.size.height - 1, 1), step)

    def action_edge(self, end: int) -> None:
        self._go_on(len(self.rows) - 1 if end else 0, -1 if end else 1)
        if not end:
            self.scroll_to(y=0, animate=False, force=True)

    def action_choose(self) -> None:
        self.post_message(self.Chosen(self))

    def on_click(self, event: events.Click) -> None:
        at = event.y + self.scroll_offset.y
        if at < len(self.rows):
            is_again = at == self.cursor
            self.go(at)
            if is_again or self.rows[at].folds:
                self.post_message(self.Chosen(self))

    def render_line(self, y: int) -> Strip:
        left, top = self.scroll_offset
        at, width, base = y + top, self.scrollable_content_region.width, self.rich_style
        if at >= len(self.rows):
            return Strip.blank(width, base)
        shown = self.rows[at]
        styles: dict[str, Style] = getattr(self.app, "styles_by_name", {})
        first, last = self._group()
        is_current = first <= at <= last and (bool(shown.key) or self.has_focus)
        over = styles.get("cursor" if self.has_focus else "quiet", Style()) if is_current else Style()
        is_found = bool(self.words) and shown.has(self.words)
        over += styles.get("found", Style()) if is_found else Style()
        kept = ("bold",) if over.reverse else styles  # a reversed colour would be a patch
        segments = [
            Segment(text, base + (styles.get(style, Style()) if style in kept else Style()) + over)
            for text, style in shown.parts
        ]
        strip = Strip(segments).crop_extend(left, left + width, base + over)
        if Strip(segments).cell_length <= left + width:
            return strip
        return Strip.join((strip.crop(0, width - 1), Strip([Segment("…", base + over)], 1)))  # → shows the rest

    def on_resize(self) -> None:
        self.post_message(self.Resized())

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self.refresh()


def _width(shown: Row) -> int:
    text = shown.text
    return len(text) if text.isascii() else Segment(text).cell_length
