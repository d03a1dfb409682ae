"""The stream of goose: `message`, `notification`, `error`, `complete`, one object a line.

A text arrives in pieces with the same id. Errors of the service are text, too, and the exit code is 0; what the service
answered is in the client's log.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ralph.agents.api_errors import ApiError, api_error
from ralph.agents.tool_words import summarise
from ralph.agents.untyped import count, decode, items, members, text
from ralph.core.agent import AgentEvent, Compacting, Init, Result, Text, Tokens, ToolResult, ToolUse, Trouble
from ralph.core.ports import ClientEnd
from ralph.core.text import one_line

_FAILED = "Ran into this error: "
_AFTERWARDS = "Please retry if you think this is a transient or recoverable error."
_EMPTY = "The model returned an empty response."
"""goose says so itself, after it has asked again."""
_NOT_SET_UP = re.compile(r"(?i)no provider configured|configuration value not found|failed to create provider")
_PAYLOAD = re.compile(r'"(type|code|resets_at|resets_in_seconds)": (?:String\("([^"]*)"\)|Number\((\d+)\))')
_RETURNED = 2000
_LONGEST_LOG = 1_000_000
_LONGEST_TEXT = 1_000_000


class GooseEvents:
    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._id = ""
        self._last = ""
        self._size = 0
        self._model = ""
        self._tools = 0
        self._error = ""
        self._complete: dict[str, Any] = {}
        self._other = ""

    def __call__(self, line: bytes) -> list[AgentEvent]:
        event = decode(line)
        match event.get("type"):
            case "message":
                return [*self._message(members(event.get("message")))]
            case "error":
                self._error = text(event.get("error")) or self._error
            case "complete":
                self._complete = event
                return self._said()
            case None if stray := line.decode("utf-8", "replace").strip():
                self._other = stray[:_RETURNED]
        return []

    def _message(self, message: dict[str, Any]) -> Iterator[AgentEvent]:
        model = text(members(members(message.get("metadata")).get("inference")).get("requestedModel"))
        if model and model != self._model:
            self._model = model
            yield Init(model=model)
        if text(message.get("id")) != self._id:
            yield from self._said()
            self._id = text(message.get("id"))
        is_agent = message.get("role") == "assistant"
        for item in items(message.get("content")):
            kind, said = item.get("type"), text(item.get("text"))
            if kind == "text" and is_agent and said.startswith(_FAILED) and said.rstrip().endswith(_AFTERWARDS):
                self._error = said
            elif kind == "text" and is_agent and self._size < _LONGEST_TEXT and not said.startswith(_EMPTY):
                self._pieces.append(said)
                self._size += len(said)
            elif kind == "error":
                self._error = text(item.get("message"))
            elif kind == "toolRequest":
                yield from self._said()
                yield self._tool_use(item)
            elif kind == "toolResponse":
                yield _tool_result(item)
            elif kind == "systemNotification" and "compact" in text(item.get("msg")).lower():
                yield Compacting(item.get("notificationType") == "thinkingMessage")

    def _said(self) -> list[AgentEvent]:
        """The text whose pieces have all arrived."""
        said, self._pieces, self._size = "".join(self._pieces), [], 0
        if not said.strip():
            return []
        self._last = said
        return [Text(said)]

    def _tool_use(self, item: dict[str, Any]) -> ToolUse:
        self._tools += 1
        call = members(members(item.get("toolCall")).get("value"))
        name, given = text(call.get("name")).removeprefix("developer__"), members(call.get("arguments"))
        path = text(given.get("path")) if name in ("write", "edit") else ""
        command = text(given.get("command")) if name == "shell" else ""
        return ToolUse(name, summarise(name, given, ""), text(item.get("id")), path, command)

    def finish(self, end: ClientEnd) -> list[AgentEvent]:
        events = self._said()
        error = self._error or ("" if self._complete or not end.code else (end.stderr or self._other).strip())
        if not error and not self._complete:
            return events
        numbers = self._complete
        cached, written = count(numbers.get("cache_read_input_tokens")), count(numbers.get("cache_write_input_tokens"))
        fresh = max(count(numbers.get("input_tokens")) - cached - written, 0)
        used: dict[str, Any] = {"tokens": Tokens(fresh, count(numbers.get("output_tokens")), cached, written)}
        used["models"] = (self._model,) if self._model else ()
        if error:
            found = _understood(error, end.folder)
            if _NOT_SET_UP.search(error):
                detail = one_line(found.message, 300)
                return [*events, Result(ok=False, trouble=Trouble.AUTHENTICATION, detail=detail, **used)]
            return [*events, *found.limit(), found.result(**used)]
        if not self._last and not self._tools:
            return [*events, Result(ok=False, trouble=Trouble.EMPTY, detail="the model answered nothing", **used)]
        return [*events, Result(ok=True, text=self._last, **used)]


def _tool_result(item: dict[str, Any]) -> ToolResult:
    found = members(item.get("toolResult"))
    value = members(found.get("value"))
    ok = found.get("status") == "success" and value.get("isError") is not True
    said = "\n".join(text(part.get("text")) for part in items(value.get("content"))) or text(found.get("error"))
    return ToolResult(text(item.get("id")), ok, said[:_RETURNED])


def _understood(message: str, folder: Path) -> ApiError:
    """The error, with the names and the reset time of the service's own answer, if the client has logged it."""
    plain = message.removeprefix(_FAILED).removesuffix(_AFTERWARDS).strip().removesuffix(".")
    answer = _logged(folder)
    found = api_error(plain, 0, *(answer[key] for key in ("type", "code") if key in answer))
    resets_at = float(answer["resets_at"]) if answer.get("resets_at", "").isdigit() else None
    return ApiError(status=found.status, names=found.names, message=plain, resets_at=found.resets_at or resets_at)


def _logged(folder: Path) -> dict[str, str]:
    for path in sorted(folder.glob("state/logs/cli/*/*.log"), reverse=True):
        try:
            lines = path.read_bytes()[-_LONGEST_LOG:].splitlines()
        except OSError:
            continue
        for line in reversed(lines):
            said = text(members(decode(line).get("fields")).get("message"))
            if said.startswith("Provider request failed"):
                return {name: word or digits for name, word, digits in _PAYLOAD.findall(said)}
    return {}
