"""The events of `codex exec --json`, one a line.

Items of the type `error` are warnings, also in good sessions; a failure is the event `turn.failed`. There is no event
for a tool call that was denied, and usage only at the end of a turn, as a total of the session.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from ralph.agents.api_errors import api_error
from ralph.agents.tool_words import summarise
from ralph.agents.untyped import count, decode, items, members, text
from ralph.core.agent import AgentEvent, Init, Result, Retry, Text, Tokens, ToolResult, ToolUse, Trouble

_RETRY = re.compile(r"Reconnecting\.\.\. (?:(\d+)/\d+)?[^(]*\(?(.*?)\)?$", re.DOTALL)
_RETURNED = 4000
"""Characters kept of a tool's output."""
_CHANGES = {"add": "Write", "update": "Edit", "delete": "Delete"}


class CodexEvents:
    """A reader for one process."""

    def __init__(self) -> None:
        self._used = Tokens()
        self._text = ""
        self._worked = False
        """The model has sent something."""
        self._turns = 0
        self._begun: set[str] = set()

    def skim(self, block: bytes) -> Iterable[bytes]:
        return [line for line in block.split(b"\n") if line.lstrip()[:1] == b"{"]

    def is_torn(self, line: bytes) -> bool:
        return line.lstrip()[:1] == b"{" and not decode(line)

    def __call__(self, line: bytes) -> Iterable[AgentEvent]:
        event = decode(line)
        match event.get("type"):
            case "thread.started":
                return [Init(session=text(event.get("thread_id")))]
            case "item.started":
                return self._item(members(event.get("item")), is_over=False)
            case "item.completed":
                return self._item(members(event.get("item")), is_over=True)
            case "error":
                return _retry(text(event.get("message")))
            case "turn.completed":
                return [self._result(members(event.get("usage")))]
            case "turn.failed":
                failed = api_error(text(members(event.get("error")).get("message")))
                return [*failed.limit(), failed.result(text=self._text, turns=self._turns)]
            case _:
                return []

    def _item(self, item: dict[str, Any], *, is_over: bool) -> list[AgentEvent]:
        if item.get("type") == "agent_message":
            self._text = text(item.get("text"))
            self._worked |= bool(self._text.strip())
            self._turns += 1
            return [Text(self._text)] if self._text else []
        calls, name = [*_calls(item)], text(item.get("id"))
        if not calls:
            return []
        self._worked = True
        events: list[AgentEvent] = [] if name in self._begun else [*calls]
        self._begun.add(name)
        if is_over:
            self._begun.discard(name)
            ok, output = item.get("status") != "failed", text(item.get("aggregated_output"))[:_RETURNED]
            events += [ToolResult(call.id, ok, output) for call in calls]
        return events

    def _result(self, usage: dict[str, Any]) -> Result:
        total = _tokens(usage)
        before, self._used = self._used, total
        if not self._worked:
            return Result(ok=False, trouble=Trouble.EMPTY, detail="the model sent nothing", tokens=_more(total, before))
        return Result(ok=True, text=self._text, tokens=_more(total, before), turns=self._turns)


def _retry(message: str) -> list[AgentEvent]:
    """Other errors come again with the end of the turn."""
    if (found := _RETRY.match(message)) is None:
        return []
    return [Retry(int(found[1] or 1), api_error(found[2]).status or None, found[2])]


def _calls(item: dict[str, Any]) -> Iterator[ToolUse]:
    """The calls of an item. A patch is a call for each of its files."""
    name = text(item.get("id"))
    match item.get("type"):
        case "command_execution":
            command = _inner(text(item.get("command")))
            yield ToolUse("Bash", summarise("Bash", {"command": command}, ""), name, command=command)
        case "file_change":
            for number, change in enumerate(items(item.get("changes"))):
                tool, path = _CHANGES.get(text(change.get("kind")), "Edit"), text(change.get("path"))
                yield ToolUse(tool, summarise(tool, {"path": path}, ""), f"{name}.{number}", path=path)
        case "mcp_tool_call":
            tool = f"mcp__{text(item.get('server'))}__{text(item.get('tool'))}"
            yield ToolUse(tool, summarise(tool, members(item.get("arguments")), ""), name)
        case "web_search":
            yield ToolUse("WebSearch", summarise("WebSearch", {"query": item.get("query")}, ""), name)
        case "collab_tool_call":
            yield ToolUse("Agent", summarise("Agent", {"prompt": item.get("prompt")}, ""), name)


def _inner(command: str) -> str:
    """The command that the model gave, without the shell around it."""
    try:
        match shlex.split(command):
            case [_, "-lc" | "-c", inner]:
                return inner
    except ValueError:
        pass
    return command


def _tokens(usage: dict[str, Any]) -> Tokens:
    """The input includes what was cached."""
    names = ("input_tokens", "output_tokens", "cached_input_tokens", "cache_write_input_tokens")
    read, wrote, cached, stored = (count(usage.get(name)) for name in names)
    return Tokens(max(read - cached - stored, 0), wrote, cached, stored)


def _more(total: Tokens, before: Tokens) -> Tokens:
    """What this turn added to the total."""
    if total.total < before.total:
        return total
    return Tokens(
        max(total.input - before.input, 0),
        max(total.output - before.output, 0),
        max(total.cache_read - before.cache_read, 0),
        max(total.cache_write - before.cache_write, 0),
    )
