"""The events of GitHub Copilot CLI, `--output-format json`: one JSON object a line.

They have no token counts; those are in a file that the client writes when it ends. It also replaces the value of its
API key wherever it occurs, so a key of one letter spoils the names of fields: the reader notices.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from ralph.agents.api_errors import ApiError, api_error
from ralph.agents.tool_words import summarise
from ralph.agents.untyped import count, decode, members, text
from ralph.core.agent import (
    AgentEvent,
    Compacting,
    Denial,
    Init,
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
from ralph.hooks.dialects.copilot import TOOLS
from ralph.hooks.dialects.translation import files_of_patch

USAGE = "usage.json"
"""The file with the token counts, in the session's folder."""
_HARD = (Trouble.LIMIT, Trouble.BILLING, Trouble.AUTHENTICATION, Trouble.MODEL)
"""What another try does not help against. The client tries six times, for up to a minute."""
_PATIENCE = 45.0
"""Seconds of failed requests, by the client's clock."""
_RETURNED = 4000
_LARGEST = 1_000_000
_MASK = b"******"
_MASKED = (
    "the client hides the value of its API key in its own output, and this key is so short that the output cannot be "
    "read; use a longer key"
)
_HOOK = "Denied by preToolUse hook"
_CHANGING = frozenset({"Bash", "Edit", "Write"})
_OPEN = 256


class CopilotEvents:
    """A reader for one process."""

    def __init__(self) -> None:
        self._model = ""
        self._error: ApiError | None = None
        self._failing_since: float | None = None
        self._open: dict[str, ToolUse] = {}
        self._denials: list[Denial] = []
        self._changed = False
        self._worked = False
        self._text = ""
        self._turns = 0
        self._is_masked = False
        self._end: Result | None = None

    def __call__(self, line: bytes) -> Iterable[AgentEvent]:
        event = decode(line)
        kind, data = text(event.get("type")), members(event.get("data"))
        self._is_masked = self._is_masked or (_MASK in line and _is_spoilt(event, data))
        is_main = not data.get("parentToolCallId") and not event.get("agentId")
        match kind:
            case "session.tools_updated" | "model.call_start":
                return self._start(text(data.get("model")))
            case "assistant.message":
                return self._message(data) if is_main else []
            case "tool.execution_start":
                return [self._tool(data)]
            case "tool.execution_complete":
                return [self._returned(data)]
            case "session.compaction_start" | "session.compaction_complete":
                return [Compacting(kind.endswith("start"))]
            case "model.call_failure":
                return self._failure(data, _time(event)) if is_main else []
            case "session.error":
                self._fail(data)
            case "result":
                return self._result(event)
        return []

    def is_torn(self, line: bytes) -> bool:
        return line.lstrip()[:1] == b"{" and not decode(line)

    def _start(self, model: str) -> list[AgentEvent]:
        if not model or model == self._model:
            return []
        self._model = model
        return [Init(model)]

    def _message(self, data: dict[str, Any]) -> list[AgentEvent]:
        self._error, self._failing_since = None, None
        self._turns += 1
        said = text(data.get("content"))
        self._worked = self._worked or bool(said.strip() or data.get("toolRequests"))
        if not said.strip():
            return []
        self._text = said
        return [Text(said)]

    def _tool(self, data: dict[str, Any]) -> ToolUse:
        tool, call = text(data.get("toolName")), text(data.get("toolCallId"))
        name = TOOLS[tool][0] if tool in TOOLS else tool
        given = members(data.get("arguments"))
        patched = files_of_patch(text(data.get("arguments"))) if tool == "apply_patch" else []
        if patched:
            given = {"path": patched[0]}
        path = text(given.get("path")) if name in ("Edit", "Read", "Write") else ""
        used = ToolUse(name, summarise(name, given, ""), call, path, text(given.get("command")))
        if len(self._open) < _OPEN:
            self._open[call] = used
        self._worked = True
        return used

    def _returned(self, data: dict[str, Any]) -> ToolResult:
        call, ok = text(data.get("toolCallId")), data.get("success") is True
        used, error = self._open.pop(call, None), members(data.get("error"))
        if used is not None and ok:
            self._changed = self._changed or used.name in _CHANGING
        elif used is not None and error.get("code") == "denied" and not text(error.get("message")).startswith(_HOOK):
            self._denials.append(Denial(used.name, used.command or used.path, call))
        said = text(members(data.get("result")).get("content")) or text(error.get("message"))
        return ToolResult(call, ok, said[:_RETURNED])

    def _failure(self, data: dict[str, Any], at: float | None) -> list[AgentEvent]:
        """A failed request. Where the client would try again in vain, or for too long, it is ended."""
        status = count(data.get("statusCode"))
        names = (text(data.get("errorCode")), text(data.get("errorType")))
        error = self._error = api_error(text(data.get("errorMessage")), status, *names)
        if self._failing_since is None:
            self._failing_since = at
        is_long = at is not None and self._failing_since is not None and at - self._failing_since > _PATIENCE
        if error.trouble in _HARD or is_long:
            self._end = error.result(turns=self._turns, gives_up=True)
            return [*error.limit(), self._end]
        return [Retry(count(data.get("retryAttempt")) + 1, status or None, one_line(error.message, 200))]

    def _fail(self, data: dict[str, Any]) -> None:
        """The last failed request says more than the client's own words."""
        if self._error is None:
            names = (text(data.get("errorCode")), text(data.get("providerErrorType")), text(data.get("errorType")))
            self._error = api_error(text(data.get("message")), count(data.get("statusCode")), *names)

    def _result(self, event: dict[str, Any]) -> list[AgentEvent]:
        code = event.get("exitCode")
        note = _MASKED if self._is_masked else ""
        if self._error is not None and code != 0:
            self._end = self._error.result(turns=self._turns, note=note)
            return [*self._error.limit(), self._end]
        trouble, detail = None, ""
        if code not in (0, None):
            trouble, detail = Trouble.OTHER, f"the client ended with exit code {code}"
        elif not self._worked:
            trouble, detail = Trouble.EMPTY, "the model said nothing"
        elif self._denials and not self._changed:
            trouble = Trouble.PERMISSION
            names = dict.fromkeys(denial.tool for denial in self._denials)
            detail = f"the agent was not permitted to use {' and '.join(names)}"
        self._end = Result(
            ok=trouble is None,
            text=self._text,
            trouble=trouble,
            detail=detail,
            turns=self._turns,
            note=note,
            denials=tuple(self._denials),
        )
        return [self._end]

    def finish(self, end: ClientEnd) -> Iterable[AgentEvent]:
        """The token counts, and how a client ended that has not said it."""
        uses = _uses(end)
        tokens = sum((use.tokens for use in uses), Tokens())
        models = tuple(use.model for use in uses)
        if self._end is not None:
            last = self._end
            more = Result(
                ok=last.ok, trouble=last.trouble, detail=last.detail, note=last.note, tokens=tokens, models=models
            )
            return [more] if uses else []
        if end.code is None:
            return []
        if self._is_masked:
            return [Result(ok=False, trouble=Trouble.AUTHENTICATION, detail=_MASKED, tokens=tokens, models=models)]
        if end.code == 0:
            return []
        error = self._error or _ended(end.stderr)
        return [*error.limit(), error.result(tokens=tokens, models=models)]


def _is_spoilt(event: dict[str, Any], data: dict[str, Any]) -> bool:
    """Whether a name of the client's own is masked, or all of the line cannot be read."""
    mask = _MASK.decode()
    return not event or any(mask in name for name in (*event, *data)) or mask in text(event.get("type"))


def _ended(stderr: str) -> ApiError:
    """A client that ended before its first event, such as without a login."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    said = one_line(" ".join(lines[:2]).removeprefix("Error: "), 300) or "the client ended without an answer"
    if "could not be validated" in said and "network" in stderr:
        return ApiError(names=("unavailable",), message=said)
    return api_error(said)


def _uses(end: ClientEnd) -> list[ModelUse]:
    try:
        with (end.folder / USAGE).open("rb") as stream:
            known = decode(stream.read(_LARGEST))
    except OSError:
        return []
    found = []
    for name, metrics in members(known.get("modelMetrics")).items():
        usage = members(members(metrics).get("usage"))
        read, wrote, cached, written = (
            count(usage.get(key)) for key in ("inputTokens", "outputTokens", "cacheReadTokens", "cacheWriteTokens")
        )
        # What was read includes what came from the cache.
        tokens = Tokens(max(read - cached - written, 0), wrote, cached, written)
        if tokens.total:
            found.append(ModelUse(text(name), tokens))
    return sorted(found, key=lambda use: -use.tokens.total)


def _time(event: dict[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(text(event.get("timestamp"))).timestamp()
    except (ValueError, OverflowError):
        return None
