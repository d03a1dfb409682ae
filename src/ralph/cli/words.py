"""Durations, sums and verdicts as text, the same in every view."""

from __future__ import annotations

import time
from collections.abc import Iterable

from ralph.core.agent import Tokens
from ralph.core.evidence import CheckResult
from ralph.core.text import plural as plural
from ralph.core.verdict import Kind

TERMINAL_CLOSED = "the last run ended because its terminal was closed; `ralph run --detach` survives that"

STYLES = {
    Kind.ACCEPTED: ("✓", "green"),
    Kind.PARTIAL: ("◐", "cyan"),
    Kind.REJECTED: ("✗", "red"),
    Kind.BLOCKED: ("?", "yellow"),
    Kind.LIMIT: ("⏳", "yellow"),
    Kind.TRANSPORT: ("⇄", "yellow"),
    Kind.CRASHED: ("✗", "red"),
    Kind.TIMED_OUT: ("⌛", "red"),
    Kind.MISCONFIGURED: ("!", "red"),
    Kind.INTERRUPTED: ("■", "yellow"),
}


def duration(seconds: float) -> str:
    """`8 s`, `2 m 05 s`, `3 h 20 m`."""
    whole = max(int(seconds), 0)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} m {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} m"


def seconds(count: float) -> str:
    """`0.4 s`, `4.1 s`; like `duration` from ten seconds on."""
    return f"{max(count, 0):.1f} s" if count < 9.95 else duration(count)


def tokens(count: Tokens) -> str:
    total = count.total
    if total < 1000:
        return f"{total} tokens"
    return f"{total / 1000:.1f}k tokens" if total < 1_000_000 else f"{total / 1_000_000:.2f}M tokens"


def money(usd: float | None) -> str:
    return "cost unknown" if usd is None else f"${usd:.2f}"


def clock(t: float) -> str:
    return time.strftime("%H:%M:%S", time.localtime(t))


def until_when(t: float, now: float) -> str:
    """`18:05:00, in 12 m 05 s`; with the date if it is not today."""
    is_today = time.localtime(t)[:3] == time.localtime(now)[:3]
    return f"{clock(t) if is_today else moment(t)}, in {duration(max(t - now, 0) + 0.999)}"


def checks_passed(results: Iterable[CheckResult]) -> str:
    """`3 checks passed (4.1 s)`; empty if none passed."""
    passed = [result.seconds for result in results if result.passed]
    return f"{plural(len(passed), 'check')} passed ({seconds(sum(passed))})" if passed else ""


def moment(t: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(t))


def exceptions(results: Iterable[CheckResult]) -> str:
    """The exceptions to "the checks pass": checks that may fail, and do."""
    failing = sum(not result.passed for result in results)
    return f", except {failing} that may fail" if failing else ""
