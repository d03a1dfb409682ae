"""How each vendor's service says no, as status, headers and body. A turn `{"fail": "quota"}` names one."""

from __future__ import annotations

import time
from typing import Any

FAILURES = ("401", "404", "429", "reset", "quota", "500")
RESET = 1800
"""Seconds until a limit ends, where the service tells it."""
Answer = tuple[int, dict[str, str], dict[str, Any]]

_BUSY = {"retry-after": "1"}
_QUOTA = "You exceeded your current quota, please check your plan and billing details."


def failure(dialect: str, name: str) -> Answer:
    return {"gemini": _gemini, "": _anthropic}.get(dialect, _openai)(name)


def _anthropic(name: str) -> Answer:
    def body(kind: str, message: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": kind, "message": message}}

    at = str(int(time.time()) + (RESET if name == "reset" else 24 * 3600))
    limit = {f"anthropic-ratelimit-unified-{key}": value for key, value in (("status", "rejected"), ("reset", at))}
    window = "five_hour" if name == "reset" else "seven_day"
    limit["anthropic-ratelimit-unified-representative-claim"] = window
    table: dict[str, Answer] = {
        "401": (401, {}, body("authentication_error", "invalid x-api-key")),
        "404": (404, {}, body("not_found_error", "model: no-such-model")),
        "429": (429, _BUSY, body("rate_limit_error", "Number of requests has exceeded your rate limit.")),
        "reset": (429, limit, body("rate_limit_error", "This request would exceed your account's rate limit.")),
        "quota": (429, limit, body("rate_limit_error", "This request would exceed your account's rate limit.")),
        "500": (500, {}, body("api_error", "Internal server error")),
    }
    return table[name]


def _openai(name: str) -> Answer:
    def body(kind: str, code: str | None, message: str, **more: Any) -> dict[str, Any]:
        return {"error": {"message": message, "type": kind, "code": code, "param": None, **more}}

    missing = "The model `no-such-model` does not exist or you do not have access to it."
    until = {"plan_type": "plus", "resets_at": int(time.time()) + RESET, "resets_in_seconds": RESET}
    table: dict[str, Answer] = {
        "401": (401, {}, body("invalid_request_error", "invalid_api_key", "Incorrect API key provided: test-key.")),
        "404": (404, {}, body("invalid_request_error", "model_not_found", missing)),
        "429": (429, _BUSY, body("requests", "rate_limit_exceeded", "Rate limit reached for requests")),
        "reset": (429, {}, body("usage_limit_reached", None, "The usage limit has been reached", **until)),
        "quota": (429, {}, body("insufficient_quota", "insufficient_quota", _QUOTA)),
        "500": (500, {}, body("server_error", None, "The server had an error while processing your request.")),
    }
    return table[name]


def _gemini(name: str) -> Answer:
    def body(code: int, status: str, message: str, *details: dict[str, Any]) -> dict[str, Any]:
        return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}

    def detail(kind: str, **values: Any) -> dict[str, Any]:
        return {"@type": f"type.googleapis.com/google.rpc.{kind}", **values}

    invalid = detail("ErrorInfo", reason="API_KEY_INVALID", domain="googleapis.com")
    metric = "generativelanguage.googleapis.com/generate_content_free_tier_requests"
    day = "GenerateRequestsPerDayPerProjectPerModel-FreeTier"
    daily = detail("QuotaFailure", violations=[{"quotaMetric": metric, "quotaId": day, "quotaValue": "100"}])
    retry = detail("RetryInfo", retryDelay=f"{RESET}s")
    busy = "Resource has been exhausted (e.g. check quota)."
    missing = "models/no-such-model is not found for API version v1beta"
    table: dict[str, Answer] = {
        "401": (400, {}, body(400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", invalid)),
        "404": (404, {}, body(404, "NOT_FOUND", missing)),
        "429": (429, {}, body(429, "RESOURCE_EXHAUSTED", busy)),
        "reset": (429, {}, body(429, "RESOURCE_EXHAUSTED", _QUOTA, retry)),
        "quota": (429, {}, body(429, "RESOURCE_EXHAUSTED", _QUOTA, daily)),
        "500": (500, {}, body(500, "INTERNAL", "Internal error encountered.")),
    }
    return table[name]
