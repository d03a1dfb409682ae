"""The defaults of each layout, taken from the system it comes from. A profile is only a set of values."""

from __future__ import annotations

from typing import Any

PROFILES: dict[str, dict[str, Any]] = {
    "plan.md": {
        "max_allowed_iterations": 100,
        "timeout": "1h",
        "review.when": "when-unproven",
        "review.on_cap": "fail",
        "review.on_stalemate": "fail",
        "push": "never",
    },
    "tasks.json": {
        "review.when": "always",
        "review.cap": 5,
    },
    "steps": {
        "timeout": "15m",
        "max_loops_per_task": 5,
        "agent.model": "sonnet",
        "review.when": "when-unproven",
        "review.on_cap": "fail",
        "review.on_stalemate": "fail",
        "circuit_breaker.no_progress_threshold": 0,
        "circuit_breaker.same_error_threshold": 0,
        "circuit_breaker.retry_rounds": 0,
    },
    "feature": {
        "timeout": "15m",
        "rate_limit_per_hour": 100,
        "on_limit": "ask-exit",
        "review.when": "when-unproven",
        "review.on_cap": "fail",
        "review.on_stalemate": "fail",
        "branch.auto_create": True,
        "archive.on_complete": True,
    },
    "spec.md": {
        "review.when": "when-unproven",
        "review.on_cap": "fail",
        "review.on_stalemate": "fail",
        "context.budget_tokens": 5000,
        "push": "never",
    },
    "snarktank": {
        "review.when": "when-unproven",
        "review.on_cap": "fail",
        "review.on_stalemate": "fail",
        "branch.auto_create": True,
    },
}

NAMED_CONFIG = {"steps": "default"}
"""Layouts that read a named config by default, if it exists."""
