"""The message of a notification, and the events that cause one."""

from __future__ import annotations

from enum import StrEnum

import msgspec
from msgspec import Struct


class Moment(StrEnum):
    """Events that can cause a notification; `notify.on` selects from these."""

    DONE = "done"
    FAILED = "failed"
    BLOCKED = "blocked"
    LIMIT = "limit"
    BUDGET = "budget"
    PAUSED = "paused"
    STOPPED = "stopped"


class Message(Struct, frozen=True, kw_only=True):
    event: Moment
    title: str
    text: str
    run: str = ""
    plan: str = ""
    workspace: str = ""
    reason: str = ""
    exit_code: int | None = None
    done: int = 0
    total: int = 0
    cost_usd: float | None = None
    at: str = ""
    """ISO 8601, UTC."""

    def as_json(self) -> bytes:
        return msgspec.json.encode(self)


class NotSent(Exception):
    """Why a message was not sent, in words that contain no secret.

    `retry_in`: seconds after which it may be sent again; None: it would fail again.
    """

    def __init__(self, why: str, *, retry_in: float | None = None) -> None:
        super().__init__(why)
        self.retry_in = retry_in
