"""A forecast as text, the same in every view."""

from __future__ import annotations

from ralph.budget.forecast import ENOUGH
from ralph.cli.words import duration, plural
from ralph.core.events import Foreseen


def foreseen(event: Foreseen) -> str:
    """Each figure as a range from the median to the 90th percentile. Without a history, no forecast."""
    if event.samples < ENOUGH:
        return "no data yet"
    low, high = (_figures(event, at) for at in (0, 1))
    return ", ".join(a if a == b else f"{a.removesuffix(' iterations')}–{b}" for a, b in zip(low, high, strict=True))


def ground_for(event: Foreseen) -> str:
    """What the forecast is based on."""
    if event.samples < ENOUGH:
        return f"needs {ENOUGH} finished stories, {event.samples} so far"
    return f"90%: up to {_figures(event, 1)[-1]}; from {plural(event.samples, 'story')} of this workspace"


def _figures(event: Foreseen, at: int) -> list[str]:
    figures = [plural(round(event.iterations[at]), "iteration"), duration(event.seconds[at])]
    return [*figures, f"${event.usd[at]:,.2f}"] if event.usd is not None else figures
