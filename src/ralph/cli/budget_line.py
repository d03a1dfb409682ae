"""The line at the start of a run that compares the expected iterations with the cap."""

from __future__ import annotations

from ralph.cli.words import plural
from ralph.core.events import Foreseen
from ralph.core.limits import Limits


def budget_line(event: Foreseen, cap: int, limits: Limits) -> str:
    """`5 stories × about 3 iterations = about 15; cap 50 (5 stories × 10)`"""
    total = round(event.iterations[0])
    each = f"{event.iterations[0] / event.stories:.1f}".removesuffix(".0") if event.stories else "0"
    word = "iteration" if each == "1" else "iterations"
    line = f"{plural(event.stories, 'story')} × about {each} {word} = about {total}; cap {cap or 'none'}"
    if limits.per_story and not limits.max_iterations and cap != limits.max_allowed:
        line += f" ({plural(cap // limits.per_story, 'story')} × {limits.per_story})"
    if is_short(event, cap):
        line += f", which may be too low: {raise_cap(cap, limits)}"
    return line


def raise_cap(cap: int, limits: Limits) -> str:
    """What to do about a cap that is too low: names the setting that causes it, never a value another one would cap."""
    if cap == limits.max_allowed:
        return "raise max_allowed_iterations, or set it to 0"
    return "without max_iterations (-n) it follows from the plan"


def is_short(event: Foreseen, cap: int) -> bool:
    """Whether the cap would end the run before the plan is finished in at least half of the cases."""
    return 0 < cap < round(event.iterations[0])
