"""The usage limit of the agent's account: wait until it resets, then continue with the same story.

The limit is known from the usage windows the agent reported, in this run or, if not reset since, in the previous
one. For agents that report no usage windows, it is known from the verdict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from ralph.core.agent import Limit
from ralph.core.fallback import first_awake, is_anybody_left
from ralph.core.history import Heard, History
from ralph.core.moves import Reason, Stop, Wait
from ralph.core.rules import Limits, OnLimit
from ralph.core.verdict import Kind

_JITTER_SHARE = 0.05
"""As a share of the wait: a ten-second wait should not grow by thirty seconds."""
_FIRST_AGAIN, _LONGEST_AGAIN = 5.0, 900.0
"""Seconds. Used when the limit remains after its reset time: a wrong clock must not cause a busy loop."""
_DAY = 24 * 3600.0
_NEVER = 1.0
_SAYS_NOTHING = (None, Kind.LIMIT, Kind.TRANSPORT, Kind.INTERRUPTED, Kind.RETURNED)
"""Endings that do not show whether an agent could work."""


def usage(history: History, limits: Limits, now: float) -> Stop | Wait | None:
    until, why = max(_reasons(history, limits, now), default=(now, ""))
    if until <= now or is_anybody_left(history.bench, limits, now):
        return None
    unanswered = limits.on_limit is OnLimit.ASK_EXIT and history.answer == "nobody"
    if limits.on_limit is OnLimit.EXIT or history.answer == "exit" or unanswered:
        return Stop(Reason.USAGE_LIMIT, why)
    if awake := first_awake(history.bench, limits, now):
        until = min(until, awake)
    return Wait(until, why, ask=limits.on_limit in (OnLimit.ASK, OnLimit.ASK_EXIT) and not history.answer)


def still_to_wait_for(history: History, limits: Limits, now: float) -> Iterator[Limit]:
    """Usage limits from the previous run with the same agent that still hold."""
    for heard in history.windows.values():
        resets_at = heard.limit.resets_at
        if resets_at is None or resets_at <= now or limits.is_doubtful(resets_at, heard.at, heard.limit.kind):
            continue
        if heard.is_firsts and not (heard.limit.rejected and _is_outdated(heard, history)):
            yield heard.limit
    if history.limit_seen and history.limit_is_firsts and (until := _after_verdict(history, limits, now)) > now:
        said = history.limit_until or 0.0
        yield Limit(True, min(said, until) if said > now else until)  # the next run adds its own jitter


def _reasons(history: History, limits: Limits, now: float) -> Iterator[tuple[float, str]]:
    """Pairs of the time to wait for and the reason."""
    if history.limit_seen:
        until = history.limit_until or now
        doubt = _doubt(until, min(history.last_ended, now), limits, _kind(history))
        yield _after_verdict(history, limits, now), f"the usage limit is reached{doubt}"
    for heard in history.windows.values():
        kind = heard.limit.kind
        resets_at, used = heard.limit.resets_at, heard.limit.utilization or 0.0
        if resets_at is None or resets_at <= now:
            continue
        since = min(heard.at, now)
        until = _believed(resets_at, since, history, limits, kind)
        window = kind.replace("_", "-") or "usage"
        if heard.limit.rejected and not _is_outdated(heard, history):
            yield until, f"the {window} limit is reached{_doubt(resets_at, since, limits, kind)}"
        elif 0 < limits.limit_share < _NEVER and used >= limits.limit_share:
            yield until, f"{used:.0%} of the {window} limit is used; no new work starts above {limits.limit_share:.0%}"


def _kind(history: History) -> str:
    """The usage window that the last verdict is about."""
    limits = (heard.limit for heard in history.windows.values())
    return next((limit.kind for limit in limits if limit.resets_at == history.limit_until), "")


def _is_outdated(heard: Heard, history: History) -> bool:
    """True if an agent was started and worked after this report, so the limit no longer applies."""
    last = max((call for call in history.calls if call <= history.last_ended), default=0.0)
    return heard.at < last and history.last_kind not in _SAYS_NOTHING


def _after_verdict(history: History, limits: Limits, now: float) -> float:
    since = min(history.last_ended, now)
    until = since + limits.unknown_reset_wait
    if history.limit_until is not None:
        until = _believed(history.limit_until, since, history, limits, _kind(history))
    is_over = bool(limits.doubtful_wait) and history.limit_until is not None and history.limit_until <= since
    again = history.limits_in_a_row - (1 if is_over else 2)
    floor = min(_FIRST_AGAIN * 3 ** min(again, 10), _LONGEST_AGAIN) if again >= 0 else 0.0
    return max(until, since + floor)


def _doubt(resets_at: float, since: float, limits: Limits, kind: str = "") -> str:
    if not limits.is_doubtful(resets_at, since, kind):
        return ""
    away, pause = (resets_at - since) / _DAY, limits.doubtful_wait / 60
    return f"; a reset {away:.0f} days from now is doubtful, so the run tries again after {pause:.0f} minutes"


def _believed(resets_at: float, since: float, history: History, limits: Limits, kind: str = "") -> float:
    """When to resume: a little after the reset time, and capped."""
    if limits.is_doubtful(resets_at, since, kind):
        return since + limits.doubtful_wait
    most = min(limits.jitter, _JITTER_SHARE * max(resets_at - since, 0.0))
    seed = hashlib.sha256(f"{history.run} {resets_at:.0f}".encode()).digest()
    return min(resets_at + most * seed[0] / 255, since + limits.longest_wait)
