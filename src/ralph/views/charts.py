"""Charts of a run as SVG documents: the timeline, and stories, cost, tokens, acceptance and the forecast. Pure.

What is drawn is said in words as well, in `<desc>`. The classes of the colours are listed in `ralph.views.svg`.
"""

from __future__ import annotations

from collections.abc import Callable
from textwrap import wrap

from msgspec import Struct

from ralph.budget.forecast import ENOUGH
from ralph.core.events import Foreseen
from ralph.core.text import plural
from ralph.views.axes import Curve, Frame, figure_axis, figure_step, stairs, thinned, time_axis
from ralph.views.gantt import gantt
from ralph.views.run_view import Point, RunView
from ralph.views.svg import Pen, Svg, Theme, number, plain, room_of, shortened
from ralph.views.words import duration, money

_HEIGHT = 220
_TICKS = 5


class Figure(Struct, frozen=True):
    """A figure over time."""

    name: str
    title: str
    of: Callable[[Point], float]
    label: Callable[[float], str]
    told: Callable[[float], str]
    whole: bool = False
    foreseen: Callable[[Foreseen], tuple[float, float] | None] = lambda _: None
    """What the forecast adds to it until the end."""
    least: float = 1
    """The smallest figure at the upper edge."""


def _rate(point: Point) -> float:
    return 100 * point.accepted / point.iterations if point.iterations else 0


def _count(figure: float) -> str:
    """`950`, `12k`, `1.5M`"""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1000, "k")):
        if figure >= size:
            return f"{figure / size:.1f}".removesuffix(".0") + unit
    return f"{figure:.0f}"


def _dollars(usd: float) -> str:
    """`$0`, `$0.005`, `$0.25`, `$12`, `$1.5k`"""
    if usd >= 1000:
        return f"${_count(usd)}"
    if not usd or usd == round(usd):
        return f"${usd:.0f}"
    return f"${usd:.2f}" if round(usd, 2) == round(usd, 6) else f"${usd:.4f}".rstrip("0")


FIGURES = {
    figure.name: figure
    for figure in (
        Figure(
            "stories",
            "Stories done",
            lambda point: point.done,
            _count,
            lambda n: plural(round(n), "story"),
            whole=True,
            foreseen=lambda seen: (seen.stories, seen.stories),
        ),
        Figure(
            "cost",
            "Cost",
            lambda point: point.usd,
            _dollars,
            money,
            foreseen=lambda seen: seen.usd,
            least=0.01,
        ),
        Figure(
            "tokens",
            "Tokens",
            lambda point: point.tokens,
            _count,
            lambda n: f"{n:,.0f} tokens",
            whole=True,
            foreseen=lambda seen: seen.tokens,
            least=10,
        ),
        Figure("acceptance", "Accepted iterations", _rate, lambda n: f"{n:.0f}%", lambda n: f"{n:.0f}%", least=100),
    )
}


def curve_of(view: RunView, figure: Figure) -> Curve:
    """From the start of the run to its last record."""
    start = view.state.started_at
    points = view.points
    if figure.name == "acceptance":  # before the first iteration has ended there is no rate
        points = [point for point in points if point.iterations]
    if figure.name == "cost" and view.state.cost_usd is None:  # unknown is not $0
        points = []
    known = [(max(point.t - start, 0), figure.of(point)) for point in points]
    if not known:
        return []
    first = known[0][0] if figure.name == "acceptance" else 0.0
    return [(first, known[0][1]), *known, (max(view.state.now - start, known[-1][0]), known[-1][1])]


def _range(view: RunView, figure: Figure) -> tuple[tuple[float, float], tuple[float, float]] | None:
    """Seconds and figures until the end in half of the cases and in most; None: the run has ended, or nobody knows."""
    seen = view.state.forecast
    if seen is None or view.state.ended is not None or seen.samples < ENOUGH or not seen.stories:
        return None
    more = figure.foreseen(seen)
    return None if more is None else (seen.seconds, more)


def _over_time(figure: Figure) -> Callable[[RunView, int, Theme], str]:
    def draw(view: RunView, width: int = 720, theme: Theme = Theme.AUTO) -> str:
        return _chart(view, figure, width, theme)

    return draw


def _chart(view: RunView, figure: Figure, width: int, theme: Theme) -> str:
    pen, curve = Pen(figure.name, theme), curve_of(view, figure)
    if not curve:
        return _empty(pen, width, figure.title)
    (now, last), ahead = curve[-1], _range(view, figure)
    total = [(point.t - view.state.started_at, float(point.total)) for point in view.points]
    tops = [each for _, each in curve] + ([last + ahead[1][1]] if ahead else [])
    tops += [each for _, each in total] if figure.name == "stories" else []
    frame, axes = _framed(pen, width, figure, max(tops), max(now, now + ahead[0][1] if ahead else 0))
    body = [*axes, *(_band(pen, frame, now, last, *ahead) if ahead else [])]
    if figure.name == "stories":
        line = thinned([(0.0, total[0][1]), *total, (frame.seconds, total[-1][1])])
        body.append(pen.path(stairs(frame, line), "c-line-dim", stroke_width="1.5", stroke_dasharray="5 3"))
        body.append(pen.text(frame.left + 4, frame.y(total[0][1]) + 12, "in the plan", "c-dim"))
    body += _line(pen, frame, thinned(curve), "a")
    body.append(_end_label(pen, frame, now, last, figure.label(last), is_left=ahead is not None))
    return pen.document(width, _HEIGHT, figure.title, _told(view, figure, last, ahead), *body)


def _framed(pen: Pen, width: int, figure: Figure, top: float, seconds: float) -> tuple[Frame, list[Svg]]:
    top = max(top, figure.least)
    step = figure_step(top, _TICKS, whole=figure.whole)
    most = step * -(-top // step)
    steps = [at * step for at in range(round(most / step) + 1)]
    left = max(room_of(figure.label(each)) for each in steps) + 18
    frame = Frame(left, pen.head, max(width - left - 16, 50), _HEIGHT - pen.head - 26, max(seconds, 1), most)
    return frame, [*pen.heading(figure.title), *time_axis(pen, frame), *figure_axis(pen, frame, step, figure.label)]


def _line(pen: Pen, frame: Frame, curve: Curve, which: str, dash: str | None = None) -> list[Svg]:
    drawn = stairs(frame, curve)
    x, y = number(frame.x(curve[0][0])), number(frame.bottom)
    area = f"{drawn}V{y}H{x}Z"
    parts = [pen.path(drawn, f"c-line-{which}", stroke_width="2", stroke_linejoin="round", stroke_dasharray=dash)]
    return [pen.path(area, "c-area", fill_opacity="0.12"), *parts] if which == "a" and not dash else parts


def _band(
    pen: Pen, frame: Frame, now: float, last: float, seconds: tuple[float, float], more: tuple[float, float]
) -> list[Svg]:
    """From here to the end: most cases end within the band, half of them before its dashed line ends."""

    def at(later: float, added: float) -> str:
        return f"{number(frame.x(now + later))} {number(frame.y(last + added))}"

    (half, most), (low, high) = seconds, more
    band = f"M{at(0, 0)}L{at(half, high)}L{at(most, high)}L{at(most, low)}Z"
    line = f"M{at(0, 0)}L{at(half, low)}"
    return [
        pen.path(band, "c-band", fill_opacity="0.22"),
        pen.path(line, "c-line-b", stroke_width="1.5", stroke_dasharray="2 3"),
    ]


def _end_label(pen: Pen, frame: Frame, t: float, figure: float, label: str, *, is_left: bool = False) -> Svg:
    x, y = frame.x(t), frame.y(figure)
    is_left = is_left or x + room_of(label) + 8 > frame.right + 12
    return pen.text(
        x - 4 if is_left else x + 5, y - 6, label, font_weight="600", text_anchor="end" if is_left else None
    )


def _told(
    view: RunView, figure: Figure, last: float, ahead: tuple[tuple[float, float], tuple[float, float]] | None
) -> str:
    state = view.state
    told = f"{figure.title}: {figure.told(last)} after {duration(state.now - state.started_at)}"
    if figure.name == "stories":
        told = f"{state.done} of {plural(state.total, 'story')} done after {duration(state.now - state.started_at)}"
    elif figure.name == "acceptance":
        point = view.points[-1]
        told = f"{point.accepted} of {plural(point.iterations, 'iteration')} accepted, {figure.told(last)}"
    if ahead is None:
        return f"{told}."
    (half, most), (low, high) = ahead
    more = f", {figure.told(low)} to {figure.told(high)} more" if figure.name != "stories" else ""
    return f"{told}. Forecast: {duration(half)} to {duration(most)} until the end{more}."


def _empty(pen: Pen, width: int, title: str, why: str = "no figures yet") -> str:
    lines = wrap(why, max(int((width - 24) / room_of("x")), 20))
    told = [pen.text(12, pen.head + 6 + 16 * at, line, "c-dim") for at, line in enumerate(lines)]
    return pen.document(width, pen.head + 6 + 16 * len(lines), title, f"{why}.", *pen.heading(title), *told)


class Row(Struct, frozen=True):
    """One figure of the forecast: so far, and how much at the end in half of the cases and in most."""

    name: str
    so_far: float
    first: tuple[float, float] | None
    ahead: tuple[float, float] | None
    label: Callable[[float], str]


def forecast(view: RunView, width: int = 720, theme: Theme = Theme.AUTO) -> str:
    """What the run has used, and what it will use by its end; once it has ended, what was forecast at its start."""
    pen, title = Pen(f"forecast-{width}", theme), "Forecast"
    rows = list(filter(is_foreseen, forecast_rows(view)))
    if not rows:
        seen = view.state.first_forecast if view.state.ended else view.state.forecast
        known = f"{'there were' if view.state.ended else 'there are'} {seen.samples}" if seen else "none is known"
        return _empty(pen, width, title, f"no forecast: it needs {ENOUGH} finished stories of this workspace, {known}")
    left = max(room_of(row.name) for row in rows) + 20
    body, told, y = pen.heading(title), [], pen.head + 4
    for row in rows:
        most = max(row.so_far, *(row.ahead or ()), *(row.first or ()), 1e-9)
        frame = Frame(left, y, max(width - left - 16, 50), 16, most)
        body += _row(pen, frame, row)
        told.append(_row_told(row))
        y += 48
    body += _keys(pen, y - 4, width, rows)
    return pen.document(width, y + 16 + 18 * (width < 560), title, "; ".join(told) + ".", *body)


def forecast_rows(view: RunView) -> list[Row]:
    state = view.state
    seen = state.forecast if state.ended is None else None
    seen = seen if seen and seen.samples >= ENOUGH and seen.stories else None
    first = state.first_forecast
    first = first if first and first.samples >= ENOUGH and first.stories else None
    so_far = {
        "iterations": (float(state.count), _count),
        "seconds": (state.now - state.started_at, duration),
        "usd": (state.cost_usd or 0.0, money),
        "tokens": (float(state.tokens.total), _count),
    }
    rows = []
    for name, (used, label) in so_far.items():
        more: tuple[float, float] | None = getattr(seen, name, None)
        ahead = (used + more[0], used + more[1]) if more else None
        shown = {"seconds": "time", "usd": "cost"}.get(name, name)
        rows.append(Row(shown, used, getattr(first, name, None), ahead, label))
    return rows


def is_foreseen(row: Row) -> bool:
    return row.ahead is not None or row.first is not None


def _row(pen: Pen, frame: Frame, row: Row) -> list[Svg]:
    """The scale of a row is its own: `Frame.seconds` is its highest figure."""
    drawn = [pen.text(frame.left - 8, frame.top + 12, row.name, "c-dim", text_anchor="end")]
    if row.ahead:
        half, most = map(frame.x, row.ahead)
        drawn.append(pen.rect(frame.left, frame.top, most - frame.left, 16, "c-band", fill_opacity="0.22"))
        drawn.append(pen.rect(frame.left, frame.top, half - frame.left, 16, "c-band", fill_opacity="0.45"))
    drawn.append(pen.rect(frame.left, frame.top, max(frame.x(row.so_far) - frame.left, 1), 16, "c-bar-a"))
    if row.first:
        low, high = map(frame.x, row.first)
        y = number(frame.top + 8)
        tall = f"{number(frame.top - 3)}v22"
        marks = f"M{number(low)} {tall}M{number(low)} {y}H{number(high)}M{number(high)} {tall}"
        drawn.append(pen.path(marks, "c-mark", stroke_width="1.5"))
    return [*drawn, pen.text(frame.left, frame.top + 30, shortened(_row_told(row, short=True), frame.width + 10))]


def _row_told(row: Row, *, short: bool = False) -> str:
    parts = [f"{row.label(row.so_far)} so far" if row.ahead else row.label(row.so_far)]
    if row.ahead:
        parts.append(f"{row.label(row.ahead[0])} to {row.label(row.ahead[1])} at the end")
    if row.first:
        parts.append(f"first forecast {row.label(row.first[0])} to {row.label(row.first[1])}")
    return f"{'' if short else f'{row.name}: '}{', '.join(parts)}"


def _keys(pen: Pen, y: float, width: int, rows: list[Row]) -> list[Svg]:
    words = ["solid: so far"]
    words += ["shaded: 50% and 90% of the cases"] if any(row.ahead for row in rows) else []
    words += ["bracket: first forecast"] if any(row.first for row in rows) else []
    lines = (
        ["; ".join(words)] if width >= 560 else ["; ".join(words[:-1]) or words[0], words[-1] if len(words) > 1 else ""]
    )
    return [pen.text(12, y + 8 + 18 * at, line, "c-dim") for at, line in enumerate(lines) if line]


def compare(first: RunView, second: RunView, name: str, width: int = 720, theme: Theme = Theme.AUTO) -> str:
    """Two runs in one chart, each from its own start. `name`: stories, cost, tokens or acceptance."""
    figure = FIGURES[name]
    pen, curves = Pen(f"compare-{name}", theme), [curve_of(view, figure) for view in (first, second)]
    known = [curve for curve in curves if curve]
    if not known:
        return _empty(pen, width, figure.title)
    top = max(each for curve in known for _, each in curve)
    frame, body = _framed(pen, width, figure, top, max(curve[-1][0] for curve in known))
    told, keys = [], []
    for which, view, curve in zip("ab", (first, second), curves, strict=True):
        label = plain(view.first.run if view.first else "", 40) or f"run {which}"
        dash = "6 3" if which == "b" else None
        keys.append((f"{which}: {label}", which, dash))
        if not curve:
            keys[-1] = f"{which}: {label}, no figures", which, dash
            told.append(f"{label}: no figures")
            continue
        body += _line(pen, frame, thinned(curve), which, dash)
        end = curve[-1]
        body.append(_end_label(pen, frame, *end, f"{which}: {figure.label(end[1])}"))
        told.append(f"{label}: {figure.told(end[1])} after {duration(end[0])}")
    for at, (label, which, dash) in enumerate(keys):
        y = _HEIGHT + 8 + 18 * at
        body.append(pen.path(f"M12 {y}h22", f"c-line-{which}", stroke_width="2", stroke_dasharray=dash))
        body.append(pen.text(40, y + 4, label, "c-dim"))
    return pen.document(width, _HEIGHT + 38, f"{figure.title} of two runs", "; ".join(told) + ".", *body)


Chart = Callable[[RunView, int, Theme], str]
CHARTS: dict[str, Chart] = {
    "gantt": gantt,
    **{name: _over_time(figure) for name, figure in FIGURES.items()},
    "forecast": forecast,
}
"""What `ralph serve` and `ralph report --html` show: name → a function of a run, a width in pixels and a theme."""
TITLES = {"gantt": "Timeline", **{name: figure.title for name, figure in FIGURES.items()}, "forecast": "Forecast"}
COMPARED = tuple(FIGURES)
"""The names `compare` knows."""
