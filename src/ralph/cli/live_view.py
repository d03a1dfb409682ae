"""A run on a terminal: a live panel below the lines of finished events.

`ralph run` and `ralph watch` show the same panel: it is computed from the records of the journal and the raw log of the
session that is running.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from ralph.cli.output import can_say, wants_colour
from ralph.cli.plain_view import describe
from ralph.cli.screen import Screen
from ralph.cli.ui_key import UiKey
from ralph.core.events import AgentStarted, IterationEnded, IterationStarted, Record, RunEnded
from ralph.core.history import History, fold
from ralph.journal.run_state import RunState
from ralph.state.places import workspace_state
from ralph.state.runs import journal_path
from ralph.views.paint import unpainted
from ralph.views.panel import Panel, Row
from ralph.workspace.agent_stream import AgentStream, session_stream

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
        self._key = UiKey(self._screen, self._journal)

    @property
    def state(self) -> RunState:
        return self._state

    def __enter__(self) -> LiveView:
        self._screen.start()
        self._key.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._key.stop()
        self._screen.stop()
        for stream in self._streams.values():
            stream.close()

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """No drawing while the user is asked a question."""
        with self._key.held(), self._screen.held():
            yield

    def _journal(self) -> Path | None:
        started = self._state.started
        return journal_path(workspace_state(Path(started.workspace), os.environ), started.run) if started else None

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
            # Where an ellipsis is written as three dots, they need two columns more.
            room = columns - (1 if can_say("…") else 3)
            shown = self._panel(time.time()).rows(room, max(rows * 2 // 3, min(_LEAST, rows - 1)))
        return shown if wants_colour(sys.stdout) else [(unpainted(line), width) for line, width in shown]

    def _panel(self, now: float) -> Panel:
        offers = "u: ralph ui" if self._key.is_offered else ""
        if self._attached:
            return Panel(self._state, self._history, now, self._streams, offers=offers)
        resumes, stops = "`ralph resume` or Ctrl-\\", "Ctrl-C stops"
        return Panel(self._state, self._history, now, self._streams, resumes, stops, offers)
