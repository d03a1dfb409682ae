"""Detect that a silent agent is alive: a tool is running, files are written, CPU time is used."""

from __future__ import annotations

import time
from collections.abc import Callable

from ralph.core.agent import AgentEvent, Compacting, Init, Result, Text, ToolResult, ToolUse

_LEAST_SHARE = 0.02
"""Share of one CPU. A client that hangs still uses a little CPU time for its timers."""


class Occupation:
    """What the agent's events say it is doing: running tools, compacting its context."""

    def __init__(self) -> None:
        self._tools: set[str] = set()
        self._compacting = False

    def see(self, event: AgentEvent) -> None:
        match event:
            case ToolUse(id=call) if call:
                self._tools.add(call)
            case ToolResult(id=call):
                self._tools.discard(call)
            case Compacting(active=active):
                self._compacting = active
            case Text() | Init() | Result():  # the model continues, so what it waited for is over
                self._tools.clear()
                self._compacting = False

    @property
    def is_busy(self) -> bool:
        return self._compacting or bool(self._tools)


class SignsOfLife:
    """Call it repeatedly: the number it returns changes whenever there was activity since the last call."""

    def __init__(
        self,
        occupation: Occupation,
        cpu: Callable[[], float],
        files: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._occupation = occupation
        self._cpu, self._files, self._clock = cpu, files, clock
        self._before: tuple[float, float, object] | None = None
        self._count = 0.0

    def __call__(self) -> float:
        now = self._clock(), self._cpu(), self._files()
        before, self._before = self._before, now
        if self._occupation.is_busy or (before is not None and _differs(before, now)):
            self._count += 1
        return self._count


def _differs(before: tuple[float, float, object], now: tuple[float, float, object]) -> bool:
    at_work = now[1] - before[1] >= _LEAST_SHARE * max(now[0] - before[0], 0.0) and now[1] > before[1]
    return at_work or now[2] != before[2]
