"""An agent whose last output is kept whole. A run keeps only its end; a planning answer needs all of it."""

from __future__ import annotations

from collections.abc import Iterator

from ralph.core.agent import AgentEvent, Result, Text
from ralph.core.ports import Agent, Launch, Reader, Session

_MOST = 2_000_000


class Overheard:
    """The same agent, for one process."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._texts: list[str] = []
        self._size = 0
        self._result = ""

    @property
    def NAME(self) -> str:
        return self._agent.NAME

    @property
    def TITLE(self) -> str:
        return self._agent.TITLE

    @property
    def ENV(self) -> tuple[str, ...]:
        return self._agent.ENV

    @property
    def HOOKS(self) -> bool:
        return self._agent.HOOKS

    @property
    def REPORTS_CALLS(self) -> bool:
        return self._agent.REPORTS_CALLS

    def find(self, session: Session, path: str) -> str:
        return self._agent.find(session, path)

    def launch(self, session: Session, program: str) -> Launch:
        return self._agent.launch(session, program)

    def reader(self) -> Reader:
        read = self._agent.reader()

        def listen(line: bytes) -> Iterator[AgentEvent]:
            for event in read(line):
                self._hear(event)
                yield event

        return listen

    @property
    def answer(self) -> str:
        """Its result, or its whole output if its client reports no result."""
        return self._result if self._result.strip() else "\n".join(self._texts)

    def _hear(self, event: AgentEvent) -> None:
        if isinstance(event, Result):
            self._result = event.text
        elif isinstance(event, Text) and self._size < _MOST:
            self._size += len(event.text)
            self._texts.append(event.text)
