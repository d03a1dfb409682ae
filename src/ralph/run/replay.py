"""Replays a journal through the pure functions: the same records must give the same decisions."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec import Struct

from ralph.core.events import Decided, Judged, PlanSeen, Record, RunStarted, Scheduled, SeenStory
from ralph.core.history import History, fold
from ralph.core.plan import Order, Plan, Story
from ralph.core.review import AT_CAP, AT_STALEMATE, Review
from ralph.core.rules import Limits
from ralph.engine.decide import decide
from ralph.engine.judge import judge
from ralph.engine.schedule import schedule
from ralph.journal.run_state import RunState

_NOTES = {"cap": AT_CAP, "stalemate": AT_STALEMATE}


class Difference(Struct, frozen=True):
    seq: int
    what: str
    then: str
    now: str


class Replayed(Struct, frozen=True):
    decisions: int
    verdicts: int
    differences: tuple[Difference, ...]


def replay(records: Iterable[Record]) -> Replayed:
    history, state = History(), RunState()
    limits, order = Limits(), Order.PRIORITY
    decisions = verdicts = 0
    differences: list[Difference] = []
    for record in records:
        event = record.event
        if isinstance(event, RunStarted):
            limits = event.limits
        if isinstance(event, PlanSeen):
            order = event.order
        if isinstance(event, Decided):
            decisions += 1
            plan = plan_of(state.stories, order)
            now = decide(
                plan,
                history,
                limits,
                event.at,
                needs_setup=event.needs_setup,
                review=event.review,
                needs_acceptance=lambda _, due=event.needs_acceptance: due,  # type: ignore[misc]
                needs_exam=event.needs_exam,
            )
            if now != event.move:
                differences.append(Difference(record.seq, "the decision", repr(event.move), repr(now)))
        if isinstance(event, Scheduled):
            decisions += 1
            again = reschedule(event, plan_of(state.stories, order), history, limits)
            if again != event:
                differences.append(Difference(record.seq, "the schedule", _outcome(event), _outcome(again)))
        if isinstance(event, Judged):
            verdicts += 1
            now_judged = judge(event.evidence)
            # Changes hold values of any type; those read from disk equal those in memory only as text.
            if msgspec.json.encode(now_judged) != msgspec.json.encode(event.verdict):
                then, now_kind = event.verdict.kind.value, now_judged.kind.value
                differences.append(
                    Difference(record.seq, f"the verdict on iteration {event.iteration}", then, now_kind)
                )
        history = fold(history, event, record.t)
        state.add(record)
    return Replayed(decisions, verdicts, tuple(differences))


def reschedule(event: Scheduled, plan: Plan, history: History, limits: Limits) -> Scheduled:
    """What the scheduler makes of the inputs of a record."""
    return schedule(
        plan,
        history,
        limits,
        event.at,
        running=event.running,
        free=event.free,
        areas=event.areas,
        returns=event.returns,
        needs_setup=event.needs_setup,
        review=event.review,
        needs_acceptance=event.needs_acceptance,
        needs_exam=event.needs_exam,
    )


def _outcome(event: Scheduled) -> str:
    return repr((event.start, event.move, event.held))


def plan_of(stories: dict[str, SeenStory], order: Order) -> Plan:
    return Plan(name="", stories=tuple(map(_story, stories.values())), order=order)


def _story(seen: SeenStory) -> Story:
    return Story(
        id=seen.id,
        title=seen.title,
        state=seen.state,
        priority=seen.priority,
        depends_on=seen.depends_on,
        review=Review(seen.review, feedback=_NOTES.get(seen.approved_at, "")),
        attempts=seen.attempts,
    )
