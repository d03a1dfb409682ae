"""The stream of the Claude client, `--output-format stream-json`: one JSON object per line, parsed into typed events.

A reader keeps some state between lines, because a result depends on earlier events: costs are totals of the whole
process, and the reason of a failure is in an earlier event.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from ralph.agents.claude_version import advice
from ralph.agents.tool_words import summarise
from ralph.agents.untyped import count, decode, items, members, number, text
from ralph.core.agent import (
    AgentEvent,
    Compacting,
    Denial,
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
    Usage,
)
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import one_line


class Failure(Struct, frozen=True, kw_only=True):
    """What the client reports about a result that is an error."""

    subtype: str = ""
    terminal_reason: str = ""
    status: int = 0
    """Status of the last HTTP response; 0: there was none."""
    names: frozenset[str] = frozenset()
    """`error`, `api_error` and `api_error_type`: the client's and the server's names for the error."""
    limited: bool = False
    """A usage limit with a reset time was reported before."""


_BY_ENDING = {
    "error_max_budget_usd": Trouble.BUDGET,
    "budget_exhausted": Trouble.BUDGET,
    "prompt_too_long": Trouble.CONTEXT,
    "blocking_limit": Trouble.CONTEXT,
}
_BY_STATUS = {
    401: Trouble.AUTHENTICATION,
    402: Trouble.BILLING,
    403: Trouble.AUTHENTICATION,
    404: Trouble.MODEL,
    408: Trouble.TRANSPORT,
    413: Trouble.CONTEXT,
    429: Trouble.TRANSPORT,
}
_BY_NAME = {
    "authentication_failed": Trouble.AUTHENTICATION,
    "authentication_error": Trouble.AUTHENTICATION,
    "billing_error": Trouble.BILLING,
    "oauth_org_not_allowed": Trouble.AUTHENTICATION,
    "model_not_found": Trouble.MODEL,
    "connection_failed": Trouble.TRANSPORT,
    "overloaded": Trouble.TRANSPORT,
    "overloaded_error": Trouble.TRANSPORT,
    "rate_limit": Trouble.TRANSPORT,
    "rate_limit_error": Trouble.TRANSPORT,
    "server_error": Trouble.TRANSPORT,
    "timeout_error": Trouble.TRANSPORT,
}


def classify(failure: Failure) -> Trouble:
    if "usage_limit_reached" in failure.names:
        return Trouble.LIMIT
    if failure.limited and (failure.status == 429 or failure.names & {"rate_limit", "rate_limit_error"}):
        return Trouble.LIMIT  # clients before `usage_limit_reached`
    for word in (failure.subtype, failure.terminal_reason):
        if word in _BY_ENDING:
            return _BY_ENDING[word]
    if "billing_error" in failure.names:  # "Credit balance is too low" has the status 400
        return Trouble.BILLING
    if failure.status >= 500:
        return Trouble.TRANSPORT
    if failure.status in _BY_STATUS:
        return _BY_STATUS[failure.status]
    for name in sorted(failure.names):
        if name in _BY_NAME:
            return _BY_NAME[name]
    is_named = bool(failure.names - {"unknown"})  # such as a refusal, or an answer over the limit of tokens
    if failure.terminal_reason == "api_error" and failure.status < 400 and not is_named:
        return Trouble.TRANSPORT  # an answer that was none: cut off, or a web page of something in between
    return Trouble.OTHER


_TYPE = lazy_pattern(rb'\{"type":"(\w+)"')
_TYPES = frozenset({b"system", b"assistant", b"user", b"rate_limit_event", b"result"})
_CHANGING = frozenset({"Bash", "Edit", "MultiEdit", "NotebookEdit", "Write"})
_SAFETY = "safetyCheck"
"""The client protects the file itself, regardless of permissions: that fails one story, not the run."""
_MOST_DENIALS = 200
_MOST_OPEN = 256
_DETAIL = 300
_HOOK_ERROR = lazy_pattern(r"^PreToolUse:\w+ hook error: ")
_RETURNED = 4000
"""Characters kept of a tool's output."""
_LARGEST_ANSWER = 200_000
_PER_TOKEN = 4
"""Characters, to estimate what the model wrote."""
_FURTHEST = 1e11
"""Seconds since the epoch; a reset time beyond this is ignored."""


def _window(usage: dict[str, Any]) -> int:
    """The model that cost most: it did the work."""
    by_cost = _by_cost(usage)
    return count(members(usage.get(by_cost[0])).get("contextWindow")) if by_cost else 0


def _read_now(usage: dict[str, Any]) -> Tokens:
    """What the model read for this message. Known from its first event on, unlike what it wrote."""
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    fresh, cached, written = (count(usage.get(name)) for name in names)
    return Tokens(fresh, 0, cached, written)


class StreamJson:
    """A reader for one process."""

    def __init__(self) -> None:
        self._cwd = ""
        self._worked = False
        """The model has sent something."""
        self._limited = False
        self._error: dict[str, Any] = {}
        """The last assistant event, if it represents an API error."""
        self._open: dict[str, str] = {}
        """Calls of modifying tools without a result yet: id → tool."""
        self._called: dict[str, float] = {}
        """When each call without a result began, by the client's clock."""
        self._denied: list[str] = []
        """Modifying tools that the client did not permit."""
        self._asked: dict[str, str] = {}
        """Calls that would have needed approval: id → the client's kind of reason."""
        self._changed = False
        self._cost = 0.0
        self._tokens = Tokens()
        self._messages: dict[str, None] = {}
        """Messages whose usage was counted: the client repeats it with each block of a message."""
        self._uses: dict[str, ModelUse] = {}
        self._overridden = False
        """The client ended the session although a Stop hook kept blocking it."""

    def skim(self, block: bytes) -> Iterable[bytes]:
        """Only lines that start with `{`."""
        if b"{" not in block:
            return ()
        if b"\n" not in block:
            return (block,)
        return [line for line in block.split(b"\n") if line[:1] == b"{" or (line[:1].isspace() and b"{" in line)]

    def is_torn(self, line: bytes) -> bool:
        """Whether a last line without a newline breaks off in the middle of an event."""
        return line.lstrip()[:1] == b"{" and not decode(line)

    def __call__(self, line: bytes) -> Iterable[AgentEvent]:
        if (head := _TYPE.match(line)) and head[1] not in _TYPES:
            return []
        event = decode(line)
        match event.get("type"):
            case "system":
                return self._system(event)
            case "assistant":
                return self._assistant(event)
            case "user":
                return list(self._user(event))
            case "rate_limit_event":
                return self._limit(members(event.get("rate_limit_info")))
            case "result":
                return [self._result(event)]
            case _:
                return []

    def _system(self, event: dict[str, Any]) -> list[AgentEvent]:
        match event.get("subtype"):
            case "init":
                self._cwd = text(event.get("cwd"))
                version = text(event.get("claude_code_version"))
                note = advice(version) if version else ""
                return [Init(text(event.get("model")), text(event.get("session_id")), version, note)]
            case "api_retry":
                status = count(event.get("error_status")) or None
                return [Retry(count(event.get("attempt")), status, text(event.get("error")))]
            case "status":
                return [Compacting(event.get("status") == "compacting")]
            case "notification" if event.get("key") == "stop-hook-block-cap":
                self._overridden = True
            case "permission_denied":
                # Only calls that need approval; a call denied by a hook does not arrive here.
                name, reason = text(event.get("tool_name")), text(event.get("decision_reason_type"))
                self._asked[text(event.get("tool_use_id"))] = reason
                if name in _CHANGING and name not in self._denied and reason != _SAFETY:
                    self._denied.append(name)
        return []

    def _assistant(self, event: dict[str, Any]) -> list[AgentEvent]:
        """A sub-agent's tool calls are shown; its messages go to the agent and are not the agent's own."""
        is_main = event.get("parent_tool_use_id") is None
        message = members(event.get("message"))
        is_api_error = event.get("is_api_error_message") is True
        if is_main:
            self._error = event if is_api_error or event.get("error") else {}
        if is_api_error or message.get("model") == "<synthetic>":
            info = members(members(event.get("api_error_params")).get("rate_limit_info"))
            return [] if self._limited else self._limit(info)
        events: list[AgentEvent] = []
        usage, content = members(message.get("usage")), message.get("content")
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else items(content)
        if usage:
            is_new = self._is_new(text(message.get("id")))
            read = _read_now(usage) if is_new else Tokens()
            events.append(Usage(read.total if is_main else 0, read + Tokens(output=_written(blocks))))
        for block in blocks:
            kind = block.get("type")
            if kind == "text" and is_main and (said := text(block.get("text"))):
                self._worked = True
                events.append(Text(said))
            elif kind == "tool_use":
                self._worked = True
                events.append(self._tool_use(block, _time(event)))
        return events

    def _is_new(self, message: str) -> bool:
        if message and message in self._messages:
            return False
        if len(self._messages) >= _MOST_OPEN:
            self._messages.pop(next(iter(self._messages)))
        self._messages[message] = None
        return True

    def _tool_use(self, block: dict[str, Any], at: float | None) -> ToolUse:
        name, call = text(block.get("name")), text(block.get("id"))
        if at is not None and len(self._called) < _MOST_OPEN:
            self._called[call] = at
        if name in _CHANGING:
            if len(self._open) >= _MOST_OPEN:
                self._open.pop(next(iter(self._open)))
            self._open[call] = name
        given = members(block.get("input"))
        path = text(given.get("file_path") or given.get("notebook_path"))
        return ToolUse(name, summarise(name, given, self._cwd), call, path, text(given.get("command")))

    def _user(self, event: dict[str, Any]) -> Iterator[AgentEvent]:
        if event.get("isSynthetic") is True:
            return
        for block in items(members(event.get("message")).get("content")):
            if block.get("type") != "tool_result":
                continue
            call, ok = text(block.get("tool_use_id")), block.get("is_error") is not True
            tool = self._open.pop(call, "")
            if ok and tool:
                self._changed |= tool != "Bash" or "bashEditDiff" in members(event.get("tool_use_result"))
            began, ended = self._called.pop(call, None), _time(event)
            seconds = max(ended - began, 0.0) if began is not None and ended is not None else None
            yield ToolResult(call, ok, _returned(block.get("content")), seconds)

    def _limit(self, info: dict[str, Any]) -> list[AgentEvent]:
        """A rejection without a reset time is a busy server, not a used-up limit; with overage, work continues."""
        status, kind = text(info.get("status")), text(info.get("rateLimitType"))
        resets_at = number(info.get("resetsAt"))
        if resets_at is not None and not 0 < resets_at < _FURTHEST:
            resets_at = None
        rejected = status == "rejected" and info.get("isUsingOverage") is not True
        if not status or (rejected and resets_at is None and not kind):
            return []
        self._limited = rejected
        utilization = number(info.get("utilization"))
        if utilization is None:
            utilization = number(members(members(info.get("unifiedWindows")).get(kind)).get("utilization"))
        return [*_other_windows(info, kind), Limit(rejected, resets_at, kind, utilization)]

    def _result(self, event: dict[str, Any]) -> Result:
        said = text(event.get("result"))
        trouble = self._trouble(event, said)
        self._error = {}
        detail = ""
        if trouble is Trouble.PERMISSION:
            detail = f"the agent was not permitted to use {' and '.join(self._denied)}"
        elif trouble:
            errors = event.get("errors")
            words = [text(error) for error in errors] if isinstance(errors, list) else []
            detail = one_line((said or "; ".join(words))[:10_000], _DETAIL)
        return Result(
            ok=trouble is None,
            text=said,
            trouble=trouble,
            detail=detail,
            cost_usd=self._new_cost(event),
            tokens=self._new_tokens(event),
            turns=count(event.get("num_turns")),
            models=_by_cost(members(event.get("modelUsage"))),
            uses=self._new_uses(members(event.get("modelUsage"))),
            window=_window(members(event.get("modelUsage"))),
            structured=_structured(event.get("structured_output")),
            denials=tuple(self._denial(entry) for entry in items(event.get("permission_denials"))[:_MOST_DENIALS]),
            note="the client overrode the Stop hook, which kept blocking" if self._overridden else "",
        )

    def _denial(self, entry: dict[str, Any]) -> Denial:
        tool, call = text(entry.get("tool_name")), text(entry.get("tool_use_id"))
        subject = summarise(tool, members(entry.get("tool_input")), self._cwd).removeprefix(tool).strip()
        # A rule of the project that denies a call is never asked about.
        reason = self._asked.get(call, "rule")
        return Denial(tool, subject, call, {_SAFETY: "protected", "rule": "rule"}.get(reason, ""))

    def _trouble(self, event: dict[str, Any], said: str) -> Trouble | None:
        subtype, is_error = text(event.get("subtype")), event.get("is_error")
        if is_error is True or (is_error is not False and subtype != "success"):
            names = [event.get("api_error"), event.get("api_error_type")]
            names += [self._error.get(key) for key in ("error", "api_error", "api_error_type")]
            return classify(
                Failure(
                    subtype=subtype,
                    terminal_reason=text(event.get("terminal_reason")),
                    status=count(event.get("api_error_status")) or count(self._error.get("api_error_status")),
                    names=frozenset(text(name) for name in names if name),
                    limited=self._limited,
                )
            )
        if not said.strip() and not self._worked:
            return Trouble.EMPTY
        if self._denied and not self._changed:
            return Trouble.PERMISSION
        return None

    def _new_cost(self, event: dict[str, Any]) -> float | None:
        """What this result adds: the client reports totals of its process."""
        total = number(event.get("total_cost_usd"))
        if total is None or total < 0:
            return None
        before, self._cost = self._cost, total
        return round(total - before, 9) if total >= before else total

    def _new_uses(self, used: dict[str, Any]) -> tuple[ModelUse, ...]:
        """The same by model."""
        new = []
        for name in _by_cost(used):
            item = members(used.get(name))
            total = ModelUse(name, _of_model([item]), max(number(item.get("costUSD")) or 0.0, 0.0))
            before, self._uses[name] = self._uses.get(name, ModelUse(name)), total
            usd = total.usd - before.usd if total.usd >= before.usd else total.usd
            new.append(ModelUse(name, _difference(total.tokens, before.tokens), round(usd, 9)))
        return tuple(new)

    def _new_tokens(self, event: dict[str, Any]) -> Tokens:
        """By model, because that includes sub-agents and compaction; those are totals too."""
        used = [item for item in members(event.get("modelUsage")).values() if isinstance(item, dict)]
        if not used:
            usage = members(event.get("usage"))
            names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
            return Tokens(*(count(usage.get(name)) for name in names))
        total = _of_model(used)
        before, self._tokens = self._tokens, total
        return _difference(total, before)


def _time(event: dict[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(text(event.get("timestamp"))).timestamp()
    except (ValueError, OverflowError):
        return None


def _returned(content: object) -> str:
    """A tool's result, as far as it is text."""
    if isinstance(content, str):
        return _HOOK_ERROR.sub("denied: ", content[:_RETURNED])
    return "\n".join(text(block.get("text"))[:_RETURNED] for block in items(content) if block.get("text"))[:_RETURNED]


def _structured(answer: object) -> str:
    """Encoded as JSON again. One larger than any answer needs to be is ignored."""
    if not isinstance(answer, dict):
        return ""
    written = msgspec.json.encode(answer)
    return written.decode() if len(written) <= _LARGEST_ANSWER else ""


def _other_windows(info: dict[str, Any], kind: str) -> Iterator[Limit]:
    """How much is used of the limit windows that an event is not about."""
    for name, window in members(info.get("unifiedWindows")).items():
        resets_at, used = number(members(window).get("resetsAt")), number(members(window).get("utilization"))
        if text(name) != kind and resets_at is not None and 0 < resets_at < _FURTHEST and used is not None:
            yield Limit(False, resets_at, text(name), used)


def _by_cost(used: dict[str, Any]) -> tuple[str, ...]:
    """The models of a process, the one that did most of the work first."""
    costs = {text(name): number(members(item).get("costUSD")) or 0.0 for name, item in used.items()}
    return tuple(sorted(costs, key=lambda name: -costs[name]))


def _of_model(used: list[dict[str, Any]]) -> Tokens:
    names = ("inputTokens", "outputTokens", "cacheReadInputTokens", "cacheCreationInputTokens")
    return Tokens(*(sum(count(item.get(name)) for item in used) for name in names))


def _difference(total: Tokens, before: Tokens) -> Tokens:
    return Tokens(
        _added(total.input, before.input),
        _added(total.output, before.output),
        _added(total.cache_read, before.cache_read),
        _added(total.cache_write, before.cache_write),
    )


def _written(blocks: list[dict[str, Any]]) -> int:
    """An estimate of the tokens of these blocks."""
    texts = (text(block.get("text") or block.get("thinking")) for block in blocks)
    calls = (msgspec.json.encode(block["input"]) for block in blocks if block.get("input"))
    return sum(map(len, texts)) // _PER_TOKEN + sum(map(len, calls)) // _PER_TOKEN


def _added(total: int, before: int) -> int:
    """A total that decreased was restarted."""
    return total - before if total >= before else total
