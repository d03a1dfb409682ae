"""The events of `cline --json`, one a line. Usage is reported after each answer, and summed up in the last event."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ralph.agents.api_errors import api_error
from ralph.agents.tool_words import summarise
from ralph.agents.untyped import count, decode, items, members, number, text
from ralph.core.agent import AgentEvent, Init, Limit, Result, Text, Tokens, ToolResult, ToolUse, Trouble, Usage
from ralph.core.ports import ClientEnd

_NAMES = {"editor": "Edit", "run_commands": "Bash", "read_files": "Read", "search_codebase": "Grep"}
_ERRORS = {"auth": "authentication_error", "silent": "server_error"}
"""The client's class of an error → the service's name for it."""
_RETURNED = 4000
_LOG = "cline/data/logs/cline.log"
_LOG_END = 64 * 1024
_BODY = re.compile(rb'"responseBody":("(?:[^"\\]|\\.)*")')
"""An answer of the service, in the log. The line is long: it has the requests too."""


class ClineEvents:
    """A reader for one process."""

    def __init__(self) -> None:
        self._worked = self._ended = False
        self._error, self._class = "", ""
        self._limit: Limit | None = None

    def skim(self, block: bytes) -> Iterable[bytes]:
        return [line for line in block.split(b"\n") if line.lstrip()[:1] == b"{"]

    def is_torn(self, line: bytes) -> bool:
        return line.lstrip()[:1] == b"{" and not decode(line)

    def __call__(self, line: bytes) -> Iterable[AgentEvent]:
        event = decode(line)
        match event.get("type"):
            case "hook_event" if event.get("hookEventName") == "agent_start" and not event.get("parentAgentId"):
                return [Init(session=text(event.get("taskId")))]
            case "agent_event":
                return self._agent(members(event.get("event")))
            case "run_result":
                return self._result(event)
            case "error":
                self._error = text(event.get("message"))
        return []

    def error(self, line: bytes) -> Iterable[AgentEvent]:
        event = decode(line)
        if event.get("type") == "error" and not self._error:
            self._error = text(event.get("message"))
        return []

    def finish(self, end: ClientEnd) -> Iterable[AgentEvent]:
        """A client that could not start has only said why on stderr. Now and then it ends at once, with code 0.

        When a limit ends is only in its log.
        """
        if self._limit and self._limit.resets_at is None and (reset := _reset(end.folder)) is not None:
            return [Limit(True, reset, self._limit.kind)]
        if end.code == 0 and not self._ended and not self._error and not self._worked:
            self._error, self._class = "the client ended without a word", "silent"
        return [] if self._ended or not self._error else self._failed(Tokens(), {})

    def _agent(self, event: dict[str, Any]) -> list[AgentEvent]:
        match event.get("type"), event.get("contentType"):
            case "usage", _:
                used = _tokens(event)
                return [Usage(used.total - used.output, used)]
            case "content_start", "tool":
                self._worked = True
                return [_call(event)]
            case "content_end", "tool":
                output = event.get("output")
                ok = not event.get("error") and all(one.get("success") is not False for one in _outputs(output))
                return [ToolResult(text(event.get("toolCallId")), ok, _returned(output))]
            case "content_end", "text" if words := text(event.get("text")):
                self._worked = True
                return [Text(words)]
            case "error", _:
                self._error = text(members(event.get("error")).get("message"))
                self._class = text(event.get("errorClass"))
        return []

    def _result(self, event: dict[str, Any]) -> list[AgentEvent]:
        self._ended = True
        used = members(event.get("aggregateUsage")) or members(event.get("usage"))
        tokens, said = _tokens(used), text(event.get("text"))
        if event.get("finishReason") != "completed":
            self._error = self._error or said or f"it ended: {text(event.get('finishReason'))}"
            return self._failed(tokens, event)
        more = _more(event, used)
        if not self._worked and not said.strip():
            return [Result(ok=False, trouble=Trouble.EMPTY, detail="the model sent nothing", tokens=tokens, **more)]
        return [Result(ok=True, text=said, tokens=tokens, **more)]

    def _failed(self, tokens: Tokens, event: dict[str, Any]) -> list[AgentEvent]:
        failed = api_error(self._error, 0, *filter(None, (_ERRORS.get(self._class),)))
        self._limit = next(iter(failed.limit()), None)
        return [*failed.limit(), failed.result(tokens=tokens, **_more(event, members(event.get("usage"))))]


def _reset(folder: Path) -> float | None:
    try:
        with (folder / _LOG).open("rb") as stream:
            stream.seek(-min(_LOG_END, stream.seek(0, os.SEEK_END)), os.SEEK_END)
            answers = _BODY.findall(stream.read())
        return api_error(str(json.loads(answers[-1]))).resets_at if answers else None
    except (OSError, ValueError):
        return None


def _more(event: dict[str, Any], used: dict[str, Any]) -> dict[str, Any]:
    model = text(members(event.get("model")).get("id"))
    return {
        "turns": count(event.get("iterations")),
        "models": (model,) if model else (),
        "cost_usd": number(used.get("totalCost")) or None,  # 0 if it does not know the price
    }


def _tokens(usage: dict[str, Any]) -> Tokens:
    """The input includes what was cached."""
    names = ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
    read, wrote, cached, stored = (count(usage.get(name)) for name in names)
    return Tokens(max(read - cached - stored, 0), wrote, cached, stored)


def _call(event: dict[str, Any]) -> ToolUse:
    given, own = members(event.get("input")), text(event.get("toolName"))
    name, path = _NAMES.get(own, own), text(given.get("path"))
    listed = given.get("commands")
    command = "\n".join(text(one) for one in listed) if isinstance(listed, list) else ""
    path = path or next((text(one.get("path")) for one in items(given.get("files"))), "")
    about = {"file_path": path, "command": command, **given}
    return ToolUse(name, summarise(name, about, ""), text(event.get("toolCallId")), path, command)


def _outputs(output: Any) -> list[dict[str, Any]]:
    return items(output) if isinstance(output, list) else items([output])


def _returned(output: Any) -> str:
    words = [text(one.get("result")) or text(one.get("error")) for one in _outputs(output)]
    return "\n".join(filter(None, words))[:_RETURNED]
