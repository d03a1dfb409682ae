"""Durations, sums, verdicts, budgets and forecasts as text, the same in every view."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from ralph.budget.forecast import ENOUGH
from ralph.core.agent import Tokens
from ralph.core.events import Foreseen
from ralph.core.evidence import CheckResult
from ralph.core.plan import State
from ralph.core.rules import Limits
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
    Kind.RETURNED: ("↩", "yellow"),
}

MARKS = {
    State.TODO: ("·", "dim"),
    State.IN_PROGRESS: ("▶", "cyan"),
    State.DONE: ("✓", "green"),
    State.FAILED: ("✗", "red"),
    State.BLOCKED: ("?", "yellow"),
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


def money(usd: float | None, is_estimated: bool = False, unknown: int = 0) -> str:
    """`$1.20`; `~$1.20` if a part is estimated at list prices; `$1.20 +?` if some sessions are of unknown cost."""
    return "cost unknown" if usd is None else f"{'~' if is_estimated else ''}${usd:.2f}{' +?' if unknown else ''}"


def grades_line(counts: Mapping[str, int]) -> str:
    """`2 proven, 1 witnessed`"""
    return ", ".join(f"{count} {grade}" for grade, count in counts.items())


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


def foreseen(event: Foreseen) -> str:
    """Each figure as a range from the median to the 90th percentile. Without a history, no forecast."""
    if event.samples < ENOUGH:
        return "no data yet"
    low, high = (_figures(event, at) for at in (0, 1))
    return ", ".join(a if a == b else f"{a.removesuffix(' iterations')}–{b}" for a, b in zip(low, high, strict=True))


def ground_for(event: Foreseen) -> str:
    """What the forecast is based on."""
    if event.samples < ENOUGH:
        return f"needs {ENOUGH} finished stories, {event.samples} so far"
    return f"90%: up to {_figures(event, 1)[-1]}; from {plural(event.samples, 'story')} of this workspace"


def _figures(event: Foreseen, at: int) -> list[str]:
    figures = [plural(round(event.iterations[at]), "iteration"), duration(event.seconds[at])]
    return [*figures, f"${event.usd[at]:,.2f}"] if event.usd is not None else figures


def budget_line(event: Foreseen, cap: int, limits: Limits) -> str:
    """`5 stories × about 3 iterations = about 15; cap 50 (5 stories × 10)`"""
    total = round(event.iterations[0])
    each = f"{event.iterations[0] / event.stories:.1f}".removesuffix(".0") if event.stories else "0"
    word = "iteration" if each == "1" else "iterations"
    line = f"{plural(event.stories, 'story')} × about {each} {word} = about {total}; cap {cap or 'none'}"
    if limits.per_story and not limits.max_iterations and cap != limits.max_allowed:
        line += f" ({plural(cap // limits.per_story, 'story')} × {limits.per_story})"
    if is_short(event, cap):
        line += f", which may be too low: {raise_cap(cap, limits)}"
    return line


def raise_cap(cap: int, limits: Limits) -> str:
    """What to do about a cap that is too low: names the setting that causes it, never a value another one would cap."""
    if cap == limits.max_allowed:
        return "raise max_allowed_iterations, or set it to 0"
    return "without max_iterations (-n) it follows from the plan"


def is_short(event: Foreseen, cap: int) -> bool:
    """Whether the cap would end the run before the plan is finished in at least half of the cases."""
    return 0 < cap < round(event.iterations[0])
