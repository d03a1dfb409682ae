"""The events of Droid, `--output-format stream-json`, and its log on stderr, which alone tells of failed requests."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ralph.agents.api_errors import api_error
from ralph.agents.tool_words import summarise
from ralph.agents.untyped import count, decode, members, text
from ralph.core.agent import AgentEvent, Denial, Init, Result, Retry, Text, Tokens, ToolResult, ToolUse, Trouble
from ralph.core.ports import ClientEnd
from ralph.core.text import one_line
from ralph.hooks.dialects.droid import TOOLS
from ralph.hooks.dialects.translation import files_of_patch

_HARD = (Trouble.LIMIT, Trouble.BILLING, Trouble.AUTHENTICATION, Trouble.MODEL)
"""What another try does not help against."""
_MOST_TRIES = 3
"""About 20 seconds, and the log comes every 20 seconds. The client tries for minutes; the loop retries."""
_ENTRY = re.compile(rb"\[(\d{4}-\d\d-\d\dT[\d:.]+Z)\] [A-Z]+: ")
_FAILED = re.compile(rb'LLM error \| Context: \{"attempt":(\d+)')
_CONTEXT = b" | Context: {"
"""Ends an entry of the log, which can have several lines."""
_NO_PERMISSION = "insufficient permission"
_INVALID_MODEL = "Invalid model"
_RETURNED = 4000
_KEPT = 20
_OPEN = 256


class DroidEvents:
    """A reader for one process."""

    def __init__(self) -> None:
        self._session = ""
        self._cwd = ""
        self._message = ""
        self._tools = 0
        self._errors: list[str] = []
        self._open: dict[str, ToolUse] = {}
        self._denied: ToolUse | None = None
        self._ended = False
        self._heard_at = 0.0
        self._attempt = 0
        self._in_entry = False
        self._stderr: list[str] = []

    def __call__(self, line: bytes) -> Iterable[AgentEvent]:
        event = decode(line)
        is_main = not self._session or text(event.get("session_id")) in ("", self._session)
        self._heard_at = max(self._heard_at, count(event.get("timestamp")) / 1000)
        match text(event.get("type")):
            case "system" if event.get("subtype") == "init":
                self._session, self._cwd = text(event.get("session_id")), text(event.get("cwd"))
                return [Init(text(event.get("model")), self._session)]
            case "message" if event.get("role") == "assistant" and is_main:
                return self._said(text(event.get("text")))
            case "tool_call":
                return [self._tool(event)]
            case "tool_result":
                return [self._returned(event)]
            case "error":
                self._errors.append(text(event.get("message")))
            case "completion":
                return [self._completion(event)]
        return []

    def is_torn(self, line: bytes) -> bool:
        return line.lstrip()[:1] == b"{" and not decode(line)

    def _said(self, said: str) -> list[AgentEvent]:
        if not said.strip() or (_NO_PERMISSION in said and self._denied is not None):  # the client's own words
            return []
        self._message = said
        return [Text(said)]

    def _tool(self, event: dict[str, Any]) -> ToolUse:
        tool, call = text(event.get("toolName")) or text(event.get("toolId")), text(event.get("id"))
        name = TOOLS[tool][0] if tool in TOOLS else tool
        given = members(event.get("parameters"))
        patched = [path for value in given.values() for path in files_of_patch(text(value))]
        path = text(given.get("file_path")) or (patched[0] if patched and tool == "ApplyPatch" else "")
        shown = {"file_path": path, **given} if path else given
        used = ToolUse(name, summarise(name, shown, self._cwd), call, path, text(given.get("command")))
        if len(self._open) < _OPEN:
            self._open[call] = used
        self._tools += 1
        return used

    def _returned(self, event: dict[str, Any]) -> ToolResult:
        call, ok = text(event.get("id")), event.get("isError") is not True
        used = self._open.pop(call, None)
        said = text(event.get("value")) or text(members(event.get("error")).get("message"))
        if not ok and _NO_PERMISSION in said:
            self._denied = used or ToolUse(text(event.get("toolId")))
        return ToolResult(call, ok, said[:_RETURNED])

    def _completion(self, event: dict[str, Any]) -> Result:
        self._ended = True
        usage, said = members(event.get("usage")), text(event.get("finalText"))
        names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        is_empty = not said.strip() and not self._message and not self._tools
        return Result(
            ok=not is_empty,
            text=said,
            trouble=Trouble.EMPTY if is_empty else None,
            detail="the model said nothing" if is_empty else "",
            tokens=Tokens(*(count(usage.get(name)) for name in names)),
            turns=count(event.get("numTurns")),
        )

    def error(self, line: bytes) -> Iterable[AgentEvent]:
        """A line of stderr: most are of the log."""
        if entry := _ENTRY.match(line):
            self._in_entry = _CONTEXT not in line
            if (failed := _FAILED.search(line)) and _time(entry[1]) >= self._heard_at:  # else it has gone on since
                self._attempt = int(failed[1])  # its message is in one of the next entries
            return []
        if not self._in_entry:
            if len(self._stderr) < _KEPT and line.strip():
                self._stderr.append(line.decode("utf-8", "replace").strip())
            return []
        self._in_entry = _CONTEXT not in line
        if not self._attempt or not line.startswith(b"Error: "):
            return []
        attempt, self._attempt = self._attempt, 0
        return self._failure(attempt, line.removeprefix(b"Error: ").decode("utf-8", "replace"))

    def _failure(self, attempt: int, message: str) -> list[AgentEvent]:
        error = api_error(message)
        if error.trouble in _HARD or attempt >= _MOST_TRIES:
            self._ended = True
            return [*error.limit(), error.result(gives_up=True)]
        return [Retry(attempt, error.status or None, one_line(error.message, 200))]

    def finish(self, end: ClientEnd) -> Iterable[AgentEvent]:
        """How a client ended that has not said it by a completion."""
        if self._ended or (end.code is None and not self._errors):
            return []
        if self._denied is not None:
            denied = self._denied
            detail = f"the agent was not permitted to use {denied.name}, which ends a session of Droid"
            denials = (Denial(denied.name, denied.command or denied.path, denied.id),)
            return [Result(ok=False, trouble=Trouble.PERMISSION, detail=detail, denials=denials)]
        if end.code == 0 and not self._errors:
            return []
        said = next(iter(self._errors), "") or one_line(" ".join(self._stderr[:2]), 300)
        if said.startswith(_INVALID_MODEL):
            return [Result(ok=False, trouble=Trouble.MODEL, detail=one_line(self._stderr[0], 300))]
        error = api_error(said or "the client ended without an answer")
        return [*error.limit(), error.result()]


def _time(stamp: bytes) -> float:
    try:
        return datetime.fromisoformat(stamp.decode()).timestamp()
    except (ValueError, OverflowError):
        return 0.0
