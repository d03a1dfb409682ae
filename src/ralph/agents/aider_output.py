"""The plain output of aider: a head, the answer of the model, a line with tokens, the edits that were applied.

Its log of events has the exact numbers. The exit code is 0 whatever happens.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from ralph.agents.api_errors import ApiError, api_error
from ralph.agents.untyped import count, decode, members, number
from ralph.core.agent import AgentEvent, Init, Result, Retry, Text, Tokens, ToolUse, Trouble
from ralph.core.ports import ClientEnd
from ralph.core.text import one_line

LOG = "aider.jsonl"
_MODEL = re.compile(r"(?:Main model|Model): (\S+)")
_ERROR = re.compile(r"litellm\.(\w+): (.*)")
_RETRY = re.compile(r"Retrying in ([\d.]+) seconds")
_TOKENS = re.compile(r"Tokens: ([\d.,]+)(k?) sent,.*?([\d.,]+)(k?) received")
_APPLIED = re.compile(r"(?:Applied edit to|Did not apply edit to) (.+?)(?: \(--dry-run\))?$")
_NOT_SET_UP = ("No LLM model was specified", "Unable to proceed without an OpenRouter API key")
_NO_KEY = "requires an OpenRouter API key"
_TOO_LONG = "has hit a token limit!"
_NOISE = re.compile(
    r"Added \S+ to the chat(?: \(read-only\))?\.$|Creating empty file /|HTTPSConnectionPool\(host='raw\.|"
    r"Only \d+ reflections allowed, stopping\.$|Empty response received from LLM"
)
_PATIENCE = 4.0
"""Seconds of a pause before another attempt. By then it has made a dozen; they would go on for a minute and a half."""
_STATUS = {
    "AuthenticationError": 401,
    "PermissionDeniedError": 403,
    "NotFoundError": 404,
    "RateLimitError": 429,
    "Timeout": 408,
    "BadGatewayError": 502,
    "ServiceUnavailableError": 503,
    "InternalServerError": 500,
    "APIConnectionError": 500,
    "APIError": 500,
    "APIResponseValidationError": 500,
}
_LONGEST = 1_000_000


class AiderOutput:
    def __init__(self) -> None:
        self._is_head = True
        self._lines: list[str] = []
        self._size = 0
        self._last = ""
        self._answers = 0
        self._retries = 0
        self._error: ApiError | None = None
        self._tokens = Tokens()
        self._model = ""
        self._is_over = False

    def __call__(self, line: bytes) -> list[AgentEvent]:
        said = line.decode("utf-8", "replace").rstrip()
        if self._is_over:
            return []
        if self._is_head:
            return self._head(said)
        if found := _ERROR.match(said):
            self._error = _understood(found[1], found[2])
            self._lines, self._size = [], 0
        elif found := _RETRY.match(said):
            return self._retry(float(found[1]))
        elif found := _TOKENS.match(said):
            return self._answered(Tokens(_count(found[1], found[2]), _count(found[3], found[4])))
        elif found := _APPLIED.match(said):
            return [ToolUse("edit", one_line(f"edit {found[1]}", 100), path=found[1])]
        elif said.endswith(_TOO_LONG):
            self._error = ApiError(status=413, message=said)
        elif not _NOISE.match(said) and self._size < _LONGEST:
            self._lines.append(said)
            self._size += len(said)
        return []

    def _head(self, said: str) -> list[AgentEvent]:
        if said.startswith(_NOT_SET_UP) or _NO_KEY in said:
            # It would now open a browser and wait for a login there.
            self._is_over = True
            return [Result(ok=False, trouble=Trouble.AUTHENTICATION, detail=one_line(said, 300), gives_up=True)]
        if found := _MODEL.match(said):
            self._model = found[1].rpartition("/")[2]
            return [Init(model=self._model)]
        self._is_head = not said.startswith("Repo-map: ")
        return []

    def _retry(self, seconds: float) -> list[AgentEvent]:
        self._retries += 1
        error = self._error or ApiError(message="the service does not answer")
        events: list[AgentEvent] = [Retry(self._retries, error.status or None, one_line(error.message, 200))]
        if seconds < _PATIENCE and error.trouble in (Trouble.TRANSPORT, Trouble.OTHER):
            return events
        self._is_over = True
        return [*events, *error.limit(), error.result(gives_up=True, models=self._models())]

    def _answered(self, used: Tokens) -> list[AgentEvent]:
        said = "\n".join(self._lines).strip()
        self._lines, self._size, self._error, self._retries = [], 0, None, 0
        self._tokens += used
        if not said:
            return []
        self._answers += 1
        self._last = said
        return [Text(said)]

    def _models(self) -> tuple[str, ...]:
        return (self._model,) if self._model else ()

    def finish(self, end: ClientEnd) -> list[AgentEvent]:
        if self._is_over or end.code is None:
            return []
        tokens, cost = _logged(end.folder) or (self._tokens, None)
        used: dict[str, Any] = {"tokens": tokens, "cost_usd": cost, "models": self._models()}
        if self._error is not None:
            return [*self._error.limit(), self._error.result(**used)]
        if self._answers:
            return [Result(ok=True, text=self._last, turns=self._answers, **used)]
        if end.code == 0 and not self._is_head:
            return [Result(ok=False, trouble=Trouble.EMPTY, detail="the model answered nothing", **used)]
        return []


def _count(digits: str, thousands: str) -> int:
    return round(float(digits.replace(",", "")) * (1000 if thousands else 1))


def _understood(kind: str, message: str) -> ApiError:
    plain = message.removeprefix(f"{kind}: ").partition("Exception - ")[2] or message
    return api_error(plain, _STATUS.get(kind, 0))


def _logged(folder: Path) -> tuple[Tokens, float | None] | None:
    """The exact tokens, and the cost if it knows the price of the model."""
    try:
        lines = (folder / LOG).read_bytes().splitlines()
    except OSError:
        return None
    sent = [members(event.get("properties")) for event in map(decode, lines) if event.get("event") == "message_send"]
    total = Tokens()
    for one in sent:
        total += Tokens(count(one.get("prompt_tokens")), count(one.get("completion_tokens")))
    cost = sum(number(one.get("cost")) or 0.0 for one in sent)
    return total, cost or None
