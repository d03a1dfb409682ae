"""What has happened in a run so far, as far as deciding needs to know. A fold over the journal. Pure."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ralph.core.agent import Limit
from ralph.core.events import AgentSaid, AgentStarted, AnyEvent, IterationEnded, Proved, Recovered, RunStarted
from ralph.core.plan import Mode
from ralph.core.purse import Purse, pay
from ralph.core.verdict import Kind

_HOUR = 3600.0


class History(Struct, frozen=True):
    started: float = 0
    iterations: int = 0
    """Finished ones that count towards the cap."""
    number: int = 0
    """The last iteration's number."""
    calls: tuple[float, ...] = ()
    """When agents were started, within the last hour."""
    no_progress: int = 0
    same_error: int = 0
    last_error: str = ""
    transport: int = 0
    """Transport failures in a row."""
    last_ended: float = 0
    limit_until: float | None = None
    limit_seen: bool = False
    misconfigured: str = ""
    last_kind: Kind | None = None
    asked: dict[str, str] = {}
    """Stories that wait for a person, with their question."""
    free: dict[str, int] = {}
    """Sessions of a story that cost no attempt: a limit, a broken connection."""
    feedback: dict[str, str] = {}
    """Why the last attempt at a story was not accepted."""
    setup_done: bool = False
    setup_failures: int = 0
    proved: bool | None = None
    purse: Purse = Purse()
    """What is spent, for the budgets."""


def fold(history: History, event: AnyEvent, t: float) -> History:
    change = msgspec.structs.replace
    match event:
        case RunStarted():
            return change(history, started=t, feedback=event.feedback)
        case AgentStarted():
            recent = tuple(call for call in history.calls if call > t - _HOUR)
            return change(history, calls=(*recent, t))
        case AgentSaid(event=Limit(rejected=True, resets_at=resets_at)) if resets_at is not None:
            return change(history, limit_until=resets_at)
        case IterationEnded():
            return _after(history, event, t)
        case Recovered(iteration=iteration):
            return change(history, number=max(history.number, iteration))
        case Proved(passed=passed):
            return change(history, proved=passed)
        case _:
            purse = pay(history.purse, event)
            return history if purse is history.purse else change(history, purse=purse)


def _after(history: History, event: IterationEnded, t: float) -> History:
    fed = event.kind.feeds_breaker
    repeats = fed and bool(event.fingerprint) and event.fingerprint == history.last_error
    feedback = dict(history.feedback)
    if event.kind.uses_attempt or event.story not in feedback:  # a limit in between does not make a rejection unsaid
        feedback.pop(event.story, None)
        if event.feedback and not event.completes:
            feedback[event.story] = event.feedback
    asked = dict(history.asked)
    if event.kind is Kind.BLOCKED:
        asked[event.story] = event.question
    is_free = event.kind in (Kind.LIMIT, Kind.TRANSPORT, Kind.INTERRUPTED)
    free = history.free | ({event.story: history.free.get(event.story, 0) + 1} if is_free else {})
    no_progress, same_error, last_error = history.no_progress, history.same_error, history.last_error
    if fed:
        no_progress, same_error, last_error = no_progress + 1, same_error + 1 if repeats else 1, event.fingerprint
    elif event.kind is Kind.ACCEPTED:
        no_progress, same_error, last_error = 0, 0, ""
    return msgspec.structs.replace(
        history,
        iterations=history.iterations + (not is_free),
        number=event.iteration,
        no_progress=no_progress,
        same_error=same_error,
        last_error=last_error,
        transport=history.transport + 1 if event.kind is Kind.TRANSPORT else 0,
        last_ended=t,
        limit_until=event.resets_at if event.kind is Kind.LIMIT else None,
        limit_seen=event.kind is Kind.LIMIT,
        misconfigured=event.headline if event.kind is Kind.MISCONFIGURED else "",
        last_kind=event.kind,
        asked=asked,
        free=free,
        feedback=feedback,
        setup_failures=history.setup_failures + (event.mode is Mode.SETUP and event.kind.feeds_breaker),
        setup_done=history.setup_done or (event.mode is Mode.SETUP and event.kind is Kind.ACCEPTED),
        proved=None,
    )
