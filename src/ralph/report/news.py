"""Which events of a run are worth a notification. A fold over the journal. Pure."""

from __future__ import annotations

import time
from collections.abc import Iterator

from ralph.core.events import IterationEnded, IterationStarted, Paused, Record, RunEnded, StorySetAside, WaitStarted
from ralph.core.exit_codes import ExitCode
from ralph.core.moves import Reason
from ralph.core.plan import State
from ralph.core.text import one_line
from ralph.core.verdict import Kind
from ralph.journal.run_state import RunState
from ralph.notify.message import Message, Moment
from ralph.report.advice import ADVICE, next_step, why_ended

_LONG = 60.0
"""A shorter wait is over before a notification would be read."""
_MOST = 600


class News:
    """Takes the records in order and returns the messages to send."""

    def __init__(self) -> None:
        self._state = RunState()
        self._questions: list[str] = []
        self._given_up: list[str] = []

    def hear(self, record: Record) -> list[Message]:
        self._state.add(record)
        event, at = record.event, record.t
        match event:
            case IterationEnded(kind=Kind.BLOCKED, story=story, question=question):
                self._questions.append(f"{story} asks: {question}")
            case IterationEnded(story_state=State.FAILED, story=story, headline=headline):
                self._given_up.append(f"gave up on {story}: {headline}")
            case StorySetAside(story=story, why=why):
                self._given_up.append(f"{story} was set aside: {why}")
            case IterationStarted():  # the run continues; otherwise its end is reported
                return [*self._of_stories(at)]
            case WaitStarted(until=until, why=why) if until - at >= _LONG:
                clock = time.strftime("%H:%M", time.localtime(until))
                return [self._message(Moment.LIMIT, f"waiting until {clock}", why, at)]
            case Paused():
                return [self._message(Moment.PAUSED, "paused", "`ralph resume` continues it", at)]
            case RunEnded(reason=reason, detail=detail):
                return [self._ended(reason, detail, at)]
        return []

    def broken_off(self, why: str, at: float) -> Message | None:
        """The run ended without recording it. None if it did record it, or never started."""
        if self._state.started is None or self._state.ended is not None:
            return None
        return self._message(Moment.FAILED, "ended unexpectedly", why, at, code=ExitCode.UNFINISHED)

    def _of_stories(self, at: float) -> Iterator[Message]:
        if asked := self._questions:
            self._questions = []
            yield self._message(Moment.BLOCKED, "a story needs an answer", "; ".join(asked), at)
        if given_up := self._given_up:
            self._given_up = []
            text = "; ".join(given_up) + "\nThe run continues with the other stories. Next: `ralph retry ID`"
            yield self._message(Moment.FAILED, "a story failed", text, at)

    def _ended(self, reason: Reason, detail: str, at: float) -> Message:
        news = ADVICE[reason]
        done = {Reason.COMPLETE: "every story is done", Reason.NAMED_STORIES: "the stories you named are done"}
        done |= {Reason.UNPROVEN: "stopped: stories are unproven"}
        title = done.get(reason) or f"stopped: {reason.value.replace('-', ' ')}"
        text = f"{detail or why_ended(self._state)}\nNext: {next_step(self._state)}"
        return self._message(news.news, title, text, at, reason=reason.value, code=reason.exit_code)

    def _message(
        self, event: Moment, title: str, text: str, at: float, *, reason: str = "", code: ExitCode | None = None
    ) -> Message:
        state = self._state
        started = state.started
        name = one_line(started.name, 60) if started else ""
        done = f"{state.done}/{state.total} stories"
        text = "\n".join(one_line(line, _MOST) for line in text.splitlines() if line.strip())
        return Message(
            event=event,
            title=f"Ralph, {name}: {title}" if name else f"Ralph: {title}",
            text=f"{text}\n{done}" if state.total else text,
            run=started.run if started else "",
            plan=name,
            workspace=started.workspace if started else "",
            reason=reason,
            exit_code=int(code) if code is not None else None,
            done=state.done,
            total=state.total,
            cost_usd=state.cost_usd,
            at=time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)),
        )
