"""What a plan loses in another layout: one line per field, with the stories affected."""

from __future__ import annotations

from collections.abc import Iterable

from ralph.cli.output import note
from ralph.core.text import one_line
from ralph.plans.losses import Fate, Loss

_WORDS = {
    Fate.LOST: "lost",
    Fate.CHANGED: "changed",
    Fate.FILLED: "filled in",
    Fate.RENAMED: "renamed",
    Fate.BESIDE: "kept in the state folder",
}
_SHOWN = 8


def show_losses(found: Iterable[Loss]) -> None:
    groups: dict[tuple[Fate, str, bool], list[Loss]] = {}
    for loss in found:
        groups.setdefault((loss.fate, loss.field, bool(loss.story)), []).append(loss)
    if not groups:
        note("nothing is lost")
    for (fate, field, of_story), losses in groups.items():
        style = "yellow" if fate is Fate.LOST else ""
        if of_story:
            note(f"{_WORDS[fate]}: {field.replace('_', ' ')} of {_stories(losses)}", style)
        else:
            detail = f" ({one_line(losses[0].detail, 100)})" if losses[0].detail else ""
            note(f"{_WORDS[fate]}: {field} of the plan{detail}", style)


def _stories(losses: list[Loss]) -> str:
    shown = [
        f"{one_line(x.story, 60)} ({one_line(x.detail, 60)})" if x.detail else one_line(x.story, 60) for x in losses
    ]
    more = f" and {len(shown) - _SHOWN} more; --json lists them all" if len(shown) > _SHOWN else ""
    return ", ".join(shown[:_SHOWN]) + more
