"""Failures between client and model. The stream is the one the Claude client writes in that case."""

from __future__ import annotations

import math
import time
from typing import Any, Literal

from ralph.agents.acts.action import Action
from ralph.agents.stage import Leave, Stage


class Limit(Action, frozen=True):
    """The usage limit. If rejected, it ends the session; otherwise it reports how much is left."""

    seconds: float = 3600
    kind: str = "five_hour"
    status: Literal["rejected", "allowed", "allowed_warning"] = "rejected"
    utilization: float = 1

    def play(self, stage: Stage) -> None:
        info = {
            "status": self.status,
            "resetsAt": math.ceil(time.time() + self.seconds),
            "rateLimitType": self.kind,
            "utilization": self.utilization,
            "isUsingOverage": False,
        }
        stage.emit({"type": "rate_limit_event", "rate_limit_info": info})
        if self.status != "rejected":
            return
        text = f"You've hit your {self.kind.replace('_', '-')} limit"
        error: dict[str, Any] = {
            "api_error_status": 429,
            "api_error_type": "rate_limit_error",
            "api_error": "usage_limit_reached",
        }
        stage.synthetic(text, error="rate_limit", **error)
        stage.fail(text, **error)


class ApiError(Action, frozen=True):
    """An API error after a number of retries; status 0: no connection."""

    status: int
    retries: int = 0

    def play(self, stage: Stage) -> None:
        error, server = self._names()
        for attempt in range(1, self.retries + 1):
            stage.emit(
                {
                    "type": "system",
                    "subtype": "api_retry",
                    "attempt": attempt,
                    "max_retries": self.retries,
                    "retry_delay_ms": 0,
                    "error_status": self.status or None,
                    "error": error,
                }
            )
        text = f"API Error: {self.status or 'Connection refused'}"
        fields: dict[str, Any] = {"api_error_status": self.status or None, **server}
        stage.synthetic(text, error=error, **fields)
        stage.fail(text, **fields)

    def _names(self) -> tuple[str, dict[str, str]]:
        """The client's name for the error, and the server's."""
        match self.status:
            case 0:
                return "server_error", {"api_error": "connection_failed"}
            case 401:
                return "authentication_failed", {"api_error_type": "authentication_error"}
            case 403:
                return "authentication_failed", {"api_error_type": "permission_error"}
            case 404:
                return "model_not_found", {"api_error_type": "not_found_error"}
            case 429:
                return "rate_limit", {"api_error_type": "rate_limit_error"}
            case 529:
                return "server_error", {"api_error_type": "overloaded_error"}
            case status if status >= 500:
                return "server_error", {"api_error_type": "api_error"}
            case _:
                return "invalid_request", {"api_error_type": "invalid_request_error"}


class Empty(Action, frozen=True):
    """Ends successfully without any output."""

    def play(self, stage: Stage) -> None:
        stage.result(result="")
        raise Leave(0)


class GiveUp(Action, frozen=True):
    """The client stops on its own."""

    reason: Literal["max_turns", "max_budget", "context", "interrupted"] = "max_turns"

    def play(self, stage: Stage) -> None:
        if self.reason == "context":
            text = "Prompt is too long"
            stage.synthetic(text, error="invalid_request", api_error_status=400)
            stage.fail(text, terminal="prompt_too_long", api_error_status=400)
        subtype, terminal, text = {
            "max_turns": ("error_max_turns", "max_turns", "Reached maximum number of turns (2)"),
            "max_budget": ("error_max_budget_usd", "budget_exhausted", "Reached maximum budget ($0.5)"),
            "interrupted": ("error_during_execution", "aborted_tools", "interrupted"),
        }[self.reason]
        stage.fail("", terminal=terminal, subtype=subtype, errors=[text])
