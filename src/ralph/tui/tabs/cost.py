"""Cost: by story and by iteration, what is foreseen, and how much room the limits leave."""

from __future__ import annotations

from collections.abc import Iterator

from ralph.core.agent import Tokens
from ralph.core.text import one_line
from ralph.tui.rows import BLANK, Row, Rows, head, row
from ralph.tui.scene import Scene
from ralph.views.columns import fit, pad
from ralph.views.documents import LimitLine, limit_lines
from ralph.views.run_view import RunView
from ralph.views.words import duration, foreseen, ground_for, money, tokens

_MOST = 200
_BAR = 12
_WIDE = 80
"""Columns from which there is room for everything."""


def rows(scene: Scene) -> Rows:
    return list(_rows(scene))


def _rows(scene: Scene) -> Iterator[Row]:
    state = scene.view.state
    spent = money(state.cost_usd, state.is_estimated, state.unknown_costs)
    yield head(spent, f"{state.tokens.total:,} tokens, {duration(state.agent_seconds)} of agents")
    if state.is_estimated:
        yield row(("~ a part is estimated at list prices", "dim"))
    if state.unknown_costs:
        yield row(("+? the cost of some sessions is unknown", "dim"))
    if state.forecast is not None and state.done < state.total:
        yield row("remaining: ", (foreseen(state.forecast), "bold"))
        yield row((f"  {ground_for(state.forecast)}", "dim"))
    yield BLANK
    yield head("Limits", "the next one to be reached first")
    lines = limits(scene.view, scene.now)
    for line in lines:
        share = min(line.used / line.most, 1)
        width = _BAR if scene.room >= _WIDE else _BAR // 2
        bar = "█" * round(share * width)
        style = "bad" if share >= 0.9 else "warn" if share >= 0.7 else "good"
        yield row(
            pad(line.what, min(scene.room - width - 23, 30)),
            " ",
            (f"{bar:░<{width}}", style),
            f" {used_of(line)}",
            whole=line.what,
        )
    if not lines:
        yield row(("no limit is set", "dim"))
    yield from _by_story(scene)
    yield from _by_iteration(scene)


def _by_story(scene: Scene) -> Iterator[Row]:
    stories = [story for story in scene.view.stories() if story.attempts]
    yield BLANK
    yield head("By story")
    is_wide = scene.room >= _WIDE
    most = max((story.cost_usd or 0 for story in stories), default=0) or 1
    for story in sorted(stories, key=lambda each: -(each.cost_usd or 0))[:_MOST]:
        bar = "█" * round(_BAR * (story.cost_usd or 0) / most)
        count = tokens(Tokens(input=story.tokens)).removesuffix(" tokens")
        figures = f"{count:>7} {duration(story.seconds):>9} {story.attempts:>3}×"
        yield row(
            (pad(f"{one_line(story.id, 20)} {story.title}", max(scene.room - (48 if is_wide else 32), 12)), ""),
            (f" {money(story.cost_usd, story.is_estimated):>8} ", "bold"),
            (f"{bar:<{_BAR}}" if is_wide else "", "info"),
            (figures, "dim"),
            whole=f"{story.id} {story.title}",
        )


def _by_iteration(scene: Scene) -> Iterator[Row]:
    yield BLANK
    yield head("By iteration")
    is_wide = scene.room >= _WIDE
    for attempt in list(scene.view.attempts.by_iteration.values())[-_MOST:][::-1]:
        what = f"{attempt.mode.value} {one_line(attempt.story, 24)} {attempt.verdict}"
        by = ", ".join(dict.fromkeys(one_line(each.model or each.agent, 30) for each in attempt.sessions))
        yield row(
            pad(what, max(scene.room - (56 if is_wide else 26), 12)),
            (f" {money(attempt.cost_usd, attempt.is_estimated):>12} ", "bold"),
            (f"{attempt.tokens.total:>10,}{f'  {fit(by, 30)}' if is_wide else ''}", "dim"),
            key=f"i{attempt.iteration}",
            whole=f"{attempt.story} {what} {by}",
        )


def limits(view: RunView, now: float) -> list[LimitLine]:
    return limit_lines(view.history, view.first.limits, now) if view.first else []


def used_of(line: LimitLine) -> str:
    """`3 of 20`, `$0.42 of $5.00`"""
    match line.unit:
        case "usd":
            return f"${line.used:.2f} of ${line.most:.2f}"
        case "seconds":
            return f"{duration(line.used)} of {duration(line.most)}"
        case "share":
            return f"{line.used:.0%}"
        case "tokens":
            return f"{line.used:,.0f} of {line.most:,.0f} tokens"
    return f"{line.used:g} of {line.most:g}"
