"""A run on a terminal: a live panel below the lines of finished events.

`ralph run` and `ralph watch` show the same panel: it is computed from the records of the journal and the raw log of the
session that is running.
"""

from __future__ import annotations

import contextlib
import os
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

from ralph.budget.forecast import ENOUGH
from ralph.cli import output
from ralph.cli.plain_view import checks_line, describe, position
from ralph.cli.show import MARKS, cells, progress_bar
from ralph.cli.words import duration, foreseen, money, seconds, tokens
from ralph.core.events import AgentStarted, IterationStarted, Record, RunEnded
from ralph.core.history import History, fold
from ralph.core.money import figure, rooms
from ralph.core.plan import Mode, State
from ralph.core.rules import OnStuck, Streak
from ralph.core.text import one_line, plural
from ralph.engine.decide import cap
from ralph.journal.run_state import RunState
from ralph.workspace.agent_stream import AgentStream, Call, running_session

_INTERVAL = 0.15
"""Seconds between two redraws: well under half a second."""
_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_NO_WRAP, _WRAP = "\x1b[?7l", "\x1b[?7h"

Row = tuple[str, int]
"""A painted line and its width in columns."""


class Screen:
    """Draws what `render(columns, rows)` returns, in a separate thread. Use as a context manager.

    A closed terminal is no longer written to; the run continues.
    """

    def __init__(self, render: Callable[[int, int], list[Row]], stream: TextIO | None = None) -> None:
        self._render = render
        self._stream = stream or sys.stdout
        self._turn = threading.RLock()
        self._drawn: list[int] = []
        """The width of each line on the screen."""
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_gone = False

    def __enter__(self) -> Screen:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self._over.clear()
        output.divert(self.print)
        self._write(_HIDE)
        self._thread = threading.Thread(target=self._keep_drawing, name="screen", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        output.divert(None)
        self._over.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        with self._turn:
            self._write(self._erased() + _SHOW)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Nothing is drawn while the user is asked a question."""
        self.stop()
        try:
            yield
        finally:
            self.start()

    def print(self, text: str) -> None:
        """Print a line that stays, above the redrawn ones."""
        with self._turn:
            self._write(self._erased() + text.replace("\n", "\r\n") + "\r\n")
            if self._thread is not None:
                self._draw()

    def _keep_drawing(self) -> None:
        while not self._over.wait(_INTERVAL):
            with self._turn:
                self._draw()

    def _draw(self) -> None:
        if self._is_gone:
            return
        columns, rows = size(self._stream)
        # The cursor stays in the first column: the `^C` that a terminal echoes must not wrap.
        lines = self._render(columns, rows)[: max(rows - 1, 1)]
        text = self._erased(columns) + _NO_WRAP + "\r\n".join(line for line, _ in lines) + "\r" + _WRAP
        self._drawn = [min(width, columns) for _, width in lines]
        self._write(text)

    def _erased(self, columns: int = 0) -> str:
        """Move to the start of the first line and clear the rest. A terminal that was made narrower has wrapped the
        lines that are now too long."""
        if not self._drawn:
            return ""
        columns = columns or size(self._stream)[0]
        rows = sum(max(-(-width // columns), 1) for width in self._drawn)
        self._drawn = []
        return "\r" + (f"\x1b[{rows - 1}A" if rows > 1 else "") + "\x1b[J"

    def _write(self, text: str) -> None:
        if self._is_gone or not text:
            return
        try:
            self._stream.write(text)
            self._stream.flush()
        except (OSError, ValueError):
            self._is_gone = True


def size(stream: TextIO) -> tuple[int, int]:
    """The current columns and rows of the terminal."""
    try:
        found = os.get_terminal_size(stream.fileno())
    except (OSError, ValueError):
        return 80, 24
    return found.columns or 80, found.lines or 24


def row(room: int, *parts: tuple[str, str]) -> Row:
    """Styled texts on one line, cut to `room` columns. An empty style is plain."""
    from ralph.cli.show import fit

    line, left = "", room
    for text, style in parts:
        lead = len(text) - len(text.lstrip(" "))
        shown = " " * min(lead, left) + fit(text, max(left - lead, 0))
        if text.endswith(" ") and cells(shown) < left:
            shown += " "
        left -= cells(shown)
        line += output.paint(shown, style) if style else shown
        if left <= 0:
            break
    return line, room - left


_STORIES = 6
_ACTIVITY = 10
_LEAST = 12


class LiveView:
    """A context manager that is called with each record in order. `attached`: the run is another process."""

    def __init__(self, *, verbose: bool = False, attached: bool = False) -> None:
        self._verbose = verbose
        self._attached = attached
        self._state = RunState()
        self._history = History()
        self._stream: AgentStream | None = None
        self._turn = threading.RLock()
        self._screen = Screen(self.panel)

    @property
    def state(self) -> RunState:
        return self._state

    def __enter__(self) -> LiveView:
        self._screen.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._screen.stop()
        if self._stream is not None:
            self._stream.close()

    def held(self) -> contextlib.AbstractContextManager[None]:
        """No drawing while the user is asked a question."""
        return self._screen.held()

    def __call__(self, record: Record) -> None:
        if line := self.add(record):
            self._screen.print(line)

    def add(self, record: Record) -> str:
        """Add a record; returns the line to print above the panel, if any."""
        with self._turn:
            self._state.add(record)
            self._history = fold(self._history, record.event, record.t)
            self._follow(record)
            if isinstance(record.event, RunEnded):  # the summary says it
                return ""
            return describe(record, self._state, verbose=self._verbose)

    def _follow(self, record: Record) -> None:
        """Open the raw log of the session that starts."""
        if isinstance(record.event, AgentStarted | IterationStarted):
            if self._stream is not None:
                self._stream.close()
            self._stream = running_session(self._state, os.environ)

    def panel(self, columns: int, rows: int) -> list[Row]:
        with self._turn:
            state = self._state
            if state.started is None or state.ended is not None:
                return []
            if self._stream is not None:
                self._stream.poll()
            # Not up to the edge: a terminal that is made narrower by one would wrap every line.
            return self._panel(columns - 1, max(rows * 2 // 3, min(_LEAST, rows - 1)), time.time())

    def _panel(self, room: int, most: int, now: float) -> list[Row]:
        state = self._state
        head = [("", 0), self._progress(room, now)]
        if state.paused_since is not None:
            head.append(self._paused(room, now))
        elif state.waiting:
            head.append(self._waiting(room, now))
        elif state.current:
            head += self._iteration(room, now)
        elif checks := checks_line(state, now):
            head.append(row(room, (f"⚙ {checks}", "bold cyan")))
        tail = [row(room, (f"  left: {' · '.join(self._left(now))}", "dim"))]
        if state.forecast and state.forecast.samples >= ENOUGH:
            tail.append(row(room, (f"  remaining: {foreseen(state.forecast)}", "dim")))
        left = max(most - len(head) - len(tail), 2)
        stories = self._stories(room, min(_STORIES, max(left // 2, 1)))
        activity = self._activity(room, min(_ACTIVITY, max(left - len(stories), 1)), now) if state.current else []
        return [*head, *activity, *stories, *tail]

    def _progress(self, room: int, now: float) -> Row:
        state = self._state
        used, cost, is_estimate = state.tokens, state.cost_usd, False
        if self._stream is not None and state.agent is not None:
            used += self._stream.tokens
            if (more := self._stream.cost_usd) is not None:
                cost, is_estimate = (cost or 0) + more, True
        facts = [duration(now - state.started_at)]
        if used.total:
            facts.append(tokens(used))
        if cost is not None:
            facts.append(f"{'about ' if is_estimate else ''}{money(cost)}")
        bar = progress_bar(state.done, state.total, 20)
        return row(room, (f"{bar} {'story' if state.total == 1 else 'stories'} ", "bold"), (" · ".join(facts), "dim"))

    def _iteration(self, room: int, now: float) -> list[Row]:
        state = self._state
        current = state.current
        assert current is not None
        facts = [f"iteration {position(current, state)}", duration(now - state.current_since)]
        if current.attempt > 1:
            facts.insert(1, f"attempt {current.attempt}")
        if current.choice:
            facts.append(f"by {one_line(current.choice, 60)}")
        title = f"{one_line(current.story)} {one_line(current.title)}".strip()
        lines = [
            row(room, (f"▶ {current.mode.value} ", "bold cyan"), (title, "bold")),
            row(room, (f"  {' · '.join(facts)}", "dim")),
        ]
        if state.wish.is_any:
            word = "stops" if state.wish.stop else "pauses"
            then = "stopping" if state.wish.now else f"{word} after this iteration"
            lines.append(row(room, (f"  {then}", "yellow")))
        stream = self._stream
        if stream is not None and state.agent is not None and (stream.retry or stream.is_compacting):
            retry = f"the client retries (attempt {stream.retry.attempt})" if stream.retry else "the client compacts"
            lines.append(row(room, (f"  {retry}", "yellow")))
        return lines

    def _activity(self, room: int, most: int, now: float) -> list[Row]:
        """The last lines of the agent's activity, then the checks, the running one last."""
        checks = checks_line(self._state, now)
        lines: list[Row] = [row(room, (f"  ⚙ {checks}", "cyan"))] if checks else []
        for check in reversed(self._state.checks):
            if len(lines) >= most // 2:
                break
            mark, style = ("✓", "green") if check.result.passed else ("✗", "red")
            lines.append(row(room, (f"  {mark} {check.result.name} ", style), (seconds(check.result.seconds), "dim")))
        for entry in reversed(self._stream.recent if self._stream else ()):
            if len(lines) >= most:
                break
            if isinstance(entry, Call):
                lines.append(_call(room, entry, now, is_running=self._state.agent is not None))
            else:
                wrapped = textwrap.wrap(entry, max(room - 4, 10)) or [""]
                lines += [row(room, (f"  {line}", "")) for line in reversed(wrapped)]
        return lines[:most][::-1]

    def _waiting(self, room: int, now: float) -> Row:
        assert self._state.waiting is not None
        left = duration(max(self._state.waiting.until - now, 0) + 0.999)
        return row(room, (f"⏸ {left} left: {one_line(self._state.waiting.why)} ({self._stops})", "yellow"))

    def _paused(self, room: int, now: float) -> Row:
        since = duration(max(now - (self._state.paused_since or now), 0))
        key = "" if self._attached else " or Ctrl-\\"
        return row(room, (f"⏸ paused for {since}: `ralph resume`{key} continues ({self._stops})", "yellow"))

    @property
    def _stops(self) -> str:
        return "`ralph stop` stops" if self._attached else "Ctrl-C stops"

    def _stories(self, room: int, most: int) -> list[Row]:
        stories = list(self._state.stories.values())
        at = next((n for n, s in enumerate(stories) if s.state is not State.DONE), len(stories))
        start = max(0, min(at - 2, len(stories) - most))
        lines, waiting = [], self._state.waiting_for_proof
        for story in stories[start : start + most]:
            mark, style = MARKS[story.state]
            if self._state.current and story.id == self._state.current.story:
                mark, style = MARKS[State.IN_PROGRESS]
            is_graded = story.state is State.DONE or story.id in waiting
            grade = (f"  {story.grade}", "dim" if story.state is State.DONE else "yellow")
            name = (f"  {mark} {one_line(story.id):<8} {one_line(story.title)}", style)
            lines.append(row(room, name, *([grade] if is_graded and story.grade else [])))
        return lines

    def _left(self, now: float) -> Iterator[str]:
        """The limits of the run and how close it is to them."""
        state, history = self._state, self._history
        assert state.started is not None
        limits = state.started.limits
        if most := cap(history, limits):
            yield plural(max(most - history.iterations, 0), "iteration")
        if limits.max_time:
            yield duration(max(history.started + limits.max_time - now, 0))
        for space in rooms(limits.budget, history.spending.run, history.spending.elsewhere):
            yield f"{figure(space, space.left)} of the {space.scope.value}"
        streak: Streak | None = history.streak
        if limits.on_stuck is OnStuck.NEXT:
            streak = history.stories.get(state.current.story, Streak()) if state.current else None
        if limits.no_progress and streak is not None and streak.no_progress:
            yield f"no progress {streak.no_progress}/{limits.no_progress}"
        if limits.no_progress and history.stuck:
            yield f"set aside {history.stuck}/{limits.no_progress}"
        if limits.same_error and history.streak.same_error > 1:
            yield f"same error {history.streak.same_error}/{limits.same_error}"
        current, most = state.current, limits.max_attempts
        if current and current.story and current.mode is Mode.IMPLEMENT and current.attempt <= most:
            yield f"attempt {current.attempt}/{most}"


def _call(room: int, call: Call, now: float, *, is_running: bool) -> Row:
    """`⚙ Bash pytest -q  4.1 s`; a failed call shows its result."""
    if call.ok is None:
        took = f" {seconds(max(now - call.since, 0))} …" if is_running else ""
        return row(room, (f"  ⚙ {call.summary}", "cyan"), (took, "dim"))
    took = seconds(call.seconds) if call.seconds is not None else ""
    if call.ok:
        return row(room, (f"  ⚙ {call.summary} ", "dim"), (f" {took}", "dim"))
    return row(room, (f"  ⚙ {call.summary} ", "dim"), (f" failed{f' ({took})' if took else ''}: {call.text}", "red"))
