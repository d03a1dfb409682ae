"""Watch an agent from outside: is it alive while it is silent, do its hooks run, and what did they answer?"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from ralph.core.agent import AgentEvent, Compacting, Init, Result, Text, ToolResult, ToolUse, Usage
from ralph.core.events import HookAnswered
from ralph.core.ports import HookFiles
from ralph.core.text import clean
from ralph.host.files import open_state, write_bytes
from ralph.host.redaction import redact
from ralph.state.names import CONTEXT_TOKENS, CONTEXT_WINDOW

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


_MOST = 500
_LIMIT = 8 * 1024 * 1024


class Unguarded(Exception):
    """The client runs without Ralph's hooks, so nothing would check its next tool call."""


class TestsFailed(Exception):
    """`rollback: immediate`: tests failed, so the iteration ends here."""


class HookWatch:
    def __init__(self, files: HookFiles, canary: str, window: int = 0) -> None:
        if window:
            with contextlib.suppress(OSError):
                (files.state / CONTEXT_WINDOW).write_text(str(window))
        self._read = 0
        self._files = files
        self._canary = canary
        self.is_silent = False
        """The client was working, but no hook had been called."""

    def see(self, event: AgentEvent) -> None:
        """A client calls the SessionStart hook before its first request to the model.

        Once the model has answered, there is at least one record, or the hooks do not run.
        """
        if isinstance(event, Usage) and event.context:
            self._tell_context(event.context)
        if isinstance(event, ToolResult) and (command := self._asks_for_rollback()):
            raise TestsFailed(f"tests failed, so the iteration is rolled back at once: {command}")
        if isinstance(event, (Text, ToolUse)) and not self.is_silent and not self._has_sung():
            self.is_silent = True
            if self._canary == "stop":
                raise Unguarded("the client runs without Ralph's hooks: none was called at session start")

    def _asks_for_rollback(self) -> str:
        """The command whose tests failed, if a hook asked for an immediate rollback."""
        try:
            with open_state(self._files.records) as stream:
                stream.seek(self._read)
                data = stream.read(_LIMIT)
        except OSError:
            return ""
        whole = data[: data.rfind(b"\n") + 1]
        self._read += len(whole)
        for record in map(_decode, whole.splitlines()):
            if record.get("event") == "rollback":
                return clean(str(record.get("subject") or "tests"))[:200]
        return ""

    def _has_sung(self) -> bool:
        try:
            return self._files.records.stat().st_size > 0
        except OSError:
            return False

    def _tell_context(self, tokens: int) -> None:
        """For the hook that warns when the context fills up: a session that is not saved has no transcript to read."""
        with contextlib.suppress(OSError):
            (self._files.state / CONTEXT_TOKENS).write_text(str(tokens))

    def redact(self) -> None:
        """After the session: a hook records commands as they are, because it has no time to look for secrets."""
        with contextlib.suppress(OSError):
            data = self._files.records.read_bytes()
            if (clean_data := redact(data)) is not data:
                write_bytes(self._files.records, clean_data, mode=0o600, durable=False)

    def decisions(self) -> dict[str, str]:
        """The hooks' answer to each tool call, by its id."""
        records = map(_decode, self._lines())
        return {
            str(record.get("id")): str(record.get("answer") or "")
            for record in records
            if record.get("event") == "PreToolUse" and record.get("id")
        }

    def tests_failed(self) -> str:
        """The command of the last recognised test run, if it failed."""
        last: dict[str, Any] = {}
        for record in map(_decode, self._lines()):
            if record.get("event") == "tests":
                last = record
        return clean(str(last.get("command") or "tests"))[:200] if last.get("failed") else ""

    def _lines(self) -> list[bytes]:
        try:
            with open_state(self._files.records) as stream:
                return stream.read(_LIMIT).splitlines()
        except OSError:
            return []

    def answers(self, iteration: int) -> Iterator[HookAnswered]:
        """The hooks' messages to the agent and their errors, in order."""
        told = 0
        if self.is_silent:
            yield HookAnswered(iteration=iteration, hook="canary", error="no hook was called at session start")
        for record in map(_decode, self._lines()):
            is_news = record.get("answer") not in (None, "", "allow")
            if told < _MOST and (is_news or record.get("error") or record.get("event") == "rollback"):
                told += 1
                yield _answered(record, iteration)


def _decode(line: bytes) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}
    return value if isinstance(value, dict) else {}


def _answered(record: dict[str, Any], iteration: int) -> HookAnswered:
    def text(name: str, most: int = 500) -> str:
        return clean(str(record.get(name) or ""))[:most]

    return HookAnswered(
        iteration=iteration,
        hook=text("event"),
        tool=text("tool"),
        subject=text("subject"),
        answer=text("answer"),
        category=text("category"),
        reason=text("reason"),
        error=text("error"),
        output=text("output", 20_000),
    )
