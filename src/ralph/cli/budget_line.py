"""The line at the start of a run that sets what the open stories will take against the cap on iterations."""

from __future__ import annotations

from ralph.cli.words import plural
from ralph.core.events import Foreseen


def budget_line(event: Foreseen, cap: int) -> str:
    """`5 stories × about 3 iterations = about 15; cap 15`"""
    total = round(event.iterations[0])
    each = f"{event.iterations[0] / event.stories:.1f}".removesuffix(".0") if event.stories else "0"
    word = "iteration" if each == "1" else "iterations"
    line = f"{plural(event.stories, 'story')} × about {each} {word} = about {total}; cap {cap}"
    if is_short(event, cap):
        line += f", which may be too low: `ralph run -n {max(round(event.iterations[1]), total)}` is on the safe side"
    return line


def is_short(event: Foreseen, cap: int) -> bool:
    """In half of all cases the cap ends the run before the plan is finished."""
    return cap < round(event.iterations[0])
