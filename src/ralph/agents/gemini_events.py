"""The stream of Gemini CLI: one JSON object per line, and its attempts to reach the model on stderr."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from ralph.agents.api_errors import api_error
from ralph.agents.tool_words import summarise
from ralph.agents.untyped import count, decode, members, text
from ralph.core.agent import (
    AgentEvent,
    Init,
    Limit,
    ModelUse,
    Result,
    Retry,
    Text,
    Tokens,
    ToolResult,
    ToolUse,
    Trouble,
)
from ralph.core.ports import ClientEnd
from ralph.core.text import one_line
from ralph.hooks.dialects.gemini import TOOLS

_RETURNED = 4000
"""Characters kept of a tool's output."""
_ATTEMPT = re.compile(
    r"^Attempt (?P<number>\d+) failed(?: with status (?P<status>\d{3})| with (?P<kind>429|5xx) error)?"
    r"(?:: (?P<why>.*?))?\. (?P<then>Retrying|Max attempts)(?:.*?after (?P<pause>\d+)ms)?(?P<rest>.*)"
)
_MOST_ATTEMPTS = 4
"""Failed requests in a row. Without a model in its settings the client makes more of them than the settings say, and
falls back to other models; ended by itself, it reports what the session used."""
_LONGEST_PAUSE = 30.0
"""Seconds between two requests. The loop waits as well, and says so."""
_LIMIT = 120.0
"""Seconds. A service that asks for more patience is not busy: a limit is used up."""
_RESET = re.compile(r"(?:Suggested retry after|Please retry in) (\d+(?:\.\d+)?)s")
_LOGIN_NEEDED = 41
"""The exit code of a client that has no login."""
_NOT_AUTHENTICATED = "api key not valid|api_key_invalid|api key expired|please set an auth method"


class GeminiEvents:
    """A reader for one process."""

    def __init__(self) -> None:
        self._said: list[str] = []
        """Pieces of the message that is being written."""
        self._last = ""
        """The last whole message."""
        self._worked = False
        self._failed = 0
        """Requests in a row that failed."""
        self._why = ""
        self._status = 0
        self._turns = 0
        self._ended = False

    def is_torn(self, line: bytes) -> bool:
        return line.lstrip()[:1] == b"{" and not decode(line)

    def __call__(self, line: bytes) -> Iterable[AgentEvent]:
        event = decode(line)
        match event.get("type"):
            case "init":
                return [Init(text(event.get("model")), text(event.get("session_id")))]
            case "message" if event.get("role") == "assistant":
                self._failed, self._worked = 0, True
                self._said.append(text(event.get("content")))
                return []
            case "tool_use":
                self._failed, self._worked = 0, True
                self._turns += 1
                return [*self._message(), _tool_use(event)]
            case "tool_result":
                return [*self._message(), _tool_result(event)]
            case "error":
                self._why = text(event.get("message")) if event.get("severity") == "error" else self._why
                return self._message()
            case "result":
                self._ended = True
                return [*self._message(), *self._result(event)]
            case _:
                return []

    def error(self, line: bytes) -> Iterable[AgentEvent]:
        """The client reports failed requests only here."""
        found = _ATTEMPT.match(line.decode("utf-8", "replace"))
        if found is None:
            return []
        kind = found["kind"] or ""
        self._failed += 1
        self._status = int(found["status"] or (500 if kind == "5xx" else kind or 0))
        told = api_error(found["why"] or found["rest"], self._status or 429)
        self._why = told.message.strip() or self._why
        self._status = self._status or told.status
        events: list[AgentEvent] = [Retry(self._failed, self._status or None, one_line(self._why, 200))]
        pause = int(found["pause"] or 0) / 1000
        if (self._failed >= _MOST_ATTEMPTS and found["then"] == "Retrying") or pause > _LONGEST_PAUSE:
            is_limit = pause > _LIMIT
            trouble = Trouble.LIMIT if is_limit else Trouble.TRANSPORT
            events += [Limit(True, time.time() + pause, one_line(self._why, 80))] if is_limit else []
            events.append(Result(ok=False, trouble=trouble, detail=one_line(self._why, 300), gives_up=True))
        return events

    def finish(self, end: ClientEnd) -> Iterable[AgentEvent]:
        events = self._message()
        if not self._ended and end.code == _LOGIN_NEEDED:
            detail = one_line(end.stderr.strip() or "the client is not logged in", 300)
            events.append(Result(ok=False, trouble=Trouble.AUTHENTICATION, detail=detail))
        return events

    def _message(self) -> list[AgentEvent]:
        """The message so far, which arrived in pieces."""
        said, self._said = "".join(self._said), []
        if not said.strip():
            return []
        self._last = said
        return [Text(said)]

    def _result(self, event: dict[str, Any]) -> list[AgentEvent]:
        stats = members(event.get("stats"))
        uses = tuple(
            ModelUse(text(name), _tokens(members(used))) for name, used in members(stats.get("models")).items()
        )
        uses = tuple(sorted(uses, key=lambda use: -use.tokens.total))
        more: dict[str, Any] = {
            "tokens": _tokens(stats),
            "turns": self._turns + 1,
            "models": tuple(use.model for use in uses),
            "uses": uses,
        }
        if event.get("status") == "success":
            if not self._worked:
                detail = one_line(self._why or "the model gave no answer", 300)
                return [Result(ok=False, trouble=Trouble.EMPTY, detail=detail, **more)]
            return [Result(ok=True, text=self._last, **more)]
        message = text(members(event.get("error")).get("message")) or self._why
        kind = text(members(event.get("error")).get("type"))
        if self._failed:  # it retries what may pass; what does not, it reports at once
            return [Result(ok=False, trouble=Trouble.TRANSPORT, detail=one_line(message, 300), **more)]
        if re.search(_NOT_AUTHENTICATED, message, re.IGNORECASE) or kind == "FatalAuthenticationError":
            told = api_error(message)
            detail = one_line(told.message, 300)
            return [Result(ok=False, trouble=Trouble.AUTHENTICATION, detail=detail, **more)]
        if kind == "INVALID_STREAM" and not self._worked:
            return [Result(ok=False, trouble=Trouble.EMPTY, detail=one_line(message, 300), **more)]
        found = api_error(message, 0, kind)
        if reset := _RESET.search(message):
            found = msgspec.structs.replace(found, resets_at=time.time() + float(reset[1]))
        return [*found.limit(), found.result(**more)]


def _tool_use(event: dict[str, Any]) -> ToolUse:
    tool, given = text(event.get("tool_name")), members(event.get("parameters"))
    name = TOOLS[tool][0] if tool in TOOLS else tool
    path, command = text(given.get("file_path")), text(given.get("command"))
    return ToolUse(name, summarise(name, given, ""), text(event.get("tool_id")), path, command)


def _tool_result(event: dict[str, Any]) -> ToolResult:
    said = text(members(event.get("error")).get("message")) or text(event.get("output"))
    return ToolResult(text(event.get("tool_id")), event.get("status") == "success", said[:_RETURNED])


def _tokens(stats: dict[str, Any]) -> Tokens:
    """`input_tokens` includes what was cached; only the total includes what the model thought."""
    total, read, written, cached = (
        count(stats.get(name)) for name in ("total_tokens", "input_tokens", "output_tokens", "cached")
    )
    return Tokens(max(read - cached, 0), max(total - read, written), cached)
