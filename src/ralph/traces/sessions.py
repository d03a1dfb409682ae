"""The spans of agents' sessions, and what they cost. Pure.

Tool calls are events of a session, not spans: a journal says when a call began, not when it ended, and Claude Code
sends spans of its own for them.
"""

from __future__ import annotations

from ralph.core import events as told
from ralph.core.agent import AgentEvent, Init, Limit, Retry, ToolUse
from ralph.core.money import MICROS, micros
from ralph.core.text import one_line
from ralph.traces import gen_ai
from ralph.traces.span import OpenSpan, Status, Tree

SessionEvent = told.AgentStarted | told.AgentSaid | told.AgentEnded | told.Charged | told.HookAnswered


class Sessions:
    def __init__(self, tree: Tree, agent: str, model: str) -> None:
        self._tree, self._agent, self._model = tree, agent, model
        self._open: dict[int, OpenSpan] = {}
        """By iteration; one works at a time."""
        self._charged_later: dict[int, tuple[OpenSpan, float]] = {}
        """Those that have ended, and when: the record of their cost follows."""
        self._spent: dict[int, int] = {}
        """Micros, by iteration."""
        self._total: int | None = None

    def see(self, event: SessionEvent, parent: OpenSpan) -> None:
        """`parent`: the iteration's span."""
        number = event.iteration
        match event:
            case told.AgentStarted():
                self.settle(number)
                self._start(event, parent)
            case told.AgentSaid(event=said):
                if (session := self._open.get(number)) is not None:
                    self._hear(session, said)
            case told.AgentEnded():
                self.settle(number)
                self._end(event, parent)
            case told.Charged():
                self._charge(event)
            case told.HookAnswered() if event.answer not in ("", "allow"):
                span = self._open.get(number, parent)
                about = {"hook": event.hook, "tool": event.tool, "answer": event.answer, "category": event.category}
                self._tree.tell(span, "hook", **about)

    def settle(self, number: int) -> None:
        """What follows is about something else: no record of a cost will come."""
        if number in self._charged_later:
            span, end = self._charged_later.pop(number)
            self._tree.finish(span, end=end)

    def settle_all(self) -> None:
        for number in list(self._charged_later):
            self.settle(number)

    def forget(self, number: int) -> float | None:
        """The iteration has ended. Returns its cost in dollars, if that is known."""
        self._open.pop(number, None)
        return _dollars(self._spent.pop(number, None))

    @property
    def cost(self) -> float | None:
        return _dollars(self._total)

    def _start(self, event: told.AgentStarted, parent: OpenSpan) -> None:
        agent = event.agent or self._agent
        span = self._tree.open(parent, f"invoke_agent {agent}", "session", event.iteration, event.step)
        span.put(gen_ai.started(event, agent, self._model if agent == self._agent else ""))
        self._open[event.iteration] = span

    def _end(self, event: told.AgentEnded, parent: OpenSpan) -> None:
        ended, outcome = event.ended, event.outcome
        span = self._open.pop(event.iteration, None)
        if span is None or span.is_finished:  # it never started
            start = self._tree.now - max(ended.seconds, 0)
            name = f"invoke_agent {outcome.agent or self._agent}"
            span = self._tree.open(parent, name, "unstarted", event.iteration, event.step, start=start)
        span.put(gen_ai.ended(outcome.agent or self._agent, outcome))
        span.put({"ralph.ended": ended.how.value, "process.exit.code": ended.code})
        if outcome.trouble is not None or not ended.well or (outcome.finished and not outcome.ok):
            trouble = outcome.trouble.value if outcome.trouble else "failed" if ended.well else ended.how.value
            span.put({"error.type": trouble})
            span.judge(Status.ERROR, trouble if ended.code is None else f"{trouble}, exit code {ended.code}")
        self._charged_later[event.iteration] = span, self._tree.now

    def _charge(self, event: told.Charged) -> None:
        amount, number = micros(event.usd), event.iteration
        if number in self._charged_later:
            span, _ = self._charged_later[number]
            span.put({"ralph.cost.usd": _dollars(amount), "ralph.cost.basis": event.basis.value})
            self.settle(number)
        if amount is not None:
            self._total = (self._total or 0) + amount
            self._spent[number] = self._spent.get(number, 0) + amount

    def _hear(self, session: OpenSpan, said: AgentEvent) -> None:
        match said:
            case Init():
                session.put(gen_ai.introduced(said))
            case ToolUse(name=name):
                self._tree.tell(session, "tool call", tool=one_line(name, 60))
            case Limit(rejected=True):
                self._tree.tell(session, "usage limit", kind=said.kind)
            case Retry():
                self._tree.tell(session, "retry", attempt=said.attempt, status=said.status)


def _dollars(amount: int | None) -> float | None:
    return None if amount is None else amount / MICROS
