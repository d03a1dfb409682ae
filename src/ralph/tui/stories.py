"""The list of stories: two lines each, its state as a sign and a word."""

from __future__ import annotations

from collections.abc import Iterable

from ralph.core.text import one_line
from ralph.tui.rows import Row, row
from ralph.tui.theme import STATES
from ralph.views.columns import cells, fit
from ralph.views.run_view import StoryLine
from ralph.views.words import money

_SHORT = {"approved with open findings": "open findings"}


def story_rows(stories: Iterable[StoryLine], room: int) -> list[Row]:
    rows = []
    for story in stories:
        sign, style = STATES.get(story.state, ("·", ""))
        name = one_line(story.id, 16)
        title = fit(story.title, max(room - len(name) - 3, 6))
        rows.append(row((f"{sign} ", style), (name, "bold"), f" {title}", key=story.id, whole=story.title))
        word = "asks you" if story.is_asking else _SHORT.get(story.state, story.state)
        if story.state == "done" and story.grade:
            word = story.grade  # which says that it is done
        facts = [word]
        facts += [f"{story.attempts}×"] if story.attempts else []
        facts += [f"{story.open_findings} open"] if story.open_findings else []
        facts += [money(story.cost_usd, story.is_estimated)] if story.cost_usd is not None else []
        while cells(" · ".join(facts)) > room - 2 and len(facts) > 1:
            facts.pop()
        rows.append(row(("  ", ""), (fit(" · ".join(facts), room - 2), style), key=story.id))
    return rows
