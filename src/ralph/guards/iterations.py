"""The iteration limit from the settings, and the single iteration of `--once`.

The limit that follows from the plan is checked when the next story is picked; see `decide`.
"""

from __future__ import annotations

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Reason, Stop
from ralph.core.verdict import Kind


def guard(history: History, limits: Limits, now: float) -> Stop | None:
    if limits.once and history.last_kind is not None and history.iterations:
        if history.last_kind is Kind.TIMED_OUT:
            return Stop(Reason.ONCE_TIMED_OUT, "the single iteration (--once) timed out")
        if history.last_kind is Kind.ACCEPTED:
            return Stop(Reason.ONCE, "the single iteration (--once) was accepted")
        return Stop(Reason.ITERATION_CAP, f"the single iteration (--once) was {history.last_kind.value}")
    if limits.max_iterations and history.iterations >= limits.max_iterations:
        many = "" if history.iterations == 1 else "s"
        had = f"{history.iterations} iteration{many}"
        return Stop(Reason.ITERATION_CAP, f"{had}; the cap is {limits.max_iterations}")
    return None
