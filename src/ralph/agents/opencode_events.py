"""The events of `opencode run --format json`, and the reports of Ralph's plugin on its stderr.

A tool call is on stdout only when it has ended; its start, retries, and what sub-agents use come from the plugin.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ralph.agents.api_errors import ApiError, api_error
from ralph.agents.request_reports import Requests, report_of
from ralph.agents.tool_words import summarise
from ralph.agents.untyped import count, decode, members, number, text
from ralph.core.agent import AgentEvent, Init, Result, Text, Tokens, ToolResult, ToolUse, Trouble, Usage
from ralph.core.ports import ClientEnd
from ralph.hooks.dialects.opencode import TOOLS

_UNKNOWN_MODEL = re.compile(r"ProviderModelNotFoundError: ([^\"\\]+)")
_BY_NAME = {
    "ProviderAuthError": Trouble.AUTHENTICATION,
    "ContextOverflowError": Trouble.CONTEXT,
    "ProviderModelNotFoundError": Trouble.MODEL,
}
_RETURNED = 4000
_LONGEST_PAUSE = 60.0


class OpencodeEvents:
    """A reader for one process."""

    def __init__(self) -> None:
        self._session = ""
        self._cwd = ""
        self._text = ""
        self._tokens = Tokens()
        self._cost = 0.0
        self._turns = 0
        self._begun: set[str] = set()
        self._error: dict[str, Any] = {}
        self._requests = Requests()
        self._ended = False

    def is_torn(self, line: bytes) -> bool:
        return line.lstrip()[:1] == b"{" and not decode(line)

    def __call__(self, line: bytes) -> list[AgentEvent]:
        event = decode(line)
        part = members(event.get("part"))
        events: list[AgentEvent] = []
        if event and not self._session and (session := text(event.get("sessionID"))):
            self._session = session
            events.append(Init(session=session))
        match event.get("type"):
            case "text" if said := text(part.get("text")):
                self._text = said
                events.append(Text(said))
            case "tool_use":
                events += self._tool(part)
            case "step_finish":
                self._turns += 1
                self._error = {}
                events.append(self._used(part, is_main=True))
            case "error":
                self._error = members(event.get("error"))
        return events

    def error(self, line: bytes) -> list[AgentEvent]:
        report = report_of(line)
        if "status" in report:
            return self._ending(self._requests.read(report))
        if "directory" in report:
            self._cwd = text(report.get("directory"))
        if "call" in report:
            return list(self._begin(text(report.get("call")), text(report.get("tool")), report))
        if "tokens" in report:
            return [self._used(report, is_main=False)]
        if "retry" in report and (number(report.get("seconds")) or 0) > _LONGEST_PAUSE:
            error = self._requests.last or api_error(text(report.get("message")))
            return self._ending([*error.limit(), error.result(gives_up=True)])
        return []

    def _begin(self, call: str, tool: str, given: dict[str, Any]) -> Iterator[AgentEvent]:
        """One event for each file of a patch: they are all the agent's work."""
        if call in self._begun:
            return
        self._begun.add(call)
        args = members(given.get("args"))
        listed = given.get("paths")
        paths = [text(path) for path in listed] if isinstance(listed, list) else []
        words = {"file_path": text(args.get("filePath")) or next(iter(paths), ""), **args}
        name = TOOLS[tool][0] if tool in TOOLS else tool
        for path in paths or [words["file_path"]]:
            yield ToolUse(name, summarise(name, words, self._cwd), call, path, text(args.get("command")))

    def _tool(self, part: dict[str, Any]) -> Iterator[AgentEvent]:
        call, state = text(part.get("callID")), members(part.get("state"))
        yield from self._begin(call, text(part.get("tool")), {"args": state.get("input")})
        ok = state.get("status") == "completed" and not count(members(state.get("metadata")).get("exit"))
        times = members(state.get("time"))
        start, end = number(times.get("start")), number(times.get("end"))
        seconds = max(end - start, 0) / 1000 if start is not None and end is not None else None
        yield ToolResult(call, ok, (text(state.get("output")) or text(state.get("error")))[:_RETURNED], seconds)

    def _used(self, part: dict[str, Any], *, is_main: bool) -> Usage:
        used = members(part.get("tokens"))
        cache = members(used.get("cache"))
        tokens = Tokens(
            count(used.get("input")),
            count(used.get("output")) + count(used.get("reasoning")),
            count(cache.get("read")),
            count(cache.get("write")),
        )
        self._tokens += tokens
        self._cost += number(part.get("cost")) or 0
        return Usage(tokens.total - tokens.output if is_main else 0, tokens)

    def _ending(self, events: list[AgentEvent]) -> list[AgentEvent]:
        """A result that ends the client, with what the session has used."""
        self._ended = any(isinstance(event, Result) for event in events)
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
            gives_up=result.gives_up,
        )

    def finish(self, end: ClientEnd) -> list[AgentEvent]:
        if self._ended:
            return []
        if self._error or end.code:
            error = self._failure(end.stderr)
            trouble = _BY_NAME.get(text(self._error.get("name")))
            result = error.result() if trouble is None else Result(ok=False, trouble=trouble, detail=error.message)
            return [*(error.limit() if trouble is None else []), self._complete(result)]
        if end.code is None:  # it was ended while it waited for the service, or in its work
            return [self._complete(self._requests.last.result())] if self._requests.last else []
        if not self._turns and not self._text:
            return [self._complete(Result(ok=False, trouble=Trouble.EMPTY, detail="the model said and did nothing"))]
        return [self._complete(Result(ok=True))]

    def _failure(self, stderr: str) -> ApiError:
        if unknown := _UNKNOWN_MODEL.search(stderr):
            return ApiError(names=("model_not_found",), message=unknown[1].strip())
        data = members(self._error.get("data"))
        said = text(data.get("message")) or text(self._error.get("name"))
        status = count(data.get("statusCode"))
        if body := text(data.get("responseBody")):
            return api_error(body, status)
        if self._requests.last is not None:
            return self._requests.last
        return api_error(said or "\n".join(stderr.splitlines()[-3:]), status)
