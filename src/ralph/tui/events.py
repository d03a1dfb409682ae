"""All events of a run as rows, read from the journal a page at a time when they are looked at."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import overload

from ralph.tui.rows import Row, row
from ralph.views.run_view import EventLine, RunView
from ralph.views.words import clock

_PAGE = 100
_MOST_PAGES = 60
_BLOCK = 2000
"""Events that are searched between two looks at what the user wants now."""
_WORDS = re.compile(r"(?<=[a-z])(?=[A-Z])")


class Events(Sequence[Row]):
    """Rows above, then one for each event that has the words. A page that is not read yet is asked for."""

    def __init__(self, view: RunView, words: str, wanted: Callable[[], object]) -> None:
        self.view, self.words = view, words
        self.above: list[Row] = []
        self._wanted = wanted
        self._pages: dict[int, list[Row]] = {}
        self._missing: set[int] = set()
        self._found: list[int] = []
        """With words: the events that have them."""
        self._searched = 0
        self._turn = threading.Lock()
        self._reader = threading.get_ident()

    @property
    def total(self) -> int:
        return len(self._found) if self.words else self.view.count

    @property
    def is_searched(self) -> bool:
        """With words: whether all events were compared with them."""
        return bool(self.words) and self._searched >= self.view.count

    def __len__(self) -> int:
        return len(self.above) + self.total

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> list[Row]: ...
    def __getitem__(self, at: int | slice) -> Row | list[Row]:
        if isinstance(at, slice):
            return [self[number] for number in range(*at.indices(len(self)))]
        if at < 0 or at >= len(self):
            raise IndexError(at)
        above = self.above
        if at < len(above):
            return above[at]
        number, place = divmod(at - len(above), _PAGE)
        page = self._pages.get(number)
        if page is None or place >= len(page):
            if threading.current_thread() is not threading.main_thread():
                page = self._load(number)
            else:
                self._missing.add(number)
                self._wanted()
        return page[place] if page is not None and place < len(page) else row(("…", "dim"), key=f"?{at}")

    def read(self) -> bool:
        """Read what was asked for, and search on. Whether something has changed."""
        missing, self._missing = self._missing, set()
        for number in missing:
            self._load(number)
        return self._search() or bool(missing)

    def _search(self) -> bool:
        if not self.words or self._searched >= self.view.count:
            return False
        block = self.view.events(self._searched, _BLOCK)
        wanted = self.words.lower()
        self._found += [
            self._searched + number
            for number, event in enumerate(block)
            if wanted in f"{event.kind} {event.text}".lower()
        ]
        self._searched += len(block)
        if self._searched < self.view.count:
            self._wanted()
        return True

    def _load(self, number: int) -> list[Row]:
        with self._turn:
            first = number * _PAGE
            if self.words:
                chosen = self._found[first : first + _PAGE]
                events = [event for each in chosen for event in self.view.events(each, 1)]
            else:
                events = self.view.events(first, _PAGE)
            if len(self._pages) >= _MOST_PAGES:
                del self._pages[next(iter(self._pages))]
            self._pages[number] = list(map(event_row, events))
            return self._pages[number]

    def __iter__(self) -> Iterator[Row]:
        return (self[at] for at in range(len(self)))


def event_row(event: EventLine) -> Row:
    first, _, rest = event.text.partition("\n")
    more = f"  ({rest.count(chr(10)) + 1} more)" if rest else ""
    number = f"{event.iteration:>4} " if event.iteration else "     "
    text = first.strip() or _WORDS.sub(" ", event.kind).lower()
    return row(
        (f"{clock(event.t)} ", "dim"),
        (number, "info"),
        (text, "" if first else "dim"),
        (more, "dim"),
        key=f"v{event.seq}",
        folds=False,
    )
