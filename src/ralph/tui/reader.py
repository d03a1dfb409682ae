"""The thread that reads: it follows the run and makes the rows of what is on the screen, so that keys never wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator

from msgspec import Struct

from ralph.core.errors import RalphError
from ralph.core.plan import Mode
from ralph.core.review import Entry
from ralph.core.text import one_line
from ralph.tui.events import Events
from ralph.tui.rows import Part, Row, Rows, filtered, no_match, row
from ralph.tui.scene import Scene
from ralph.tui.source import Source
from ralph.tui.stories import story_rows
from ralph.tui.tabs import checks, cost, diff, live, review, timeline
from ralph.views.acts import ActVerb
from ralph.views.attempts import Attempt
from ralph.views.columns import cells, cut
from ralph.views.words import duration, money, tokens, until_when
from ralph.views.worker_lines import phase
from ralph.workspace.runs import Standing

_TICK = 0.1
_WIDE = 120
"""Columns from which what the run does and its figures are on one line."""
_LIVE = (Standing.RUNNING, Standing.PAUSED, Standing.WAITING)
_ROWS: dict[str, Callable[[Scene], Rows]] = {
    "Live": live.rows,
    "Diff": diff.rows,
    "Checks": checks.rows,
    "Review": review.rows,
    "Cost": cost.rows,
}


class Wanted(Struct, frozen=True):
    """What the user looks at."""

    tab: str = "Live"
    story: str = ""
    """Empty: whatever is being worked on."""
    iteration: int = 0
    """0: the last one of the story."""
    finding: str = ""
    room: int = 80
    left: int = 30
    """Columns of both panes."""
    columns: int = 78
    """Of the lines at the bottom."""
    toggled: frozenset[str] = frozenset()
    words: str = ""
    story_words: str = ""
    """What the panes are filtered by."""


class Seen(Struct, frozen=True):
    """What is to be shown for it."""

    wanted: Wanted
    title: Row
    status: tuple[Part, ...]
    stories: Rows
    rows: Rows
    of: str
    """What the rows are about: with another one the page starts at its beginning."""
    story: str
    iteration: int
    acts: frozenset[ActVerb]
    questions: dict[str, str]
    attempts: tuple[int, ...]
    """Iterations of the story."""
    is_live: bool
    count: int


class Reader:
    def __init__(self, source: Source, show: Callable[[Seen], object]) -> None:
        self.source = source
        self._show = show
        self._wanted = Wanted()
        self._kick = threading.Event()
        self._over = False
        self._events: Events | None = None
        self._standing = Standing.UNREADABLE
        self._thread = threading.Thread(target=self._run, name="reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def want(self, wanted: Wanted) -> None:
        if wanted != self._wanted:
            self._wanted = wanted
            self._kick.set()

    def look(self) -> None:
        self._kick.set()

    def stop(self) -> None:
        self._over = True
        self._kick.set()
        self._thread.join(5)
        self.source.close()

    def _run(self) -> None:
        painted = 0.0
        while not self._over:
            has_news = self.source.poll()
            is_asked = self._kick.is_set()
            self._kick.clear()
            if self._events is not None:
                is_asked |= self._events.read()
            now = time.monotonic()
            if is_asked or now - painted > 1 or (has_news and now - painted > _TICK):
                self._show(self._seen(self._wanted))
                painted = time.monotonic()
            if not has_news:
                self._kick.wait(_TICK)

    def _seen(self, wanted: Wanted) -> Seen:
        view, now = self.source.view, time.time()
        self._standing = self.source.standing()
        is_live = self._standing in _LIVE
        lines = view.stories()
        attempt = self._attempt(wanted)
        name = wanted.story or (attempt.story if attempt else "") or (lines[0].id if lines and not attempt else "")
        story = next((line for line in lines if line.id == name), None)
        scene = Scene(
            source=self.source,
            story=story,
            attempt=attempt,
            room=wanted.room,
            now=now,
            standing=self._standing,
            toggled=wanted.toggled,
        )
        rows, of = self._rows(scene, wanted)
        finding = next((each for each in view.findings(name) if each.id == wanted.finding), None)
        stories: Rows = story_rows(lines, wanted.left)
        return Seen(
            wanted=wanted,
            title=self._title(),
            status=tuple(self._status(now, is_live=is_live)),
            stories=_only(stories, wanted.story_words, wanted.left),
            rows=rows,
            of=of,
            story=name,
            iteration=attempt.iteration if attempt else 0,
            acts=self._acts(name, finding),
            questions=view.questions(),
            attempts=tuple(each.iteration for each in view.attempts.of(attempt.story)) if attempt else (),
            is_live=is_live,
            count=view.count,
        )

    def _attempt(self, wanted: Wanted) -> Attempt | None:
        known = self.source.view.attempts.by_iteration
        if wanted.iteration in known:
            return known[wanted.iteration]
        if wanted.tab == "Diff":  # a review changes nothing: what it reviews is shown
            known = {number: each for number, each in known.items() if each.mode is not Mode.REVIEW} or known
        if wanted.story:
            return next((each for each in reversed(known.values()) if each.story == wanted.story), None)
        return next((each for each in known.values() if each.ended is None), next(reversed(known.values()), None))

    def _rows(self, scene: Scene, wanted: Wanted) -> tuple[Rows, str]:
        if wanted.tab == "Timeline":
            events = self._events
            if events is None or events.words != wanted.words:
                events = self._events = Events(scene.view, wanted.words, self.look)
            above = timeline.above(scene)
            events.above = filtered(above, wanted.words) if wanted.words else above
            if events.is_searched and not len(events):
                events.above = no_match(wanted.words, wanted.room)
            return events, wanted.words
        try:
            rows = _ROWS[wanted.tab](scene)
        except RalphError as error:
            rows = [row((error.message, "bad")), row((error.hint, "dim"))]
        about = scene.story.id if wanted.tab == "Review" and scene.story else ""
        about = str(scene.attempt.iteration) if scene.attempt and wanted.tab != "Cost" and not about else about
        return _only(rows, wanted.words, wanted.room), f"{wanted.tab} {about} {wanted.words}"

    def _acts(self, story: str, finding: Entry | None) -> frozenset[ActVerb]:
        try:
            return self.source.possible(story, finding)
        except RalphError:
            return frozenset()

    def _title(self) -> Row:
        view, where = self.source.view, self.source.where
        first = view.first
        if first is None:
            return row(("ralph", "bold"), "  ", (self.source.trouble or view.damage or "reading the journal …", "warn"))
        style = "good" if self._standing in _LIVE else "warn" if self._standing is Standing.UNFINISHED else "dim"
        word = "was killed" if self._standing is Standing.UNFINISHED else self._standing.value
        reason = f": {view.state.ended.reason.value}" if view.state.ended else ""
        parts: list[Part] = [("ralph ", "bold"), (one_line(first.name, 40), "bold"), (f"  run {first.run}", "dim")]
        parts += [(f" on {one_line(where, 60)}", "info")] if where else []
        parts += [(f"  {word}{reason}", style), (f"  {one_line(first.agent, 30)}", "dim")]
        if trouble := self.source.trouble or view.damage:
            parts.append((f"  {one_line(trouble, 300)}", "bad"))
        return row(*parts)

    def _status(self, now: float, *, is_live: bool) -> list[Part]:
        """What it is doing, time, tokens, money, the next limit, and workers when there are several."""
        view = self.source.view
        state = view.state
        if state.started is None:
            return []
        until = now if is_live else state.now
        facts = [duration(until - state.started_at), tokens(state.tokens), money(state.cost_usd, state.is_estimated)]
        room = self._wanted.columns
        doing = list(_fitted(self._doing(now, is_live=is_live), room))
        figures: list[Part] = [(f"{state.done}/{state.total} done", "bold"), (f" · {' · '.join(facts)}", "")]
        if is_live and (lines := cost.limits(view, now)):
            figures.append((f" · limit: {cost.used_of(lines[0])} {lines[0].what.removeprefix('tokens ')}", "dim"))
        parts: list[Part] = [*doing, ("  " if room >= _WIDE else "\n", ""), *_fitted(figures, room)]
        if is_live and state.is_parallel:
            for number, activity in list(state.parallel.open.items())[:8]:
                started = state.parallel.started(number)
                if started is not None and started.worker:
                    name = f"\nw{started.worker} {one_line(started.story, 16)} "
                    parts += [(name, "bold"), (one_line(phase(activity, now), 60), "dim")]
        return parts

    def _doing(self, now: float, *, is_live: bool) -> list[Part]:
        state = self.source.view.state
        if not is_live:
            why = (
                one_line(state.ended.detail, 100) if state.ended else "the next `ralph run` finishes or undoes the rest"
            )
            return [("■ ", ""), (why or (state.ended.reason.value if state.ended else ""), "")]
        if state.wish.is_any and state.paused_since is None:
            word = "stopping" if state.wish.now else "stops" if state.wish.stop else "pauses"
            return [(f"⏸ {word} {'' if state.wish.now else 'after this iteration'}", "warn")]
        if state.paused_since is not None:
            return [(f"⏸ paused for {duration(now - state.paused_since)}", "warn")]
        if state.waiting is not None:
            return [(f"⏸ {one_line(state.waiting.why, 80)}, until {until_when(state.waiting.until, now)}", "warn")]
        if state.is_parallel:
            return [(f"▶ {len(state.parallel.open)} at work", "info")]
        current = state.current
        if current is None:
            return [("▶ between two iterations", "info")]
        what = f"{current.mode.value} {one_line(current.story, 20)}".strip()
        return [(f"▶ {what} ", "info"), (one_line(phase(state.parallel.activity(), now), 50), "dim")]


def _only(rows: Rows, words: str, room: int) -> Rows:
    return (filtered(rows, words) or no_match(words, room)) if words else rows


def _fitted(parts: Iterable[Part], room: int) -> Iterator[Part]:
    for text, style in parts:
        yield cut(text, max(room, 0)), style
        room -= cells(text)
