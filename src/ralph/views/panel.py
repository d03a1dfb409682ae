"""The live panel of a run: progress, the iteration under way, checks, stories, money and what is left.

Computed from the state of a run at a moment: `ralph run` and `ralph watch` draw it again and again, `ralph record`
draws it for moments of the past.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from ralph.budget.forecast import ENOUGH
from ralph.core.agent import Retry, Tokens
from ralph.core.history import History
from ralph.core.money import figure, rooms
from ralph.core.plan import Mode, State
from ralph.core.rules import OnStuck, Streak
from ralph.core.text import one_line, plural
from ralph.engine.decide import cap
from ralph.journal.run_state import RunState
from ralph.journal.workers import Activity
from ralph.views.columns import cells, cut, fit, progress_bar
from ralph.views.lines import RUNNING_ITERATIONS, checks_line, position
from ralph.views.paint import paint
from ralph.views.words import MARKS, duration, foreseen, money, seconds, tokens
from ralph.views.worker_lines import queue_lines, recorded, result_lines, worker_lines
from ralph.workspace.agent_stream import Call

_STORIES = 6
_ACTIVITY = 10
_RESULTS = 4

Row = tuple[str, int]
"""A painted line and its width in columns."""
BLANK: Row = ("", 0)


class Session(Protocol):
    """What is known about a running session."""

    @property
    def recent(self) -> Sequence[str | Call]:
        """Lines the agent wrote and calls it made, oldest first."""
        ...

    @property
    def retry(self) -> Retry | None: ...
    @property
    def is_compacting(self) -> bool: ...
    @property
    def tokens(self) -> Tokens: ...
    @property
    def cost_usd(self) -> float | None: ...


class Panel(Struct, frozen=True):
    state: RunState
    history: History
    now: float
    sessions: Mapping[int, Session]
    """By iteration: its running session, or its last one."""
    resumes: str = "`ralph resume`"
    stops: str = "`ralph stop` stops"
    offers: str = ""
    """What a key does, for the end of the first line."""
    fills: bool = False
    """It is always of the same height, so that nothing jumps between two moments."""

    def rows(self, room: int, most: int) -> list[Row]:
        """At most about `most` rows of `room` columns. The first one is blank."""
        state = self.state
        head = [BLANK, self._progress(room)]
        if state.ended is not None:
            return [*head, *self._stories(room, max(most - len(head), 1))]
        if state.paused_since is not None:
            head.append(self._paused(room))
        elif state.waiting:
            head.append(self._waiting(room))
        elif state.current and state.is_parallel:
            head += self._pending(room)
        elif state.current:
            head += self._iteration(room)
        elif checks := checks_line(state, self.now):
            head.append(row(room, (f"⚙ {checks}", "bold cyan")))
        if state.is_parallel:
            return self._side_by_side(room, most, head)
        tail = self._tail(room)
        left = max(most - len(head) - len(tail), 2)
        stories = self._stories(room, min(_STORIES, max(left // 2, 1)))
        activity = self._activity(room, min(_ACTIVITY, max(left - len(stories), 1))) if state.current else []
        return self._filled(most, [*head, *activity], [*stories, *tail])

    def _filled(self, most: int, above: list[Row], below: list[Row]) -> list[Row]:
        gap = most - len(above) - len(below) if self.fills else 0
        return [*above, *[BLANK] * gap, *below]

    def _tail(self, room: int) -> list[Row]:
        forecast = self.state.forecast
        tail = [row(room, (f"  left: {' · '.join(self._left())}", "dim"))]
        if forecast and forecast.samples >= ENOUGH:
            tail.append(row(room, (f"  remaining: {foreseen(forecast)}", "dim")))
        return tail

    def _side_by_side(self, room: int, most: int, head: list[Row]) -> list[Row]:
        """One line per worker, the merge queue, then the last results."""
        state, tail = self.state, self._tail(room)
        left = max(most - len(head) - len(tail), 3)
        queue = list(queue_lines(state, self.now, max(left // 4, 1)))
        results = list(result_lines(state, min(_RESULTS, max((left - len(queue)) // 3, 0))))
        workers = worker_lines(state, self.now, max(left - len(queue) - len(results), 1), self._used)
        shown = [_in_columns(room, *line) for line in (*workers, *queue, *results)]
        return self._filled(most, [*head, *shown], tail)

    def _used(self, activity: Activity) -> tuple[Tokens, float | None, bool]:
        """Of an iteration: the sessions that have ended, and an estimate for the running one."""
        used, cost, is_estimate = recorded(activity)
        session = self.sessions.get(activity.agent.iteration) if activity.agent else None
        if session is not None:
            used += session.tokens
            if (more := session.cost_usd) is not None:
                cost, is_estimate = (cost or 0) + more, True
        return used, cost, is_estimate

    def _progress(self, room: int) -> Row:
        state = self.state
        used, cost, is_estimate = state.tokens, state.cost_usd, state.is_estimated
        for number, session in self.sessions.items():
            if number not in state.parallel.open or state.parallel.open[number].agent is None:
                continue
            used += session.tokens
            if (more := session.cost_usd) is not None:
                cost, is_estimate = (cost or 0) + more, True
        facts = [duration(self.now - state.started_at)]
        if used.total:
            facts.append(tokens(used))
        if cost is not None:
            facts.append(money(cost, is_estimate))
        facts += [self.offers] if self.offers else []
        bar = progress_bar(state.done, state.total, 20)
        return row(room, (f"{bar} {'story' if state.total == 1 else 'stories'} ", "bold"), (" · ".join(facts), "dim"))

    def _iteration(self, room: int) -> list[Row]:
        state = self.state
        current = state.current
        assert current is not None
        facts = [f"iteration {position(current, state)}", duration(self.now - state.current_since)]
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
        session = self._session
        if session is not None and state.agent is not None and (session.retry or session.is_compacting):
            retry = f"the client retries (attempt {session.retry.attempt})" if session.retry else "the client compacts"
            lines.append(row(room, (f"  {retry}", "yellow")))
        return lines

    @property
    def _session(self) -> Session | None:
        current = self.state.current
        return self.sessions.get(current.iteration) if current else None

    def _pending(self, room: int) -> list[Row]:
        wish = self.state.wish
        if not wish.is_any:
            return []
        after = RUNNING_ITERATIONS if self.state.is_parallel else "this iteration"
        then = "stopping" if wish.now else f"{'stops' if wish.stop else 'pauses'} after {after}"
        return [row(room, (f"  {then}", "yellow"))]

    def _activity(self, room: int, most: int) -> list[Row]:
        """The last lines of the agent's activity, then the checks, the running one last."""
        checks = checks_line(self.state, self.now)
        lines: list[Row] = [row(room, (f"  ⚙ {checks}", "cyan"))] if checks else []
        for check in reversed(self.state.checks):
            if len(lines) >= most // 2:
                break
            mark, style = ("✓", "green") if check.result.passed else ("✗", "red")
            lines.append(row(room, (f"  {mark} {check.result.name} ", style), (seconds(check.result.seconds), "dim")))
        for entry in reversed(self._session.recent if self._session else ()):
            if len(lines) >= most:
                break
            if isinstance(entry, Call):
                lines.append(_call(room, entry, self.now, is_running=self.state.agent is not None))
            else:
                wrapped = textwrap.wrap(entry, max(room - 4, 10)) or [""]
                lines += [row(room, (f"  {line}", "")) for line in reversed(wrapped)]
        return lines[:most][::-1]

    def _waiting(self, room: int) -> Row:
        assert self.state.waiting is not None
        left = duration(max(self.state.waiting.until - self.now, 0) + 0.999)
        return row(room, (f"⏸ {left} left: {one_line(self.state.waiting.why)} ({self.stops})", "yellow"))

    def _paused(self, room: int) -> Row:
        since = duration(max(self.now - (self.state.paused_since or self.now), 0))
        return row(room, (f"⏸ paused for {since}: {self.resumes} continues ({self.stops})", "yellow"))

    def _stories(self, room: int, most: int) -> list[Row]:
        stories = list(self.state.stories.values())
        at = next((n for n, s in enumerate(stories) if s.state is not State.DONE), len(stories))
        start = max(0, min(at - 2, len(stories) - most))
        lines, waiting = [], self.state.waiting_for_proof
        for story in stories[start : start + most]:
            mark, style = MARKS[story.state]
            if self.state.current and story.id == self.state.current.story:
                mark, style = MARKS[State.IN_PROGRESS]
            is_graded = story.state is State.DONE or story.id in waiting
            grade = (f"  {story.grade}", "dim" if story.state is State.DONE else "yellow")
            name = (f"  {mark} {one_line(story.id):<8} {one_line(story.title)}", style)
            lines.append(row(room, name, *([grade] if is_graded and story.grade else [])))
        return lines

    def _left(self) -> Iterator[str]:
        """The limits of the run and how close it is to them."""
        state, history = self.state, self.history
        current = None if state.is_parallel else state.current
        assert state.started is not None
        limits = state.started.limits
        if most := cap(history, limits):
            yield plural(max(most - history.iterations, 0), "iteration")
        if limits.max_time:
            yield duration(max(history.started + limits.max_time - self.now, 0))
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


def row(room: int, *parts: tuple[str, str]) -> Row:
    """Styled texts on one line, cut to `room` columns. An empty style is plain."""
    line, left = "", room
    for text, style in parts:
        lead = len(text) - len(text.lstrip(" "))
        shown = " " * min(lead, left) + fit(text, max(left - lead, 0))
        if text.endswith(" ") and cells(shown) < left:
            shown += " "
        left -= cells(shown)
        line += paint(shown, style) if style else shown
        if left <= 0:
            break
    return line, room - left


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
