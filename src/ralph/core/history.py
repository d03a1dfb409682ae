"""The history of a run, as far as decisions depend on it. A fold over the journal. Pure."""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.agent import Limit
from ralph.core.events import (
    AgentEnded,
    AgentSaid,
    AgentStarted,
    AnyEvent,
    Baseline,
    IterationEnded,
    IterationStarted,
    Judged,
    LimitAnswered,
    PlanSeen,
    Proved,
    Recovered,
    Resumed,
    RunStarted,
    SeenStory,
    StoriesRetried,
    StorySetAside,
)
from ralph.core.evidence import Ended, How
from ralph.core.fallback import Bench, note, set_back
from ralph.core.money import Spending, spend
from ralph.core.plan import Mode, State
from ralph.core.proof import exam_failure
from ralph.core.rules import Streak
from ralph.core.text import one_line
from ralph.core.verdict import Kind

EVERYBODY = "*"
PREVIOUS_SESSION = "in the previous session"
"""How every line of feedback starts that is not about the story itself."""
_HOUR = 3600.0
_AT_ONCE = 1.0
"""Seconds. An agent that died within this time had not started to work."""
_OPEN = (State.TODO, State.IN_PROGRESS)
_FREE = (Kind.LIMIT, Kind.TRANSPORT, Kind.INTERRUPTED, Kind.RETURNED)


class Heard(Struct, frozen=True):
    """What the agent reported about a usage window, and when."""

    limit: Limit
    at: float
    is_firsts: bool = True
    """By the agent of the first choice."""


class Current(Struct, frozen=True):
    """What is known about an iteration that has not ended."""

    passed: frozenset[str] = frozenset()
    """Checks that passed, if it changed anything."""
    failed: frozenset[str] = frozenset()
    crash: str = ""
    """The last output of an agent that crashed at startup."""
    since: float = 0
    """When it started; 0: unknown."""


class History(Struct, frozen=True):
    run: str = ""
    started: float = 0
    seen: float = 0
    """The time of the last event."""
    iterations: int = 0
    """Finished iterations that count towards the cap."""
    number: int = 0
    """The number of the last iteration."""
    calls: tuple[float, ...] = ()
    """Times of agent starts within the last hour, including earlier runs."""
    used: tuple[tuple[float, int], ...] = ()
    """Tokens used within the last hour, with their times, including earlier runs."""
    streak: Streak = Streak()
    error_from: frozenset[str] = frozenset()
    """The stories in which the last error occurred repeatedly."""
    stories: dict[str, Streak] = {}
    """Streaks of the stories being worked on."""
    passing: frozenset[str] = frozenset()
    """Checks known to pass on the tree as it is kept."""
    gained: dict[str, int] = {}
    """The most additional checks that one attempt at a story has made pass."""
    current: dict[int, Current] = {}
    """The iterations that have not ended, by number."""
    aside: dict[str, str] = {}
    """Stories this run has set aside, with the reason."""
    stuck: int = 0
    """Stories given up in a row without progress in between; by the newer rule, for the same failure."""
    stuck_error: str = ""
    """The failure for which the last of them was given up."""
    given_up: frozenset[str] = frozenset()
    """Stories this run gave up, by their breaker or after their last attempt."""
    parked: dict[str, Streak] = {}
    """The streaks of stories when they were set aside."""
    retried: frozenset[str] = frozenset()
    """Stories this run gave up and retried."""
    rounds: int = 0
    """How often given-up stories have been retried."""
    same_only: bool = False
    """The counting rule of this run; see `Limits.same_only`."""
    wanted: frozenset[str] = frozenset()
    """Every story that was open at some time in this run."""
    crashes: int = 0
    """Agents in a row that crashed at startup."""
    crash: str = ""
    """The last output of the last of them."""
    transport: int = 0
    """Transport failures in a row."""
    transport_said: str = ""
    transport_until: float = 0
    """The earliest time of the next session, where the failure asks for a longer pause."""
    last_ended: float = 0
    trouble_at: float = 0
    """When an iteration last ended at a usage limit, with a broken connection or for a wrong configuration."""
    windows: dict[str, Heard] = {}
    """Usage windows by kind; those of other agents than the first with the agent's name."""
    limit_until: float | None = None
    limit_seen: bool = False
    limit_is_firsts: bool = True
    """It is a limit of the agent of the first choice."""
    limits_in_a_row: int = 0
    answer: str = ""
    """The user's answer to whether to wait."""
    misconfigured: str = ""
    last_kind: Kind | None = None
    asked: dict[str, str] = {}
    """Stories that wait for the user, with their question."""
    free: dict[str, int] = {}
    """Sessions of a story that cost no attempt, such as a usage limit or a broken connection."""
    returned: dict[str, int] = {}
    """How often the work of a story did not go together with what was merged meanwhile."""
    lost_reviews: dict[str, int] = {}
    """Reviews of a story in a row without a usable verdict."""
    feedback: dict[str, str] = {}
    """Why the last attempt at a story was not accepted; under `EVERYBODY`, what every next session is given."""
    setup_done: bool = False
    setup_failures: int = 0
    exams: int = 0
    """Rounds of the exam in this run, including those whose session failed."""
    exam_failure: str = ""
    """Why the last of them found out nothing."""
    proved: bool | None = None
    spending: Spending = Spending()
    """Spending, for the budgets."""
    bench: Bench = Bench()
    """Agents and models that are paused, if there are alternatives."""

    def of(self, iteration: int) -> Current:
        return self.current.get(iteration, Current())


def _when(use: tuple[float, int]) -> float:
    return use[0]


def _current(history: History, number: int, now: Current) -> dict[int, Current]:
    return history.current | {number: now}


def to_be_told(feedback: dict[str, str], story: str) -> str:
    """What the next session of a story needs to know about the previous ones."""
    return "\n".join(filter(None, (feedback.get(story, ""), feedback.get(EVERYBODY, ""))))


def fold(history: History, event: AnyEvent, t: float) -> History:
    change = msgspec.structs.replace
    history = _at(history, t)
    before = history.bench
    bench = note(history.bench, event, t)
    if bench is not history.bench:
        history = change(history, bench=bench)
    match event:
        case RunStarted():
            return _begun(history, event, t)
        case PlanSeen(whole=whole, stories=changed):
            seen = [story for story in changed if story.state in _OPEN]
            history = change(history, wanted=history.wanted | {story.id for story in seen})
            return history if whole else _reopened(history, seen)
        case Baseline(results=results):
            return change(history, passing=frozenset(check.name for check in results if check.passed))
        case IterationStarted(iteration=number):
            return change(
                history, number=max(history.number, number), current=_current(history, number, Current(since=t))
            )
        case AgentStarted():
            return change(history, calls=(*history.calls[bisect_right(history.calls, t - _HOUR) :], t))
        case AgentSaid(iteration=number, event=Limit() as limit) if limit.resets_at is not None:
            is_firsts = bench.is_firsts(number)
            key = limit.kind if is_firsts else f"{bench.agents[bench.of(number)]} {limit.kind}"
            return change(history, windows=history.windows | {key: Heard(limit, t, is_firsts)})
        case AgentEnded(ended=ended, outcome=outcome):
            recent = history.used[bisect_right(history.used, t - _HOUR, key=_when) :]
            used = (*recent, (t, outcome.used.total)) if outcome.used.total else recent
            crash = "" if outcome.tools or outcome.text else _crash(ended)
            now = change(history.of(event.iteration), crash=crash)
            return change(history, used=used, current=_current(history, event.iteration, now))
        case Judged(iteration=number, evidence=evidence, verdict=verdict) if evidence.changed:
            passed = frozenset(check.name for check in evidence.checks if check.passed)
            if history.same_only and verdict.kind is not Kind.ACCEPTED and evidence.is_tampered:
                passed = frozenset()  # results of weakened tests are not progress
            failed = frozenset(check.name for check in evidence.checks if not check.passed)
            now = change(history.of(number), passed=passed, failed=failed)
            return change(history, current=_current(history, number, now))
        case IterationEnded():
            return _after(history, event, t, is_firsts=before.is_firsts(event.iteration))
        case StorySetAside(story=story, why=why, by_user=True):
            history = _clean(history, frozenset({story}))
            return change(history, aside=history.aside | {story: why})
        case StorySetAside(story=story, why=why):
            last = history.stories.get(story, Streak())
            history = change(history, **_given_up(history, story, last.error, idle=last.idle))
            stories = {name: streak for name, streak in history.stories.items() if name != story}
            parked = history.parked | {story: last}
            return change(history, aside=history.aside | {story: why}, stories=stories, parked=parked)
        case StoriesRetried(stories=names):
            return _retried(history, names)
        case LimitAnswered(answer=answer):
            return change(history, answer=answer)
        case Resumed(seconds=seconds):  # a pause does not count towards the run's time
            return change(history, started=history.started + seconds)
        case Recovered(iteration=iteration):
            return change(history, number=max(history.number, iteration))
        case Proved(passed=proved):
            return change(history, proved=proved)
        case _:
            spending = spend(history.spending, event)
            return history if spending is history.spending else change(history, spending=spending)


def _reopened(history: History, seen: list[SeenStory]) -> History:
    """The user reopened a story during the run: it is tried again, with a clean record."""
    again = {story.id for story in seen if story.id in history.aside or story.id in history.asked}
    again |= {story.id for story in seen if _is_fresh(story, history)}
    return _clean(history, frozenset(again)) if again else history


def _is_fresh(story: SeenStory, history: History) -> bool:
    """The user reset its attempts, rather than the run setting it aside and retrying it."""
    return story.attempts == 0 and story.id in history.stories and story.id not in history.parked


def _clean(history: History, again: frozenset[str]) -> History:
    """Drop everything recorded against these stories."""
    return msgspec.structs.replace(
        history,
        aside={name: why for name, why in history.aside.items() if name not in again},
        asked={name: question for name, question in history.asked.items() if name not in again},
        stories={name: streak for name, streak in history.stories.items() if name not in again},
        gained={name: count for name, count in history.gained.items() if name not in again},
        lost_reviews={name: count for name, count in history.lost_reviews.items() if name not in again},
        given_up=history.given_up - again,
    )


def _retried(history: History, names: tuple[str, ...]) -> History:
    """A story that fails again for the reason it was set aside for is set aside at once; for any other failure it
    has all its attempts again.
    """
    known = history.stories | history.parked
    last = {name: known[name].once_less() for name in names if name in known}
    history = _clean(history, frozenset(names))
    return msgspec.structs.replace(
        history,
        stories=history.stories | last,
        retried=history.retried.union(names),
        rounds=history.rounds + 1,
        stuck=0,
    )


def _given_up(history: History, story: str, error: str, *, idle: bool) -> dict[str, Any]:
    """Stories that fail for different reasons are separate problems, not one of the run."""
    counts_on = not history.same_only or idle or bool(error and error == history.stuck_error)
    return {
        "stuck": history.stuck + 1 if counts_on else 1,
        "stuck_error": error,
        "given_up": history.given_up | {story},
    }


def _at(history: History, t: float) -> History:
    """When the clock is set back, recorded times move with it, so that elapsed times stay the same."""
    if t >= history.seen:
        return msgspec.structs.replace(history, seen=t)
    back, change = history.seen - t, msgspec.structs.replace
    return msgspec.structs.replace(
        history,
        seen=t,
        started=history.started - back,
        last_ended=history.last_ended - back,
        trouble_at=history.trouble_at - back,
        current={n: msgspec.structs.replace(now, since=now.since - back) for n, now in history.current.items()},
        calls=tuple(call - back for call in history.calls),
        used=tuple((when - back, count) for when, count in history.used),
        windows={kind: change(heard, at=heard.at - back) for kind, heard in history.windows.items()},
        bench=set_back(history.bench, back),
    )


def _begun(history: History, event: RunStarted, t: float) -> History:
    """State from earlier runs counts as recorded, except that no time may lie in the future."""
    return msgspec.structs.replace(
        history,
        run=event.run,
        started=t,
        feedback=event.feedback,
        calls=tuple(sorted(min(call, t) for call in event.calls)),
        used=tuple(sorted(((min(when, t), count) for when, count in event.used), key=_when)),
        windows={limit.kind: Heard(limit, t) for limit in event.heard},
        same_only=event.limits.same_only,
    )


def _crash(ended: Ended) -> str:
    if ended.well or ended.how is not How.EXITED or ended.seconds >= _AT_ONCE:
        return ""
    lines = [line for line in ended.detail.splitlines() if line.strip()]
    how = f"signal {ended.signal}" if ended.signal else f"exit code {ended.code}"
    return f"{how}, {one_line(lines[-1], 200) if lines else 'without a word on stderr'}"


def _after(history: History, event: IterationEnded, t: float, *, is_firsts: bool) -> History:
    is_free = event.kind in _FREE
    free = history.free | ({event.story: history.free.get(event.story, 0) + 1} if is_free else {})
    crash = history.of(event.iteration).crash
    died = event.kind is Kind.CRASHED and bool(crash)
    return msgspec.structs.replace(
        history,
        **_progress(history, event),
        **_trouble(history, event, t, is_firsts=is_firsts),
        iterations=history.iterations + (not is_free),
        number=max(history.number, event.iteration),
        crashes=history.crashes + 1 if died else history.crashes if is_free else 0,
        crash=crash if died else history.crash,
        current={number: now for number, now in history.current.items() if number != event.iteration},
        asked=history.asked | ({event.story: event.question} if event.kind is Kind.BLOCKED else {}),
        free=free,
        returned=_returned(history, event),
        lost_reviews=_lost_reviews(history, event),
        feedback=_feedback(history, event),
        setup_failures=history.setup_failures + (event.mode is Mode.SETUP and event.kind.feeds_breaker),
        setup_done=history.setup_done or (event.mode is Mode.SETUP and event.kind is Kind.ACCEPTED),
        exams=history.exams + (event.mode is Mode.EXAM and not is_free),
        exam_failure=_exam_failure(history, event),
        proved=None,
    )


def _trouble(history: History, event: IterationEnded, t: float, *, is_firsts: bool) -> dict[str, Any]:
    """What is known about the agent's account, the connection and the configuration. With several workers, an iteration
    that started before the last trouble says nothing about whether it is over, and meeting it too is no second time.
    """
    is_limit, is_transport = event.kind is Kind.LIMIT, event.kind is Kind.TRANSPORT
    is_wrong, is_free = event.kind is Kind.MISCONFIGURED, event.kind in _FREE
    is_trouble = is_limit or is_transport or is_wrong
    is_earlier = 0 < history.of(event.iteration).since < history.trouble_at
    if is_earlier and not is_trouble:
        return {}
    # A broken connection between two limits, or the other way round, makes neither of them the first one again.
    again_limit = is_limit and not (is_earlier and history.limits_in_a_row)
    again_transport = is_transport and not (is_earlier and history.transport)
    known = history.limit_until if is_earlier and history.limit_seen else None
    return {
        "trouble_at": t if is_trouble else history.trouble_at,
        "transport": history.transport + again_transport if is_free else 0,
        "transport_said": event.headline if is_transport else history.transport_said,
        "transport_until": (event.resets_at or 0.0) if is_transport else 0.0,
        "last_ended": t,
        "limit_until": (event.resets_at if event.resets_at is not None else known) if is_limit else known,
        "limit_seen": is_limit or (is_earlier and history.limit_seen),
        "limit_is_firsts": is_firsts if is_limit else history.limit_is_firsts,
        "limits_in_a_row": history.limits_in_a_row + again_limit if is_free else 0,
        "answer": history.answer if is_earlier else "",
        "misconfigured": event.headline if is_wrong else history.misconfigured if is_earlier else "",
        "last_kind": event.kind,
    }


def _returned(history: History, event: IterationEnded) -> dict[str, int]:
    if event.kind is Kind.RETURNED:
        return history.returned | {event.story: history.returned.get(event.story, 0) + 1}
    return {name: count for name, count in history.returned.items() if not event.completes or name != event.story}


def _lost_reviews(history: History, event: IterationEnded) -> dict[str, int]:
    if event.mode is not Mode.REVIEW or not (event.kind.feeds_breaker or event.kind is Kind.ACCEPTED):
        return history.lost_reviews
    others = {name: count for name, count in history.lost_reviews.items() if name != event.story}
    lost = history.lost_reviews.get(event.story, 0) + 1
    return others if event.kind is Kind.ACCEPTED else others | {event.story: lost}


def _exam_failure(history: History, event: IterationEnded) -> str:
    if event.mode is not Mode.EXAM:
        return history.exam_failure
    return "" if event.kind is Kind.ACCEPTED else exam_failure(event.headline)


def _feedback(history: History, event: IterationEnded) -> dict[str, str]:
    feedback = dict(history.feedback)
    if event.kind.uses_attempt:
        feedback.pop(EVERYBODY, None)
    if event.kind.uses_attempt or event.story not in feedback:  # a limit in between does not make a rejection unsaid
        feedback.pop(event.story, None)
        if (
            event.feedback
        ):  # a finished story gets no further session, so the next session of any story is given the feedback
            feedback[EVERYBODY if event.completes else event.story] = event.feedback
    return feedback


def _progress(history: History, event: IterationEnded) -> dict[str, Any]:
    """Progress is a change in what is proven: something was accepted, or an attempt at a story made more checks pass
    than any before it, among those that do not pass without it. Writing text is not progress.
    """
    if event.mode in (Mode.ACCEPTANCE, Mode.EXAM):  # they have limits of their own
        return {}
    kept, now = event.kind.keeps_work, history.of(event.iteration)
    passing = (history.passing - now.failed) | now.passed if kept else history.passing
    stories, gained = dict(history.stories), dict(history.gained)
    if event.kind is Kind.ACCEPTED:
        stories.pop(event.story, None)
        gained.pop(event.story, None)
        clean = {"streak": Streak(), "error_from": frozenset(), "stuck": 0}
        return {**clean, "stories": stories, "gained": gained, "passing": passing}
    if not event.kind.feeds_breaker:
        return {}
    more = len(now.passed - history.passing)
    progress = more > gained.get(event.story, 0)
    gained[event.story] = 0 if kept else max(more, gained.get(event.story, 0))
    before, error = stories.get(event.story, Streak()), event.fingerprint
    idle = not event.files and event.mode is not Mode.REVIEW
    rule = {"progress": progress, "idle": idle, "same_only": history.same_only}
    stories[event.story] = before.after_failure(error, event.headline, **rule)
    same = bool(error) and error == history.streak.error
    given_up = _given_up(history, event.story, error, idle=idle) if event.story_state is State.FAILED else {}
    return {
        **given_up,
        "streak": history.streak.after_failure(error, event.headline, **rule),
        "error_from": (history.error_from if same else frozenset()) | {event.story},
        "stuck": 0 if progress else given_up.get("stuck", history.stuck),
        "stories": stories,
        "gained": gained,
        "passing": passing,
    }
