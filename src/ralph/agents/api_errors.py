"""Errors of a model's service, as clients pass them on: a status, the vendor's names for the error, a message.

The adapters of clients that report little share this. A limit is told from a busy server: the former has a name, a
reset time or words of its own; waiting a little does not help against it.
"""

from __future__ import annotations

import json
import re
import time
from typing import Any

from msgspec import Struct

from ralph.agents.untyped import count, members, number, text
from ralph.core.agent import Limit, Result, Trouble
from ralph.core.text import one_line

_BY_STATUS = {
    400: Trouble.OTHER,
    401: Trouble.AUTHENTICATION,
    402: Trouble.BILLING,
    403: Trouble.AUTHENTICATION,
    404: Trouble.MODEL,
    408: Trouble.TRANSPORT,
    413: Trouble.CONTEXT,
    429: Trouble.TRANSPORT,
}
_BY_NAME = {
    "usage_limit_reached": Trouble.LIMIT,
    "insufficient_quota": Trouble.BILLING,
    "billing_error": Trouble.BILLING,
    "authentication_error": Trouble.AUTHENTICATION,
    "authentication": Trouble.AUTHENTICATION,
    "invalid_api_key": Trouble.AUTHENTICATION,
    "unauthenticated": Trouble.AUTHENTICATION,
    "permission_denied": Trouble.AUTHENTICATION,
    "model_not_found": Trouble.MODEL,
    "not_found_error": Trouble.MODEL,
    "not_found": Trouble.MODEL,
    "context_length_exceeded": Trouble.CONTEXT,
    "rate_limit_exceeded": Trouble.TRANSPORT,
    "rate_limit_error": Trouble.TRANSPORT,
    "rate_limit": Trouble.TRANSPORT,
    "resource_exhausted": Trouble.TRANSPORT,
    "overloaded_error": Trouble.TRANSPORT,
    "server_error": Trouble.TRANSPORT,
    "internal": Trouble.TRANSPORT,
    "unavailable": Trouble.TRANSPORT,
    "api_error": Trouble.TRANSPORT,
}
_STATUS = re.compile(
    r"\b(?:status(?:[ _]?code)?|code|HTTP(?:/\d(?:\.\d)?)?|error)\W{0,4}([45]\d\d)\b|\b([45]\d\d)\b(?= [A-Z{\"(])",
    re.IGNORECASE,
)
_WORDS = {
    Trouble.AUTHENTICATION: (
        "incorrect api key|invalid api key|invalid.{0,10}x-api-key|unauthorized|authentication|"
        "missing environment variable|not logged in|(?:log|sign) in again"
    ),
    Trouble.MODEL: "model.{0,80}(?:does not exist|not found|not supported)|unknown model|no such model",
    Trouble.CONTEXT: "context (?:window|length)|prompt is too long|too many tokens",
    Trouble.TRANSPORT: (
        "rate.?limit|too many requests|overloaded|high demand|at capacity|server had an error|internal server error|"
        "connection (?:refused|reset|error|closed|failed)|network error|fetch failed|timed? ?out|socket hang up|econn|"
        "stream.{0,30}(?:disconnect|closed|ended|interrupt)|premature|incomplete|"
        "^terminated$|other side closed|broke off"
    ),
}
"""Words of a message without a status."""


class ApiError(Struct, frozen=True, kw_only=True):
    """What is known of an error. Parts that a client does not pass on stay empty."""

    status: int = 0
    names: tuple[str, ...] = ()
    message: str = ""
    resets_at: float | None = None

    @property
    def trouble(self) -> Trouble:
        return self._sorted()[0]

    @property
    def reset(self) -> float | None:
        """When a limit ends, seconds since the epoch."""
        return self._sorted()[1]

    def _sorted(self) -> tuple[Trouble, float | None]:
        names = [name.lower() for name in self.names if name]
        for name in names:
            if _BY_NAME.get(name) in (Trouble.LIMIT, Trouble.BILLING):
                return _BY_NAME[name], self.resets_at
        if self.resets_at is not None:
            return Trouble.LIMIT, self.resets_at
        if not self.status or self.status == 429 or self.status in (402, 403):
            from ralph.results.usage_limit import detect_limit  # much to import, and errors are few

            found = detect_limit(self.message, now=time.time())
            if found.limit and (found.kind in ("usage", "quota") or found.resets_at is not None):
                return Trouble.LIMIT, found.resets_at
            if found.limit:
                return Trouble.BILLING if found.kind == "billing" else Trouble.TRANSPORT, None
        if self.status >= 500:
            return Trouble.TRANSPORT, None
        if self.status in _BY_STATUS and _BY_STATUS[self.status] is not Trouble.OTHER:
            return _BY_STATUS[self.status], None
        known = next((_BY_NAME[name] for name in names if name in _BY_NAME), None)
        known = known or next((t for t, words in _WORDS.items() if re.search(words, self.message, re.IGNORECASE)), None)
        return known or Trouble.OTHER, None

    def result(self, **more: Any) -> Result:
        """The end of a session that failed with it."""
        return Result(ok=False, trouble=self.trouble, detail=one_line(self.message, 300), **more)

    def limit(self) -> list[Limit]:
        """The event that goes before the result, if it is a limit."""
        return [Limit(True, self.reset, one_line(self.message, 80))] if self.trouble is Trouble.LIMIT else []


def api_error(message: str, status: int = 0, *names: str) -> ApiError:
    """From a message, which often holds the service's answer as JSON, or the status."""
    body = _body(message)
    inner = members(body.get("error")) or body
    reset = number(inner.get("resets_at"))
    if reset is None and (seconds := number(inner.get("resets_in_seconds"))) is not None:
        reset = time.time() + seconds
    found = [*names, *(text(inner.get(key)) for key in ("type", "code", "status"))]
    if not status:
        status = next((n for key in ("status", "code", "status_code") if 400 <= (n := count(inner.get(key))) < 600), 0)
    if not status and (seen := _STATUS.search(message)):
        status = int(seen[1] or seen[2])
    told = text(inner.get("message")) or message
    return ApiError(status=status, names=tuple(filter(None, found)), message=told, resets_at=reset)


def _body(message: str) -> dict[str, Any]:
    """The JSON object in a message."""
    start, end = message.find("{"), message.rfind("}")
    if start < 0 or end < start:
        return {}
    try:
        found = json.loads(message[start : end + 1])
    except (ValueError, RecursionError):
        return {}
    return members(found)
