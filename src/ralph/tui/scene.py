"""What is shown: the run, the selected story and attempt, and what the user has unfolded."""

from __future__ import annotations

from msgspec import Struct

from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.tui.rows import Row, row
from ralph.tui.source import Source
from ralph.views.attempts import Attempt
from ralph.views.columns import cells
from ralph.views.run_view import RunView, StoryLine
from ralph.views.words import STYLES, duration, money, tokens
from ralph.workspace.runs import Standing

_COLOURS = {"green": "good", "red": "bad", "yellow": "warn", "cyan": "info", "dim": "dim"}


class Scene(Struct, frozen=True, kw_only=True):
    source: Source
    story: StoryLine | None
    attempt: Attempt | None
    room: int
    """Columns."""
    now: float
    standing: Standing
    toggled: frozenset[str] = frozenset()
    """Keys of what is not folded or unfolded as usual."""

    @property
    def view(self) -> RunView:
        return self.source.view

    @property
    def is_running(self) -> bool:
        """Whether the attempt is."""
        attempt, live = self.attempt, self.standing in (Standing.RUNNING, Standing.PAUSED, Standing.WAITING)
        return live and attempt is not None and attempt.ended is None

    def is_open(self, key: str, usually: bool = False) -> bool:
        return (key in self.toggled) is not usually


def colour(style: str) -> str:
    """The name here for a colour of `views.words`."""
    return _COLOURS.get(style, "")


def mark(kind: Kind) -> tuple[str, str]:
    """The sign of a verdict, one column wide everywhere, and its style."""
    sign, style = STYLES[kind]
    return (sign if cells(sign) == 1 else "◷"), colour(style)


def attempt_head(scene: Scene) -> list[Row]:
    """Which attempt is shown, of how many, and how it ended."""
    attempt = scene.attempt
    if attempt is None:
        return [row(("nothing has been done for this story yet" if scene.story else "no iteration yet", "dim"))]
    own = [each.iteration for each in scene.view.attempts.of(attempt.story)]
    what = f"{attempt.mode.value} {one_line(attempt.story, 40)}".strip()
    place = f"{own.index(attempt.iteration) + 1} of {len(own)}" if attempt.iteration in own else ""
    name = row((what, "bold"), (f"  iteration {attempt.iteration}", "dim"))
    if len(own) > 1:
        name = row(*name.parts, (f" · {place} ", "dim"), ("[ ]", "key"))
    rows = [name]
    if attempt.ended is None:
        taken = duration((attempt.until or (scene.now if scene.is_running else scene.view.state.now)) - attempt.since)
        return [*rows, row((f"{'▶ running' if scene.is_running else '■ was cut off'} for {taken}", "info"))]
    sign, style = mark(attempt.ended.kind)
    facts = [duration(attempt.ended.seconds), *([tokens(attempt.tokens)] if attempt.tokens.total else [])]
    facts += [money(attempt.cost_usd, attempt.is_estimated)] if attempt.cost_usd is not None else []
    facts += [attempt.ended.grade] if attempt.ended.grade else []
    return [*rows, row((f"{sign} {attempt.verdict}", style), (f"  {' · '.join(facts)}", "dim"))]
