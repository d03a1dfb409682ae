"""The running sessions as far as the journal tells of them: a picture is made where no raw log may be left."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from ralph.core.agent import AgentEvent, Compacting, Retry, Text, Tokens, ToolUse
from ralph.core.events import AgentEnded, AgentSaid, AgentStarted, IterationEnded, Record
from ralph.core.text import clean, one_line
from ralph.workspace.agent_stream import Call

_KEPT = 20
_LONGEST = 20_000
_LINES = 6


class JournalSession:
    """What the agent of one session said and did, for `views.panel`. Read only when it is shown."""

    def __init__(self) -> None:
        self._said: deque[tuple[Text | ToolUse, float]] = deque(maxlen=_KEPT)
        self._is_calling = False
        self.retry: Retry | None = None
        self.is_compacting = False
        self.tokens = Tokens()
        """Nothing: the journal has them when the session has ended, and the state of the run then counts them."""
        self.cost_usd: float | None = None

    def add(self, said: AgentEvent, now: float) -> None:
        self._is_calling = isinstance(said, ToolUse)
        self.retry = said if isinstance(said, Retry) else None
        if isinstance(said, Text | ToolUse):
            self._said.append((said, now))
        elif isinstance(said, Compacting):
            self.is_compacting = said.active

    def end(self) -> None:
        self._is_calling = False

    @property
    def recent(self) -> list[str | Call]:
        return list(self._recent())

    def _recent(self) -> Iterator[str | Call]:
        for number, (said, at) in enumerate(self._said, 1):
            if isinstance(said, Text):
                lines = [line for line in clean(said.text[-_LONGEST:]).splitlines() if line.strip()]
                yield from (one_line(line, 1000) for line in lines[-_LINES:])
            else:  # how a call ended is in no journal; that the agent went on is
                is_running = self._is_calling and number == len(self._said)
                yield Call(said.id, one_line(said.summary or said.name, 300), at, ok=None if is_running else True)


class Sessions(dict[int, JournalSession]):
    """By iteration: its running session, or its last one."""

    def add(self, record: Record) -> None:
        match record.event:
            case AgentStarted(iteration=iteration):
                self[iteration] = JournalSession()
            case AgentSaid(iteration=iteration, event=said) if iteration in self:
                self[iteration].add(said, record.t)
            case AgentEnded(iteration=iteration) if iteration in self:
                self[iteration].end()
            case IterationEnded(iteration=iteration):
                self.pop(iteration, None)
