"""A run on a terminal: a live panel below the lines of finished events.

`ralph run` and `ralph watch` show the same panel: it is computed from the records of the journal and the raw log of the
session that is running.
"""

from __future__ import annotations

import contextlib
import os
import textwrap
import threading
import time
from collections.abc import Iterator

from ralph.budget.forecast import ENOUGH
from ralph.cli.output import paint
from ralph.cli.plain_view import describe
from ralph.cli.screen import Row, Screen, row
from ralph.cli.show import MARKS, cut
from ralph.core.agent import Tokens
from ralph.core.events import AgentStarted, IterationEnded, IterationStarted, Record, RunEnded
from ralph.core.history import History, fold
from ralph.core.money import figure, rooms
from ralph.core.plan import Mode, State
from ralph.core.rules import OnStuck, Streak
from ralph.core.text import one_line, plural
from ralph.engine.decide import cap
from ralph.journal.run_state import RunState
from ralph.journal.workers import Activity
from ralph.views.columns import cells, progress_bar
from ralph.views.lines import RUNNING_ITERATIONS, checks_line, position
from ralph.views.words import duration, foreseen, money, seconds, tokens
from ralph.views.worker_lines import queue_lines, recorded, result_lines, worker_lines
from ralph.workspace.agent_stream import AgentStream, Call, session_stream

_STORIES = 6
_ACTIVITY = 10
_RESULTS = 4
_MOST_STREAMS = 64
"""Number of sessions that are read while they run; the journal has enough about the others."""
_LEAST = 12


class LiveView:
    """A context manager that is called with each record in order. `attached`: the run is another process."""

    def __init__(self, *, verbose: bool = False, attached: bool = False) -> None:
        self._verbose = verbose
        self._attached = attached
        self._state = RunState()
        self._history = History()
        self._streams: dict[int, AgentStream] = {}
        """By iteration: its running session, or its last one."""
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
        for stream in self._streams.values():
            stream.close()

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

    @property
    def _stream(self) -> AgentStream | None:
        current = self._state.current
        return self._streams.get(current.iteration) if current else None

    def _follow(self, record: Record) -> None:
        """Open the raw log of the session that starts."""
        event = record.event
        if not isinstance(event, AgentStarted | IterationStarted | IterationEnded):
            return
        if (stream := self._streams.pop(event.iteration, None)) is not None:
            stream.close()
        if not isinstance(event, AgentStarted) or len(self._streams) >= _MOST_STREAMS:
            return
        if (stream := session_stream(self._state, event, os.environ)) is not None:
            self._streams[event.iteration] = stream

    def panel(self, columns: int, rows: int) -> list[Row]:
        with self._turn:
            state = self._state
            if state.started is None or state.ended is not None:
                return []
            for stream in self._streams.values():
                stream.poll()
            # Not up to the edge: a terminal that is made narrower by one would wrap every line.
            return self._panel(columns - 1, max(rows * 2 // 3, min(_LEAST, rows - 1)), time.time())

    def _panel(self, room: int, most: int, now: float) -> list[Row]:
        state = self._state
        head = [("", 0), self._progress(room, now)]
        if state.paused_since is not None:
            head.append(self._paused(room, now))
        elif state.waiting:
            head.append(self._waiting(room, now))
        elif state.current and state.is_parallel:
            head += self._pending(room)
        elif state.current:
            head += self._iteration(room, now)
        elif checks := checks_line(state, now):
            head.append(row(room, (f"⚙ {checks}", "bold cyan")))
        if state.is_parallel:
            return self._side_by_side(room, most, now, head)
        tail = self._tail(room, now)
        left = max(most - len(head) - len(tail), 2)
        stories = self._stories(room, min(_STORIES, max(left // 2, 1)))
        activity = self._activity(room, min(_ACTIVITY, max(left - len(stories), 1)), now) if state.current else []
        return [*head, *activity, *stories, *tail]

    def _tail(self, room: int, now: float) -> list[Row]:
        forecast = self._state.forecast
        tail = [row(room, (f"  left: {' · '.join(self._left(now))}", "dim"))]
        if forecast and forecast.samples >= ENOUGH:
            tail.append(row(room, (f"  remaining: {foreseen(forecast)}", "dim")))
        return tail

    def _side_by_side(self, room: int, most: int, now: float, head: list[Row]) -> list[Row]:
        """One line per worker, the merge queue, then the last results."""
        state, tail = self._state, self._tail(room, now)
        left = max(most - len(head) - len(tail), 3)
        queue = list(queue_lines(state, now, max(left // 4, 1)))
        results = list(result_lines(state, min(_RESULTS, max((left - len(queue)) // 3, 0))))
        workers = worker_lines(state, now, max(left - len(queue) - len(results), 1), self._used)
        return [*head, *(_in_columns(room, *line) for line in (*workers, *queue, *results)), *tail]

    def _used(self, activity: Activity) -> tuple[Tokens, float | None, bool]:
        """Of an iteration: the sessions that have ended, and an estimate for the running one."""
        used, cost, is_estimate = recorded(activity)
        stream = self._streams.get(activity.agent.iteration) if activity.agent else None
        if stream is not None:
            used += stream.tokens
            if (more := stream.cost_usd) is not None:
                cost, is_estimate = (cost or 0) + more, True
        return used, cost, is_estimate

    def _progress(self, room: int, now: float) -> Row:
        state = self._state
        used, cost, is_estimate = state.tokens, state.cost_usd, state.is_estimated
        for number, stream in self._streams.items():
            if number not in state.parallel.open or state.parallel.open[number].agent is None:
                continue
            used += stream.tokens
            if (more := stream.cost_usd) is not None:
                cost, is_estimate = (cost or 0) + more, True
        facts = [duration(now - state.started_at)]
        if used.total:
            facts.append(tokens(used))
        if cost is not None:
            facts.append(money(cost, is_estimate))
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
        lines += self._pending(room)
        stream = self._stream
        if stream is not None and state.agent is not None and (stream.retry or stream.is_compacting):
            retry = f"the client retries (attempt {stream.retry.attempt})" if stream.retry else "the client compacts"
            lines.append(row(room, (f"  {retry}", "yellow")))
        return lines

    def _pending(self, room: int) -> list[Row]:
        wish = self._state.wish
        if not wish.is_any:
            return []
        after = RUNNING_ITERATIONS if self._state.is_parallel else "this iteration"
        then = "stopping" if wish.now else f"{'stops' if wish.stop else 'pauses'} after {after}"
        return [row(room, (f"  {then}", "yellow"))]

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
        current = None if state.is_parallel else state.current
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
            streak = history.stories.get(current.story, Streak()) if current else None
        if limits.no_progress and streak is not None and streak.no_progress:
            yield f"no progress {streak.no_progress}/{limits.no_progress}"
        if limits.no_progress and history.stuck:
            yield f"set aside {history.stuck}/{limits.no_progress}"
        if limits.same_error and history.streak.same_error > 1:
            yield f"same error {history.streak.same_error}/{limits.same_error}"
        most = limits.max_attempts
        if current and current.story and current.mode is Mode.IMPLEMENT and current.attempt <= most:
            yield f"attempt {current.attempt}/{most}"


def _in_columns(room: int, line: str, style: str) -> Row:
    shown = cut(line, room)
    return paint(shown, style) if style else shown, cells(shown)


def _call(room: int, call: Call, now: float, *, is_running: bool) -> Row:
    """`⚙ Bash pytest -q  4.1 s`; a failed call shows its result."""
    if call.ok is None:
        took = f" {seconds(max(now - call.since, 0))} …" if is_running else ""
        return row(room, (f"  ⚙ {call.summary}", "cyan"), (took, "dim"))
    took = seconds(call.seconds) if call.seconds is not None else ""
    if call.ok:
        return row(room, (f"  ⚙ {call.summary} ", "dim"), (f" {took}", "dim"))
    return row(room, (f"  ⚙ {call.summary} ", "dim"), (f" failed{f' ({took})' if took else ''}: {call.text}", "red"))
