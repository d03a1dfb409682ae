"""The figures of each chart as a table: for those who cannot see it, and for those who want the numbers. Pure."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ralph.core.text import one_line
from ralph.views.axes import elapsed, thinned
from ralph.views.charts import FIGURES, curve_of, forecast_rows, is_foreseen
from ralph.views.run_view import RunView
from ralph.views.words import duration

_MOST_ROWS = 40
"""Of a figure over time."""
_MOST_ITERATIONS = 500

Row = tuple[str, ...]


class Table(Struct, frozen=True):
    head: Row
    rows: tuple[Row, ...]
    left_out: int = 0
    """Rows that are not shown."""


def table_of(view: RunView, name: str) -> Table:
    """`name`: one of `charts.CHARTS`."""
    return _TABLES[name](view) if name in _TABLES else _figure(view, name)


def _timeline(view: RunView) -> Table:
    now, start = view.state.now, view.state.started_at
    attempts = list(view.attempts.by_iteration.values())
    rows = tuple(
        (
            str(each.iteration),
            one_line(each.story, 60),
            each.mode.value,
            *((str(each.worker),) if view.state.is_parallel else ()),
            elapsed(each.since - start),
            duration((each.until or now) - each.since),
            each.verdict or "not ended",
        )
        for each in attempts[-_MOST_ITERATIONS:]
    )
    worker = ("worker",) if view.state.is_parallel else ()
    head = ("iteration", "story", "what", *worker, "started after", "took", "verdict")
    return Table(head, rows, len(attempts) - len(rows))


def _figure(view: RunView, name: str) -> Table:
    figure = FIGURES[name]
    curve = thinned(curve_of(view, figure), _MOST_ROWS)
    changes = [each for at, each in enumerate(curve) if not at or at == len(curve) - 1 or each[1] != curve[at - 1][1]]
    return Table(("after", figure.title.lower()), tuple((duration(t), figure.told(value)) for t, value in changes))


def _forecast(view: RunView) -> Table:
    head = ("", "so far", "at the end: half of the cases", "at the end: 90% of the cases", "first forecast")
    rows = []
    for row in filter(is_foreseen, forecast_rows(view)):
        ahead = tuple(map(row.label, row.ahead)) if row.ahead else ("", "")
        first = " to ".join(map(row.label, row.first)) if row.first else ""
        rows.append((row.name, row.label(row.so_far), *ahead, first))
    return Table(head, tuple(rows))


_TABLES: dict[str, Callable[[RunView], Table]] = {"gantt": _timeline, "forecast": _forecast}
