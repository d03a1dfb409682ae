"""The frames of an animated picture: the lines of a run above its live panel, at the moments that are shown. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import groupby

from msgspec import Struct

from ralph.core.events import IterationEnded, Record
from ralph.core.history import History, fold
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.journal.run_state import RunState
from ralph.recording.pace import Moment, paced
from ralph.recording.sessions import Sessions
from ralph.recording.spans import Line, line_of, wrapped
from ralph.views.lines import describe
from ralph.views.paint import paint
from ralph.views.panel import Panel

_UNFINISHED = "no end is recorded: the run was killed, or it is still running"
_LONGEST = 4000
"""Characters of one description; more would scroll past unread."""


class Size(Struct, frozen=True):
    columns: int = 100
    rows: int = 25


class Frame(Struct, frozen=True):
    seconds: float
    log: tuple[Line, ...]
    """The rows at the top."""
    panel: tuple[Line, ...]
    """The rows below."""

    @property
    def lines(self) -> tuple[Line, ...]:
        return self.log + self.panel


class Storyboard(Struct, frozen=True):
    size: Size
    title: str
    started: float
    frames: tuple[Frame, ...]

    @property
    def seconds(self) -> float:
        return sum(frame.seconds for frame in self.frames)


def storyboard(records: Sequence[Record], size: Size, limit: float) -> Storyboard:
    """All frames together take at most `limit` seconds."""
    stage = _Stage(size)
    frames: list[Frame] = []
    done = 0
    for after, moments in groupby(paced(records, limit), key=lambda moment: moment.after):
        for record in records[done : after - 1]:
            stage.add(record)
        stage.show(records[after - 1])
        done = after
        if done == len(records):
            stage.close()
        frames += [stage.frame(moment) for moment in moments]
    state = stage.state
    name = one_line(state.started.name, 60) if state.started else ""
    return Storyboard(size, f"ralph run · {name}" if name else "ralph run", state.started_at, _merged(frames))


class _Stage:
    """What is seen at a moment."""

    def __init__(self, size: Size) -> None:
        self.state = RunState()
        self._size = size
        self._history = History()
        self._sessions = Sessions()
        self._log: deque[Line] = deque(maxlen=size.rows)
        self._held: tuple[Line, ...] = ()

    def add(self, record: Record) -> None:
        self.state.add(record)
        self._history = fold(self._history, record.event, record.t)
        self._sessions.add(record)
        if text := describe(record, self.state):
            self._print(text)

    def show(self, record: Record) -> None:
        """Add a record that is seen. What a rejected agent said stays beside the verdict."""
        is_rejection = isinstance(record.event, IterationEnded) and record.event.kind is not Kind.ACCEPTED
        before = self._panel(record.t) if is_rejection and not self.state.is_parallel else ()
        self.add(record)
        self._held = before

    def close(self) -> None:
        if self.state.ended is None:
            self._print(paint(_UNFINISHED, "yellow"))

    def _print(self, text: str) -> None:
        self._log.extend(wrapped(text[:_LONGEST], self._size.columns))

    def frame(self, moment: Moment) -> Frame:
        panel, self._held = self._held or self._panel(moment.now), ()
        room = self._size.rows - len(panel)
        log = tuple(self._log)[-room:] if room else ()
        return Frame(moment.seconds, log, panel)

    def _panel(self, now: float) -> tuple[Line, ...]:
        if self.state.started is None or not (self.state.stories or self.state.current):
            return ()
        most = self._size.rows * 3 // 5
        panel = Panel(self.state, self._history, now, self._sessions, fills=True)
        return tuple(line_of(line) for line, _ in panel.rows(self._size.columns, most)[:most])


def _merged(frames: Sequence[Frame]) -> tuple[Frame, ...]:
    """Frames that look the same as one."""
    groups = groupby(frames, key=lambda frame: (frame.log, frame.panel))
    return tuple(Frame(sum(frame.seconds for frame in same), *look) for look, same in groups)
