"""Watch one client's hooks from outside: whether they run at all, and what they answered."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import msgspec

from ralph.core.agent import AgentEvent, Text, ToolResult, ToolUse, Usage
from ralph.core.events import HookAnswered
from ralph.core.ports import HookFiles
from ralph.core.text import clean
from ralph.host.files import open_state, write_bytes
from ralph.host.redaction import redact
from ralph.state.names import CONTEXT_TOKENS, CONTEXT_WINDOW

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
