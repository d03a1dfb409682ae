"""A forecast in words, the same in every view."""

from __future__ import annotations

from ralph.cli.words import duration, plural
from ralph.core.events import Foreseen
from ralph.core.forecast import ENOUGH


def foreseen(event: Foreseen) -> str:
    """What it will take in half of all cases, and in nine of ten."""
    half, most = (_figures(event, at) for at in (0, 1))
    return f"{half}; in nine of ten cases at most {most}" if half != most else half


def ground_for(event: Foreseen) -> str:
    """What the forecast stands on."""
    if not event.samples:
        return "a guess: no story has been finished here yet"
    more = ", and otherwise a guess" if event.samples < ENOUGH else ""
    return f"from {plural(event.samples, 'story')} of this workspace{more}"


def _figures(event: Foreseen, at: int) -> str:
    count = round(event.iterations[at])
    parts = [plural(count, "iteration"), duration(event.seconds[at])]
    if event.usd is not None:
        parts.append(f"${event.usd[at]:,.2f}")
    return ", ".join(parts)
