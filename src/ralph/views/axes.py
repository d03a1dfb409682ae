"""The frame of a chart: scales, ticks of time and of figures, and curves thinned out for the screen. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from msgspec import Struct

from ralph.views.svg import Pen, Svg, number, room_of

Curve = Sequence[tuple[float, float]]
"""A time and a figure each, in order."""
MOST_POINTS = 400
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400)
_DAY = 86400


class Frame(Struct, frozen=True):
    """Where the figures are drawn, in pixels, and what is at its edges. Times count from the start of the run."""

    left: float
    top: float
    width: float
    height: float
    seconds: float
    most: float = 1

    @property
    def bottom(self) -> float:
        return self.top + self.height

    @property
    def right(self) -> float:
        return self.left + self.width

    def x(self, seconds: float) -> float:
        return self.left + min(max(seconds / self.seconds, 0), 1) * self.width

    def y(self, figure: float) -> float:
        return self.bottom - min(max(figure / self.most, 0), 1) * self.height


def time_step(seconds: float, pixels: float) -> float:
    """The distance of two ticks that leaves room for their labels."""
    least = seconds * 64 / max(pixels, 1)
    step = next((step for step in _STEPS if step >= least), 0)
    return step or _DAY * figure_step(least / _DAY, 1, whole=True)


def figure_step(most: float, ticks: int, *, whole: bool = False) -> float:
    """1, 2 or 5 times a power of ten, so that there are at most so many ticks."""
    least = max(most / max(ticks, 1), 1e-9)
    power = 10.0 ** math.floor(math.log10(least))
    step = next(step * power for step in (1, 2, 5, 10) if step * power >= least * 0.999999)
    return max(step, 1.0) if whole else step


def elapsed(seconds: float) -> str:
    """`40 s`, `5 m`, `2 m 30 s`, `1 h 30 m`, `2 d`, `1 d 6 h`: the label of a tick."""
    whole = round(seconds)
    parts = ((whole // _DAY, "d"), (whole % _DAY // 3600, "h"), (whole % 3600 // 60, "m"), (whole % 60, "s"))
    named = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(named[:2]) if named else "0"


def time_axis(pen: Pen, frame: Frame) -> list[Svg]:
    step, drawn = time_step(frame.seconds, frame.width), []
    for at in range(int(frame.seconds / step + 1e-6) + 1):
        x, label = frame.x(at * step), elapsed(at * step)
        drawn.append(pen.path(f"M{number(x)} {number(frame.top)}V{number(frame.bottom)}", "c-grid"))
        is_last = x + room_of(label) / 2 > frame.right + 6
        drawn.append(
            pen.text(
                min(x, frame.right + 6) if is_last else x,
                frame.bottom + 15,
                label,
                "c-dim",
                text_anchor="end" if is_last else "start" if not at else "middle",
            )
        )
    return drawn


def figure_axis(pen: Pen, frame: Frame, step: float, label: Callable[[float], str]) -> list[Svg]:
    drawn = []
    for at in range(int(frame.most / step + 1e-6) + 1):
        y = frame.y(at * step)
        drawn.append(pen.path(f"M{number(frame.left)} {number(y)}H{number(frame.right)}", "c-grid"))
        drawn.append(pen.text(frame.left - 6, y + 4, label(at * step), "c-dim", text_anchor="end"))
    return drawn


def thinned(curve: Curve, most: int = MOST_POINTS) -> Curve:
    """At most so many points, with the highest and the lowest of every stretch of time among them."""
    if len(curve) <= most:
        return curve
    start, end = curve[0][0], curve[-1][0]
    buckets = max((most - 2) // 2, 1)
    width = (end - start) / buckets or 1
    found: dict[int, tuple[tuple[int, float], tuple[int, float]]] = {}
    for at, (t, figure) in enumerate(curve):
        bucket = min(int((t - start) / width), buckets - 1)
        low, high = found.get(bucket, ((at, figure), (at, figure)))
        found[bucket] = (min(low, (at, figure), key=_figure), (at, figure) if figure >= high[1] else high)
    kept = sorted({0, len(curve) - 1, *(at for pair in found.values() for at, _ in pair)})
    return [curve[at] for at in kept]


def _figure(point: tuple[int, float]) -> float:
    return point[1]


def stairs(frame: Frame, curve: Curve) -> str:
    """A path that keeps each figure until the next one."""
    drawn = []
    for at, (t, figure) in enumerate(curve):
        x, y = number(frame.x(t)), number(frame.y(figure))
        drawn.append(f"H{x}V{y}" if at else f"M{x} {y}")
    return "".join(drawn)
