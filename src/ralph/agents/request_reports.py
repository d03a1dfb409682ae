"""What Ralph's plugin inside a client reports on stderr: failed requests to the model above all.

A client that retries for minutes says nothing about it, or not why. A used-up limit ends the session at once; a service
that stays busy or broken ends it before the client would: the loop waits and tries again.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from ralph.agents.api_errors import ApiError, api_error
from ralph.agents.untyped import count, decode, text
from ralph.core.agent import AgentEvent, Retry, Trouble
from ralph.core.ports import HookFiles

_MARK = b"ralph: "
_PATIENCE = 25.0
"""Seconds of failing requests, after which the client is ended. Its next pause would be half a minute."""
_LONGEST_PAUSE = 60.0
_EVENTS = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd"),
)


def plugin_files(hooks: HookFiles | None, dialect: str, plugin: str) -> dict[str, str]:
    """The plugin and what it imports, for `Launch.files`. Without hooks it only reports."""
    import json  # only for a process that is started

    calls = {event: hooks.call(event, dialect) for event in _EVENTS} if hooks else {}
    here = Path(__file__).parent
    shared = f"const HOOKS = {json.dumps(calls)};\n{(here / 'script_hooks.js').read_text(encoding='utf-8')}"
    return {"ralph.js": shared, plugin: (here / plugin).read_text(encoding="utf-8")}


def report_of(line: bytes) -> dict[str, Any]:
    """The report on a line of stderr; empty if it is none."""
    return decode(line.removeprefix(_MARK)) if line.startswith(_MARK) else {}


class Requests:
    """The requests of one process that failed since the last one that did not."""

    def __init__(self) -> None:
        self._failed = 0
        self._since = 0.0
        self.last: ApiError | None = None
        """The last error, with the service's own words."""

    def read(self, report: dict[str, Any]) -> list[AgentEvent]:
        status, body = count(report.get("status")), text(report.get("body"))
        if 0 < status < 400:
            self._failed, self.last = 0, None
            return []
        error = api_error(body, status) if status else api_error(body or "the connection failed")
        if not status and error.trouble is Trouble.OTHER:
            error = ApiError(message=error.message, names=("unavailable",))
        self._failed += 1
        self._since = time.monotonic() if self._failed == 1 else self._since
        self.last = error
        seen: AgentEvent = Retry(self._failed, status or None, error.message[:200])
        if error.trouble in (Trouble.LIMIT, Trouble.BILLING):
            return [seen, *error.limit(), error.result(gives_up=True)]
        is_hopeless = time.monotonic() - self._since >= _PATIENCE or _seconds(report.get("after")) > _LONGEST_PAUSE
        if error.trouble is Trouble.TRANSPORT and is_hopeless:
            return [seen, error.result(gives_up=True)]
        return [seen]


def _seconds(after: Any) -> float:
    """A `Retry-After` header in its usual form."""
    try:
        return float(text(after))
    except ValueError:
        return 0.0
