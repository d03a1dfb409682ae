"""The stream of Qwen Code: Claude Code's, apart from errors of the service and what counts as input."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from ralph.agents.api_errors import ApiError, api_error
from ralph.agents.stream_json import StreamJson
from ralph.agents.untyped import count, decode, items, members, text
from ralph.core.agent import AgentEvent, Init, Result, Retry
from ralph.core.text import one_line
from ralph.hooks.dialects.qwen import TOOLS

_ERROR = "[API Error: "
_RETRY = re.compile(r"^Retrying in (\d+)s \(attempt (\d+)/\d+\)(?:: (.*))?")
_LONGEST_PAUSE = 30
"""Seconds. A provider with settings of its own may have the client pause for minutes; the loop waits as well."""


class QwenEvents:
    """A reader for one process."""

    def __init__(self) -> None:
        self._inner = StreamJson()
        self._ended = False
        self._error = ""
        """The last message, if it is an error."""

    def skim(self, block: bytes) -> Iterable[bytes]:
        return self._inner.skim(block)

    def is_torn(self, line: bytes) -> bool:
        return self._inner.is_torn(line)

    def __call__(self, line: bytes) -> Iterable[AgentEvent]:
        event = decode(line)
        match event.get("type"):
            case "system" if event.get("subtype") == "init":
                version = text(event.get("qwen_code_version"))
                return [Init(text(event.get("model")), text(event.get("session_id")), version), *self._quiet(line)]
            case "assistant":
                return self._assistant(event)
            case "result":
                return self._result(event)
            case _:
                return self._inner(line)

    def _quiet(self, line: bytes) -> list[AgentEvent]:
        return [found for found in self._inner(line) if not isinstance(found, Init)]

    def _assistant(self, event: dict[str, Any]) -> Iterable[AgentEvent]:
        message = members(event.get("message"))
        said = "".join(text(block.get("text")) for block in items(message.get("content")))
        self._error = said if said.startswith(_ERROR) else ""
        if self._error:
            return []
        for block in items(message.get("content")):
            if (tool := text(block.get("name"))) in TOOLS:
                block["name"] = TOOLS[tool][0]
        _without_cached(members(message.get("usage")))
        return self._inner(msgspec.json.encode(event))

    def _result(self, event: dict[str, Any]) -> Iterable[AgentEvent]:
        self._ended = True
        _without_cached(members(event.get("usage")))
        events = list(self._inner(msgspec.json.encode(event)))
        message = text(event.get("result")) or text(members(event.get("error")).get("message")) or self._error
        is_error = event.get("is_error") is True or message.startswith(_ERROR)  # 0.15 calls it a success
        if not is_error:
            return events
        found = _api_error(message)
        return [*found.limit(), *(self._failed(each, found.result()) for each in events)]

    def error(self, line: bytes) -> Iterable[AgentEvent]:
        """It tells on stderr that it pauses."""
        found = _RETRY.match(line.decode("utf-8", "replace"))
        if found is None:
            return []
        failure = _api_error(found[3] or "")
        events: list[AgentEvent] = [Retry(int(found[2]), failure.status or None, one_line(failure.message, 200))]
        if int(found[1]) > _LONGEST_PAUSE:
            events += [*failure.limit(), failure.result(gives_up=True)]
        return events

    @staticmethod
    def _failed(event: AgentEvent, failure: Result) -> AgentEvent:
        if not isinstance(event, Result):
            return event
        return msgspec.structs.replace(event, ok=False, text="", trouble=failure.trouble, detail=failure.detail)


def _api_error(message: str) -> ApiError:
    return api_error(message.removeprefix(_ERROR).removesuffix("]"))


def _without_cached(usage: dict[str, Any]) -> None:
    """What was cached is part of the input here, and beside it with Claude Code."""
    if "input_tokens" in usage:
        usage["input_tokens"] = max(count(usage["input_tokens"]) - count(usage.get("cache_read_input_tokens")), 0)
