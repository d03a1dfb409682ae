"""`ralph watch`: show a run live, from any terminal."""

from __future__ import annotations

import os
import time
from argparse import Namespace
from collections.abc import Callable

from ralph.cli.output import can_draw, note, say_raw
from ralph.cli.plain_view import PlainView
from ralph.cli.summary import print_summary
from ralph.core.events import Record, Settling
from ralph.core.exit_codes import ExitCode
from ralph.core.text import one_line, plural
from ralph.host.process.table import ProcessId
from ralph.host.process.tree import is_alive as is_process_alive
from ralph.journal.records import Follower, damage
from ralph.journal.run_state import RunState
from ralph.journal.statistics import Tally
from ralph.state.locks import is_alive
from ralph.views.words import moment
from ralph.workspace.find import root_of
from ralph.workspace.runs import choice_of, run_to_watch

_TICK = 0.15
_MOST_OPEN = 8
_EARLIER = 8
"""Number of earlier lines shown on a terminal."""


def run(args: Namespace) -> int:
    target = run_to_watch(root_of(args, os.environ), choice_of(args), args.run, os.environ)
    watched = _Watched()
    news = Follower(target.journal)
    try:
        if args.plain or not can_draw():
            view = PlainView(verbose=args.verbose)
            _follow(news, watched, view)
        else:
            _follow_live(news, watched, verbose=args.verbose)
    except KeyboardInterrupt:
        note(f"\nrun {target.run} continues; `ralph watch` shows it again, `ralph stop` stops it")
        return int(ExitCode.COMPLETE)
    if watched.state.ended is not None:
        print_summary(watched.state, watched.tally.figures())
        return int(ExitCode.COMPLETE)
    for line in watched.epitaph(target.run, damage(target.journal)):
        note(line, "yellow")
    return int(ExitCode.UNFINISHED)


class _Watched:
    """The state of the run and the view that shows it."""

    def __init__(self) -> None:
        self.state = RunState()
        self.tally = Tally()
        self._settling: Settling | None = None

    def add(self, record: Record) -> None:
        self.state.add(record)
        self.tally.add(record)
        if isinstance(record.event, Settling):
            self._settling = record.event

    def epitaph(self, run: str, damaged: str) -> list[str]:
        """Report a run that died without a summary, and what the next run will do."""
        state = self.state
        when = f" after {moment(state.now)}" if state.now else ""
        lines = [f"run {run} died{when}: it was killed, or the machine shut down"]
        if damaged:
            return [*lines, f"{damaged}; the next `ralph run` undoes nothing: look at `git status`"]
        if (current := state.current) is None:
            return [*lines, "nothing was left open; `ralph run` continues with the next story"]
        if state.is_parallel:
            return [*lines, *self._several()]
        name = f"iteration {current.iteration} ({one_line(current.story, 40) or 'set-up'})"
        agent = state.agent
        if agent is not None and is_process_alive(ProcessId(agent.pid, agent.start)):
            lines.append(f"its agent is still running (pid {agent.pid}); the next `ralph run` stops it first")
        settling = self._settling
        if settling is not None and settling.iteration == current.iteration and settling.keep:
            return [*lines, f"{name} was accepted but not committed yet; the next `ralph run` commits it"]
        return [*lines, f"{name} was open; the next `ralph run` saves its work under refs/ralph/rescue/ and undoes it"]

    def _several(self) -> list[str]:
        """What a run with several workers left open."""
        started = self.state.started_by_workers
        names = ", ".join(one_line(each.story, 40) or each.mode.value for each in started[:_MOST_OPEN])
        names += " …" if len(started) > _MOST_OPEN else ""
        count = plural(len(started), "iteration")
        return [f"{count} {'was' if len(started) == 1 else 'were'} open ({names}); the next `ralph run` continues"]


def _follow_live(news: Follower, watched: _Watched, *, verbose: bool) -> None:
    from ralph.cli.live_view import LiveView

    view = LiveView(verbose=verbose, attached=True)
    earlier = []
    for record in news.news():
        watched.add(record)
        if line := view.add(record):
            earlier.append(line)
    if len(earlier) > _EARLIER:
        say_raw(f"… {len(earlier) - _EARLIER} earlier lines: `ralph log` shows them")
    for line in earlier[-_EARLIER:]:
        say_raw(line)
    if watched.state.ended is None and is_alive(watched.state.started):
        with view:
            _follow(news, watched, view)


def _follow(news: Follower, watched: _Watched, view: Callable[[Record], None]) -> None:
    """Follow the run until it ends or its process is gone."""
    while True:
        alive = is_alive(watched.state.started)  # asked first: it may write its last records in between
        for record in news.news():
            watched.add(record)
            view(record)
        if watched.state.ended is not None or not alive:
            return
        time.sleep(_TICK)
