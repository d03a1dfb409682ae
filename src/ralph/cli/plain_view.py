"""A run as lines, for logs and for `--plain`. It never asks a question."""

from __future__ import annotations

import sys

from ralph.cli.output import folded, say_raw, wants_colour
from ralph.core.events import Record
from ralph.journal.run_state import RunState
from ralph.views import lines
from ralph.views.paint import unpainted
from ralph.views.words import clock


class PlainView:
    def __init__(self, *, verbose: bool = False) -> None:
        self._state = RunState()
        self._verbose = verbose

    def __call__(self, record: Record) -> None:
        self._state.add(record)
        line = describe(record, self._state, verbose=self._verbose)
        if line:
            # Times are for logs; a terminal shows each line as it happens.
            stamp = "" if sys.stdout.isatty() else f"{clock(record.t)} "
            line = stamp + line.replace("\n", f"\n{' ' * len(stamp)}")
            say_raw(folded(line, sys.stdout), at_once=True)


def describe(record: Record, state: RunState, *, verbose: bool = False) -> str:
    """The text of a record for stdout, painted if that is a terminal."""
    line = lines.describe(record, state, verbose=verbose)
    return line if wants_colour(sys.stdout) else unpainted(line)
