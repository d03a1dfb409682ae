"""The running sessions as far as the journal tells of them: a picture is made where no raw log may be left."""

from __future__ import annotations

from collections import deque

from ralph.core.agent import Compacting, Retry, Text, Tokens, ToolUse
from ralph.core.events import AgentEnded, AgentSaid, AgentStarted, IterationEnded, Record
from ralph.core.text import clean, one_line
from ralph.workspace.agent_stream import Call

_KEPT = 20
_LONGEST = 20_000
_LINES = 6


class JournalSession:
    """What the agent of one session said and did, for `views.panel`."""

    def __init__(self) -> None:
        self.recent: deque[str | Call] = deque(maxlen=_KEPT)
        self.retry: Retry | None = None
        self.is_compacting = False
        self.tokens = Tokens()
        """Nothing: the journal has them when the session has ended, and the state of the run then counts them."""
        self.cost_usd: float | None = None

    def add(self, said: object, now: float) -> None:
        self.end_call()
        match said:
            case Text(text):
                lines = [line for line in clean(text[-_LONGEST:]).splitlines() if line.strip()]
                self.recent.extend(one_line(line, 1000) for line in lines[-_LINES:])
            case ToolUse(name, summary, id):
                self.recent.append(Call(id, one_line(summary or name, 300), now))
            case Retry():
                self.retry = said
            case Compacting(active):
                self.is_compacting = active
        if not isinstance(said, Retry):
            self.retry = None

    def end_call(self) -> None:
        """The agent went on, so its last call has ended. How it ended is in no journal."""
        if self.recent and isinstance(call := self.recent[-1], Call):
            call.ok = True


class Sessions(dict[int, JournalSession]):
    """By iteration: its running session, or its last one."""

    def add(self, record: Record) -> None:
        match record.event:
            case AgentStarted(iteration=iteration):
                self[iteration] = JournalSession()
            case AgentSaid(iteration=iteration, event=said) if iteration in self:
                self[iteration].add(said, record.t)
            case AgentEnded(iteration=iteration) if iteration in self:
                self[iteration].end_call()
            case IterationEnded(iteration=iteration):
                self.pop(iteration, None)
