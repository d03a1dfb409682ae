"""A run, a story, an attempt and a comparison as plain documents: what the page, `ralph ui` and scripts are given.

Pure. Text in them comes from agents, plans and repositories: `plain` shows what is invisible in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import msgspec
from msgspec import Struct

from ralph.core.agent import Tokens
from ralph.core.history import History
from ralph.core.money import MICROS, rooms
from ralph.core.proof import Grade
from ralph.core.rules import Limits
from ralph.core.text import shown
from ralph.core.verdict import Kind
from ralph.engine.decide import cap
from ralph.report.explain import tell_standing
from ralph.views.attempts import Attempt, Check, Span
from ralph.views.catalog import RunCard
from ralph.views.run_view import RunView, StoryLine
from ralph.views.words import duration, money
from ralph.views.worker_lines import phase, workers_document
from ralph.workspace.runs import Standing

Document = dict[str, Any]

LIVE = (Standing.RUNNING, Standing.PAUSED, Standing.WAITING)
_MOST_SPANS = 5000
_HOUR = 3600.0


class LiveSession(Protocol):
    """A running session as far as its raw log tells; `workspace.agent_stream.AgentStream` is one."""

    @property
    def tokens(self) -> Tokens: ...
    @property
    def cost_usd(self) -> float | None: ...


class LimitLine(Struct, frozen=True):
    """A limit of a run and how much of it is used. `unit`: iterations, seconds, usd, tokens, times or share."""

    what: str
    used: float
    most: float
    unit: str


class CurrentLine(Struct, frozen=True, kw_only=True):
    """An iteration that has not ended."""

    iteration: int
    story: str
    title: str
    mode: str
    attempt: int
    worker: int
    since: float
    phase: str
    tokens: int
    cost_usd: float | None
    is_estimated: bool


class AttemptLine(Struct, frozen=True, kw_only=True):
    iteration: int
    story: str
    mode: str
    number: int
    worker: int
    since: float
    until: float | None
    verdict: str
    headline: str
    grade: str
    cost_usd: float | None
    tokens: int
    commit: str
    rescue: str


class CheckLine(Struct, frozen=True):
    """`index`: its place among the checks of the attempt, or of the run."""

    index: int
    when: str
    result: Any
    at: float


class WaitingLine(Struct, frozen=True):
    """What waits for a person."""

    run: str
    story: str
    text: str
    kind: str
    """question, failed, paused or unproven."""


class Difference(Struct, frozen=True):
    what: str
    a: str
    b: str
    better: str = ""
    """a or b."""


def plain(value: Any) -> Any:
    """As plain data. Colours are dropped; every other character that nobody sees is shown, as `<U+202E>`."""
    return _shown(msgspec.to_builtins(value, enc_hook=str))


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {_shown(key): _shown(each) for key, each in value.items()}
    return [_shown(each) for each in value] if isinstance(value, list) else value


def run_document(
    view: RunView,
    now: float,
    *,
    sessions: Mapping[int, LiveSession] | None = None,
    acts: Sequence[str] = (),
    read_only: bool = False,
) -> Document:
    """`sessions`: the running ones, by iteration. `acts`: the verbs that are possible now."""
    state, started = view.state, view.first
    now = max(now, state.now)
    standing = view.standing()
    _, why, what_next = tell_standing(state, standing in LIVE) if started else ("", "", "")
    tokens = state.tokens
    current = [_current(view, number, now, sessions or {}) for number in state.parallel.open]
    begun = list(_begun(view)) if standing in LIVE else []
    for session in (sessions or {}).values():
        tokens += session.tokens
    accepted, counted = state.kinds.get(Kind.ACCEPTED, 0), state.count - state.free
    workers = workers_document(state)
    limits = started.limits if started else Limits()
    return {
        "run": view.journal.parent.name,
        "plan": started.name if started else "",
        "workspace": (started.checkout or started.workspace) if started else "",
        "agent": started.agent if started else "",
        "model": started.model if started else "",
        "branch": started.branch if started else "",
        "host": started.host if started else "",
        "standing": standing,
        "reason": state.ended.reason if state.ended else "",
        "detail": state.ended.detail if state.ended else "",
        "why": why,
        "next": what_next,
        "damage": view.damage,
        "started": state.started_at,
        "seen": state.now,
        "now": now,
        "done": state.done,
        "total": state.total,
        "grades": state.grades,
        "verdicts": {kind.value: count for kind, count in state.kinds.items()},
        "iterations": state.count,
        "max_iterations": cap(view.history, limits),
        "accepted": accepted,
        "acceptance_rate": accepted / counted if counted > 0 else None,
        "tokens": tokens,
        "tokens_total": tokens.total,
        "cost_usd": state.cost_usd,
        "is_estimated": state.is_estimated,
        "unknown_costs": state.unknown_costs,
        "agent_seconds": state.agent_seconds + sum(now - since for since in begun),
        "agents_running": len(begun),
        "forecast": state.forecast,
        "limits": list(limit_lines(view.history, limits, now if standing in LIVE else state.now)),
        "wish": state.wish,
        "paused_since": state.paused_since,
        "waiting": {"until": state.waiting.until, "why": state.waiting.why} if state.waiting else None,
        "current": [line for line in current if line is not None],
        "workers": workers["workers"],
        "queue": workers["queue"],
        "stories": view.stories(),
        "questions": view.questions(),
        "notes": [note.text for note in state.notes],
        "attempts": [attempt_line(attempt) for attempt in view.attempts.by_iteration.values()],
        "count": view.count,
        "acts": list(acts),
        "read_only": read_only,
    }


def _begun(view: RunView) -> Iterator[float]:
    """When the running sessions started."""
    for number, activity in view.state.parallel.open.items():
        attempt = view.attempts.by_iteration.get(number)
        if activity.agent is not None and attempt is not None and attempt.sessions:
            yield attempt.sessions[-1].since


def _current(view: RunView, number: int, now: float, sessions: Mapping[int, LiveSession]) -> CurrentLine | None:
    activity = view.state.parallel.open[number]
    started = activity.started
    if started is None:
        return None
    tokens, usd, is_estimated = activity.tokens, activity.cost_usd, activity.is_estimated
    if (session := sessions.get(number)) is not None:
        tokens += session.tokens
        if (more := session.cost_usd) is not None:
            usd, is_estimated = (usd or 0) + more, True
    return CurrentLine(
        iteration=number,
        story=started.story,
        title=started.title,
        mode=started.mode.value,
        attempt=started.attempt,
        worker=started.worker,
        since=activity.since,
        phase=phase(activity, now),
        tokens=tokens.total,
        cost_usd=usd,
        is_estimated=is_estimated,
    )


def limit_lines(history: History, limits: Limits, now: float) -> list[LimitLine]:
    """The limits of a run, the next one to be reached first."""
    return sorted(_limits(history, limits, now), key=lambda line: -line.used / line.most)


def _limits(history: History, limits: Limits, now: float) -> Iterator[LimitLine]:
    if most := cap(history, limits):
        yield LimitLine("iterations", history.iterations, most, "iterations")
    if limits.max_time:
        yield LimitLine("time of the run", max(now - history.started, 0), limits.max_time, "seconds")
    for room in rooms(limits.budget, history.spending.run, history.spending.elsewhere):
        unit, scale = ("usd", MICROS) if room.is_money else ("tokens", 1)
        yield LimitLine(f"budget of the {room.scope.value}", room.spent / scale, room.limit / scale, unit)
    if limits.rate_per_hour:
        calls = sum(call > now - _HOUR for call in history.calls)
        yield LimitLine("agent starts within an hour", calls, limits.rate_per_hour, "times")
    if limits.tokens_per_hour:
        used = sum(count for when, count in history.used if when > now - _HOUR)
        yield LimitLine("tokens within an hour", used, limits.tokens_per_hour, "tokens")
    for kind, heard in history.windows.items():
        if heard.limit.utilization is not None and (heard.limit.resets_at or now) >= now:
            yield LimitLine(f"usage limit {kind}".rstrip(), heard.limit.utilization, 1, "share")
    if limits.no_progress:
        yield LimitLine("iterations without progress", history.streak.no_progress, limits.no_progress, "times")
    if limits.same_error:
        yield LimitLine("same error in a row", history.streak.same_error, limits.same_error, "times")


def attempt_line(attempt: Attempt) -> AttemptLine:
    ended = attempt.ended
    return AttemptLine(
        iteration=attempt.iteration,
        story=attempt.story,
        mode=attempt.mode.value,
        number=attempt.number,
        worker=attempt.worker,
        since=attempt.since,
        until=attempt.until,
        verdict=attempt.verdict,
        headline=ended.headline if ended else "",
        grade=ended.grade if ended else "",
        cost_usd=attempt.cost_usd,
        tokens=attempt.tokens.total,
        commit=attempt.commit,
        rescue=attempt.rescue,
    )


def attempt_document(attempt: Attempt, now: float) -> Document:
    """Everything known about an attempt; its checks failing first."""
    ended = attempt.ended
    known = msgspec.structs.asdict(attempt)
    del known["ended"]
    return known | {
        "verdict": attempt.verdict,
        "headline": ended.headline if ended else "",
        "reasons": ended.reasons if ended else (),
        "notices": (*ended.notices, *ended.undone) if ended else (),
        "grade": ended.grade if ended else "",
        "seconds": max((attempt.until or now) - attempt.since, 0),
        "cost_usd": attempt.cost_usd,
        "tokens_total": attempt.tokens.total,
        "checks": sorted(check_lines(attempt.checks), key=lambda line: line.result.passed),
    }


def check_lines(checks: Iterable[Check]) -> list[CheckLine]:
    return [CheckLine(index, check.when, check.result, check.at) for index, check in enumerate(checks)]


def story_document(view: RunView, story: StoryLine, now: float, acts: Sequence[str] = ()) -> Document:
    return {
        "story": story,
        "findings": view.findings(story.id),
        "attempts": [attempt_document(attempt, now) for attempt in view.attempts.of(story.id)],
        "acts": list(acts),
    }


def timeline_document(view: RunView, now: float) -> Document:
    """Downsampled if it is long: neighbours of the same kind and worker become one."""
    spans = view.attempts.spans
    to = max(now, view.state.now) if view.standing() in LIVE else view.state.now
    since = view.state.started_at
    gap = max(to - since, 1.0) / 100_000
    while len(spans) > _MOST_SPANS:
        spans, gap = _joined(spans, gap, to), gap * 4
    return {"from": since, "to": to, "workers": sorted({span.worker for span in spans}), "spans": spans}


def _joined(spans: Iterable[Span], gap: float, to: float) -> list[Span]:
    found: list[Span] = []
    last: dict[tuple[str, int], Span] = {}
    for span in spans:
        before = last.get((span.kind, span.worker))
        is_short = (span.until or to) - span.since < gap
        if before is not None and before.until is not None and is_short and span.since - before.until < gap:
            before.until = span.until
            continue
        last[span.kind, span.worker] = joined = msgspec.structs.replace(span)
        found.append(joined)
    return found


def home_document(
    cards: Sequence[RunCard], waiting: Sequence[WaitingLine], now: float, *, version: str, host: str, read_only: bool
) -> Document:
    return {
        "now": now,
        "version": version,
        "host": host,
        "read_only": read_only,
        "runs": [msgspec.structs.asdict(card) | {"is_live": card.is_live} for card in cards],
        "waiting": list(waiting),
    }


def waiting_for_user(cards: Iterable[RunCard]) -> Iterator[WaitingLine]:
    """Of every plan only the latest run counts. `cards`: newest first."""
    seen = set()
    for card in cards:
        if (plan := (card.workspace, card.plan)) in seen:
            continue
        seen.add(plan)
        if card.standing is Standing.PAUSED:
            yield WaitingLine(card.run, "", "the run is paused", "paused")
        for kind, stories in (("question", card.questions), ("failed", card.failures), ("unproven", card.unproven)):
            yield from (WaitingLine(card.run, story, text, kind) for story, text in stories.items())


def compare_document(a: Document, b: Document) -> Document:
    """`a` and `b`: documents of two runs."""
    lines: tuple[dict[str, StoryLine], ...] = tuple({line.id: line for line in each["stories"]} for each in (a, b))
    return {
        "runs": [a, b],
        "rows": list(_differences(a, b)),
        "stories": [
            {
                "id": name,
                "title": (lines[0].get(name) or lines[1][name]).title,
                "a": lines[0].get(name),
                "b": lines[1].get(name),
            }
            for name in dict.fromkeys((*lines[0], *lines[1]))
        ],
    }


def _differences(a: Document, b: Document) -> Iterator[Difference]:
    for what in ("agent", "model", "plan", "branch", "standing", "reason"):
        yield Difference(what, str(a[what]), str(b[what]))
    for what, measure, text, is_more_better in _MEASURES:
        left, right = measure(a), measure(b)
        better = ""
        is_fair = is_more_better or (a["done"] and b["done"])  # nothing is as cheap as no work
        if is_fair and left is not None and right is not None and left != right:
            better = "a" if (left > right) is is_more_better else "b"
        yield Difference(what, text(a), text(b), better)


def _known_cost(run: Document) -> float | None:
    return None if run["unknown_costs"] else run["cost_usd"]


def _cost(run: Document) -> str:
    usd = run["cost_usd"]
    return "unknown" if usd is None else money(usd, run["is_estimated"], run["unknown_costs"])


def _per_story(run: Document) -> float | None:
    usd = _known_cost(run)
    return usd / run["done"] if usd is not None and run["done"] else None


def _cost_per_story(run: Document) -> str:
    usd = _per_story(run)
    return money(usd, run["is_estimated"]) if usd is not None else "unknown" if run["done"] else "-"


def _rate(run: Document) -> str:
    return "-" if run["acceptance_rate"] is None else f"{run['acceptance_rate']:.0%}"


def _seconds(run: Document) -> float:
    return float(run["seen"] - run["started"])


_MEASURES: tuple[tuple[str, Callable[[Document], float | None], Callable[[Document], str], bool], ...] = (
    ("stories done", lambda run: run["done"], lambda run: f"{run['done']}/{run['total']}", True),
    (
        "grades of proof",
        lambda run: run["grades"].get(Grade.PROVEN, 0) + run["grades"].get(Grade.WITNESSED, 0),
        lambda run: ", ".join(f"{count} {grade}" for grade, count in run["grades"].items()) or "-",
        True,
    ),
    ("iterations", lambda run: run["iterations"], lambda run: str(run["iterations"]), False),
    ("accepted", lambda run: run["acceptance_rate"], _rate, True),
    ("time", _seconds, lambda run: duration(_seconds(run)), False),
    ("time of the agents", lambda run: run["agent_seconds"], lambda run: duration(run["agent_seconds"]), False),
    ("tokens", lambda run: run["tokens_total"], lambda run: f"{run['tokens_total']:,}", False),
    ("cost", _known_cost, _cost, False),
    ("cost per story", _per_story, _cost_per_story, False),
)
