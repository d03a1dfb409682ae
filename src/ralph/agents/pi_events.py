"""The events of `pi --mode json`. It ends with code 0 whatever happens: only the last message tells how it went."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ralph.agents.api_errors import ApiError, api_error
from ralph.agents.request_reports import Requests, report_of
from ralph.agents.tool_words import summarise
from ralph.agents.untyped import count, decode, items, members, number, text
from ralph.core.agent import (
    AgentEvent,
    Compacting,
    Init,
    Result,
    Text,
    Tokens,
    ToolResult,
    ToolUse,
    Trouble,
    Usage,
)
from ralph.core.ports import ClientEnd
from ralph.hooks.dialects.pi import TOOLS

_SKIPPED = (b'{"type":"message_update"', b'{"type":"tool_execution_update"', b'{"type":"agent_end"', b'{"type":"turn_')
"""Repetitions of the whole message with every word, or of all messages at the end."""
_RETURNED = 4000


class PiEvents:
    """A reader for one process."""

    def __init__(self) -> None:
        self._cwd = ""
        self._text = ""
        self._model = ""
        self._tokens = Tokens()
        self._cost = 0.0
        self._turns = 0
        self._tools = 0
        self._error = ""
        self._requests = Requests()
        self._ended = False

    def skim(self, block: bytes) -> list[bytes]:
        return [line for line in block.split(b"\n") if line[:1] == b"{" and not line.startswith(_SKIPPED)]

    def is_torn(self, line: bytes) -> bool:
        return line.lstrip()[:1] == b"{" and not decode(line)

    def __call__(self, line: bytes) -> list[AgentEvent]:
        event = {} if line.startswith(_SKIPPED) else decode(line)
        match event.get("type"):
            case "session":
                self._cwd = text(event.get("cwd"))
                return [Init(session=text(event.get("id")))]
            case "message_end":
                return list(self._message(members(event.get("message"))))
            case "tool_execution_start":
                self._tools += 1
                tool, args = text(event.get("toolName")), members(event.get("args"))
                name = TOOLS[tool][0] if tool in TOOLS else tool
                path, command = text(args.get("path")).removeprefix("@"), text(args.get("command"))
                path = f"{self._cwd}/{path}" if path and path[0] not in "/~" else path
                return [ToolUse(name, summarise(name, args, self._cwd), text(event.get("toolCallId")), path, command)]
            case "tool_execution_end":
                content = items(members(event.get("result")).get("content"))
                said = "\n".join(text(part.get("text")) for part in content)[:_RETURNED]
                return [ToolResult(text(event.get("toolCallId")), event.get("isError") is not True, said)]
            case "compaction_start" | "compaction_end":
                return [Compacting(event.get("type") == "compaction_start")]
            case _:
                return []

    def _message(self, message: dict[str, Any]) -> Iterator[AgentEvent]:
        if message.get("role") != "assistant":
            return
        self._model = text(message.get("model")) or self._model
        has_failed = message.get("stopReason") in ("error", "aborted")
        self._error = (text(message.get("errorMessage")) or "the answer broke off") if has_failed else ""
        used = members(message.get("usage"))
        tokens = Tokens(*(count(used.get(name)) for name in ("input", "output", "cacheRead", "cacheWrite")))
        if tokens.total:
            self._tokens += tokens
            self._cost += number(members(used.get("cost")).get("total")) or 0
            yield Usage(tokens.total - tokens.output, tokens)
        if has_failed:
            return
        self._turns += 1
        said = "\n".join(found for part in items(message.get("content")) if (found := text(part.get("text"))))
        if said.strip():
            self._text = said
            yield Text(said)

    def error(self, line: bytes) -> list[AgentEvent]:
        report = report_of(line)
        events = self._requests.read(report) if "status" in report else []
        self._ended |= any(isinstance(event, Result) for event in events)
        return [self._complete(event) if isinstance(event, Result) else event for event in events]

    def _complete(self, result: Result) -> Result:
        return Result(
            ok=result.ok,
            text=self._text,
            trouble=result.trouble,
            detail=result.detail,
            cost_usd=self._cost or None,  # a model without a price costs nothing in its list
            tokens=self._tokens,
            turns=self._turns,
            models=(self._model,) if self._model else (),
            gives_up=result.gives_up,
        )

    def finish(self, end: ClientEnd) -> list[AgentEvent]:
        if self._ended:
            return []
        if self._error or end.code:
            error = self._failure(end.stderr)
            return [*error.limit(), self._complete(error.result())]
        if end.code is None:
            return []
        if not self._text and not self._tools:
            return [self._complete(Result(ok=False, trouble=Trouble.EMPTY, detail="the model said and did nothing"))]
        return [self._complete(Result(ok=True))]

    def _failure(self, stderr: str) -> ApiError:
        """With the service's own words, where the extension has seen them."""
        if self._requests.last is not None:
            return self._requests.last
        said = self._error or "\n".join(line for line in stderr.splitlines()[-5:] if not line.startswith("ralph: "))
        error = api_error(said)
        if error.trouble is Trouble.OTHER and "api key" in said.lower():
            return ApiError(names=("authentication",), message=said)
        return error
