"""A run on a terminal: a live panel over the lines that have become history."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ralph.cli.forecast_words import foreseen
from ralph.cli.plain_view import describe, position
from ralph.cli.show import MARKS
from ralph.cli.words import clock, duration, money, tokens
from ralph.core.events import AgentSaid, IterationStarted, Record
from ralph.core.history import History, fold
from ralph.core.limits import Limits, OnStuck
from ralph.core.plan import Mode, State
from ralph.core.spending import figure, rooms
from ralph.core.streak import Streak
from ralph.core.text import one_line
from ralph.journal.run_state import RunState

if TYPE_CHECKING:
    from rich.console import RenderableType

_TOOLS = 4
_STORIES = 6


class LiveView:
    """Finished lines scroll away above; the panel below shows what is going on. Use as a context manager."""

    def __init__(self, limits: Limits, *, verbose: bool = False, console: Console | None = None) -> None:
        self._verbose = verbose
        self._state = RunState()
        self._history = History()
        self._limits = limits
        self._console = console or Console(highlight=False)
        self._live = self._new_live()

    def _new_live(self) -> Live:
        return Live(
            self,
            console=self._console,
            refresh_per_second=8,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=True,
        )

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """While somebody is asked something."""
        self._live.stop()
        try:
            yield
        finally:
            self._live = self._new_live()  # one that has been stopped would draw over what was written since
            self._live.start()

    def __call__(self, record: Record) -> None:
        self._state.add(record)
        self._history = fold(self._history, record.event, record.t)
        if isinstance(record.event, AgentSaid) and not self._verbose:
            return
        line = describe(record, self._state, verbose=self._verbose, room=max(self._console.width - 40, 20))
        if line:
            stamp = Text(clock(record.t) + " ", style="dim")
            self._console.print(stamp + Text.from_ansi(line))
        if isinstance(record.event, IterationStarted):
            self._live.refresh()

    def __rich__(self) -> RenderableType:
        state = self._state
        if state.started is None or state.ended is not None:
            return Text("")
        now = time.time()
        parts: list[RenderableType] = [Text(""), self._progress(now)]
        if state.paused_since is not None:
            parts.append(self._paused(now))
        elif state.waiting:
            parts.append(self._waiting(now))
        elif state.current:
            parts.append(self._iteration(now))
        parts.append(self._stories())
        parts.append(self._guards())
        if state.forecast and state.forecast.samples:
            told = f"  still to come: {foreseen(state.forecast)}"
            parts.append(Text(told, style="dim", no_wrap=True, overflow="ellipsis"))
        # Not up to the edge: a terminal that is made narrower would wrap every line.
        return Padding(Group(*parts), (0, 1), expand=False)

    def _progress(self, now: float) -> RenderableType:
        state = self._state
        row = Table.grid(padding=(0, 2))
        bar = ProgressBar(total=max(state.total, 1), completed=state.done, width=30, complete_style="green")
        facts = [duration(now - state.started_at), tokens(state.tokens)]
        if state.cost_usd is not None:
            facts.append(money(state.cost_usd))
        done = Text(f"{state.done}/{state.total} stories", style="bold", no_wrap=True)
        row.add_row(bar, done, Text(" · ".join(facts), style="dim", no_wrap=True, overflow="ellipsis"))
        return row

    def _iteration(self, now: float) -> RenderableType:
        state = self._state
        assert state.current is not None
        current = state.current
        text = Text(no_wrap=True, overflow="ellipsis")
        text.append(f"▶ {current.mode.value} ", style="bold cyan")
        text.append(f"{one_line(current.story)} {one_line(current.title, 60)}", style="bold")
        place = position(current, state).replace(" of ", "/").replace("(iteration ", "(number ")
        text.append(f"\n  iteration {place}, ", style="dim")
        text.append(duration(now - state.current_since), style="dim")
        if current.choice:
            text.append(f", by {one_line(current.choice, 60)}", style="dim")
        if state.wish.is_any:
            word = "stops" if state.wish.stop else "pauses"
            text.append(f"\n  {word} when this iteration is over", style="yellow")
        if state.retry:
            text.append(f"\n  the client tries again ({state.retry.attempt})", style="yellow")
        for tool in list(state.tools)[-_TOOLS:]:
            text.append(f"\n  ⚙ {one_line(tool.summary or tool.name, 200)}", style="dim")
        for check in list(state.checks)[-_TOOLS:]:
            style = "green" if check.result.passed else "red"
            text.append(f"\n  {'✓' if check.result.passed else '✗'} {one_line(check.result.name, 200)}", style=style)
        return text

    def _waiting(self, now: float) -> RenderableType:
        assert self._state.waiting is not None
        left = duration(max(self._state.waiting.until - now, 0) + 0.999)
        said = f"⏸ {left} left: {one_line(self._state.waiting.why)} (Ctrl-C stops)"
        return Text(said, style="yellow", no_wrap=True, overflow="ellipsis")

    def _paused(self, now: float) -> RenderableType:
        since = duration(max(now - (self._state.paused_since or now), 0))
        said = f"⏸ paused for {since}: `ralph resume` or Ctrl-\\ goes on (Ctrl-C stops)"
        return Text(said, style="yellow", no_wrap=True, overflow="ellipsis")

    def _stories(self) -> RenderableType:
        stories = list(self._state.stories.values())
        at = next((n for n, s in enumerate(stories) if s.state is not State.DONE), len(stories))
        start = max(0, min(at - 2, len(stories) - _STORIES))
        text = Text(no_wrap=True, overflow="ellipsis")
        for story in stories[start : start + _STORIES]:
            mark, style = MARKS[story.state]
            if self._state.current and story.id == self._state.current.story:
                mark, style = "▶", "cyan"
            text.append(f"  {mark} {one_line(story.id):<8} {one_line(story.title, 60)}\n", style=style)
        return text

    def _guards(self) -> RenderableType:
        """What would stop the run next."""
        state, limits = self._state, self._limits
        history = self._history
        left = [f"{max(limits.max_iterations - history.iterations, 0)} iterations left"]
        if limits.max_time:
            left.append(f"{duration(max(history.started + limits.max_time - time.time(), 0))} left")
        streak: Streak | None = history.streak
        if limits.on_stuck is OnStuck.NEXT:
            streak = history.stories.get(state.current.story, Streak()) if state.current else None
        if limits.no_progress and streak is not None:
            left.append(f"no progress {streak.no_progress}/{limits.no_progress}")
        if limits.no_progress and history.stuck:
            left.append(f"given up {history.stuck}/{limits.no_progress}")
        if limits.same_error and history.streak.same_error > 1:
            left.append(f"same error {history.streak.same_error}/{limits.same_error}")
        if limits.max_attempts and state.current and state.current.story and state.current.mode is not Mode.REVIEW:
            left.append(f"attempt {state.current.attempt}/{limits.max_attempts}")
        for room in rooms(limits.budget, history.purse.run, history.purse.elsewhere):
            left.append(f"{figure(room, room.left)} of the {room.scope.value} left")
        return Text("  guards: " + " · ".join(left), style="dim", no_wrap=True, overflow="ellipsis")
