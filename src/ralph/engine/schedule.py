"""Schedule the workers of a run: which stories start now, beside those that are running. Pure, as `decide` is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import msgspec

from ralph.core.areas import Claims
from ralph.core.events import Held, Running, Scheduled
from ralph.core.history import History
from ralph.core.money import NOTHING
from ralph.core.moves import Move, Prove, Reason, Retry, SetAside, Stop, Work
from ralph.core.plan import Mode, Plan, Story
from ralph.core.rules import Limits
from ralph.engine.decide import decide, is_at_cap

_ALONE = (Mode.SETUP, Mode.EXAM)
"""They change what every other session starts from, or are about the work of all of them."""
_MOST_HELD = 20
"""How many held stories one record names. The rest follows from the plan."""
_FOR_NOW = frozenset(
    {
        Reason.COMPLETE,
        Reason.NAMED_STORIES,
        Reason.OPEN_FINDINGS,
        Reason.UNPROVEN,
        Reason.FINAL_CHECKS,
        Reason.EXAM,
        Reason.FAILED_STORIES,
        Reason.NOTHING_READY,
        Reason.WAITING,
    }
)
"""Reasons that the end of a running iteration may remove. The others are limits."""


def schedule(
    plan: Plan,
    history: History,
    limits: Limits,
    now: float,
    *,
    running: Sequence[Running] = (),
    free: int,
    areas: Mapping[str, tuple[str, ...]],
    returns: int,
    needs_setup: bool = False,
    review: bool = False,
    needs_acceptance: Collection[str] = (),
    needs_exam: bool = False,
) -> Scheduled:
    """The stories to start, in their order, and what `decide` asks for once it names no further one.

    `running`: iterations that have not ended, including those in the merge queue.
    `free`: how many more may start.
    `areas`: by story, what it will probably change. Stories whose area is unknown run beside any other.
    `returns`: after so many returns from the merge queue a story is done alone.
    A move that is a limit means that nothing more starts; it is applied when nothing is running any more.
    """
    given = _Inputs(
        plan=plan,
        history=history,
        limits=limits,
        now=now,
        running=running,
        areas=areas,
        returns=returns,
        needs_setup=needs_setup,
        review=review,
        needs_acceptance=needs_acceptance,
        needs_exam=needs_exam,
    )
    chosen = _Round(given)
    move = chosen.choose(free)
    return Scheduled(
        start=tuple(chosen.start),
        move=move,
        held=tuple(Held(story, why) for story, why in islice(chosen.held.items(), _MOST_HELD)),
        at=now,
        running=tuple(running),
        free=free,
        areas={story: areas[story] for story in sorted(chosen.asked_about) if areas.get(story)},
        returns=returns,
        needs_setup=needs_setup,
        review=review,
        needs_acceptance=tuple(sorted(chosen.without_tests)),
        needs_exam=needs_exam,
    )


def with_running(history: History, running: Sequence[Running], starting: int, now: float) -> History:
    """The history as if running iterations had ended and agents that are about to start had started: both count
    towards the limits. What running sessions have reserved is not free."""
    held = history.spending.held_by({each.iteration for each in running})
    calls = sum(not each.has_started and not each.is_queued for each in running) + starting
    return msgspec.structs.replace(
        history,
        iterations=history.iterations + len(running) + starting,
        calls=(*history.calls, *(now for _ in range(calls))),
        spending=msgspec.structs.replace(history.spending, held=held) if held != NOTHING else history.spending,
    )


def is_done_alone(history: History, story: str, returns: int) -> bool:
    """Whether the work of a story has been returned so often that nothing else may run beside it."""
    return 0 < history.returned.get(story, 0) >= returns


@dataclass(frozen=True, kw_only=True)
class _Inputs:
    plan: Plan
    history: History
    limits: Limits
    now: float
    running: Sequence[Running]
    areas: Mapping[str, tuple[str, ...]]
    returns: int
    needs_setup: bool
    review: bool
    needs_acceptance: Collection[str]
    needs_exam: bool


class _Round:
    """One scheduling: asks `decide` again and again, each time with what has been chosen so far."""

    def __init__(self, given: _Inputs) -> None:
        self._given = given
        self.start: list[Work] = []
        self.held: dict[str, str] = {}
        self.asked_about: set[str] = set()
        """Stories whose area was compared with others. The record has only their areas."""
        self.without_tests: set[str] = set()
        self._claims = Claims()
        for each in given.running:
            self._claim(each.story, each.mode)

    def choose(self, free: int) -> Move | None:
        given = self._given
        most = min(free, 0 if given.running else 1) if given.limits.once else free
        if most <= 0:
            return None
        if lone := next((each for each in given.running if self._is_alone(each.story, each.mode)), None):
            why = f"{lone.story or lone.mode.value} is done alone"
            return self._left(self._ask(lambda story: why))
        if waiting := self._waiting_for_the_others():
            return self._next_is(waiting)
        while len(self.start) < most:
            move = self._ask(self._collision)
            if not isinstance(move, Work):
                return self._left(move)
            alone = self._is_alone(move.story, move.mode)
            if alone and self._is_anything_going_on:
                self.held[move.story] = f"{move.mode.value} starts when nothing else is running"
                return None
            self.start.append(move)
            self._claim(move.story, move.mode)
            if alone:
                return None
        return None

    @property
    def _is_anything_going_on(self) -> bool:
        return bool(self._given.running or self.start)

    def _is_alone(self, story: str, mode: Mode) -> bool:
        return mode in _ALONE or is_done_alone(self._given.history, story, self._given.returns)

    def _waiting_for_the_others(self) -> Work | None:
        """A story that is done alone and could start now. Nothing else starts before it, or it might wait for ever."""
        given = self._given
        if not any(is_done_alone(given.history, story, given.returns) for story in given.history.returned):
            return None
        move = self._ask(lambda story: "" if self._is_alone(story, Mode.IMPLEMENT) else "later", record=False)
        return move if isinstance(move, Work) and move.story else None

    def _next_is(self, work: Work) -> Move | None:
        if not self._given.running:
            self.start.append(work)
            return None
        count = self._given.history.returned[work.story]
        times = "once" if count == 1 else f"{count} times"
        self.held[work.story] = f"returned by the merge queue {times}; starts alone when nothing else is running"
        return self._left(self._ask(lambda story: f"{work.story} is done alone before it"))

    def _ask(self, why_not: Callable[[str], str], *, record: bool = True) -> Move:
        given = self._given

        def hold(story: Story, mode: Mode) -> bool:
            why = "" if mode is Mode.REVIEW and why_not == self._collision else why_not(story.id)
            if why and record:
                self.held.setdefault(story.id, why)
            return bool(why)

        return decide(
            given.plan,
            with_running(given.history, given.running, len(self.start), given.now),
            given.limits,
            given.now,
            needs_setup=given.needs_setup,
            review=given.review,
            needs_acceptance=self._needs_acceptance,
            needs_exam=given.needs_exam,
            busy={*(each.story for each in given.running), *(work.story for work in self.start)},
            hold=hold,
        )

    def _needs_acceptance(self, story: Story) -> bool:
        if story.id in self._given.needs_acceptance:
            self.without_tests.add(story.id)
        return story.id in self._given.needs_acceptance

    def _claim(self, story: str, mode: Mode) -> None:
        if mode is not Mode.REVIEW:  # it changes no files
            self.asked_about.add(story)
            self._claims.add(story, self._given.areas.get(story, ()))

    def _collision(self, story: str) -> str:
        self.asked_about.add(story)
        meeting = self._claims.meeting(self._given.areas.get(story, ()))
        return f"{meeting[0]} probably changes {meeting[1]} too" if meeting else ""

    def _left(self, move: Move) -> Move | None:
        """What remains of a move while something is running."""
        if not self._is_anything_going_on:
            return move
        match move:
            case Work() | Retry() | Prove():
                return None
            case Stop(reason=reason) if reason in _FOR_NOW:
                return None
            case SetAside() if not is_at_cap(self._given.history, self._given.limits) and is_at_cap(
                with_running(self._given.history, self._given.running, len(self.start), self._given.now),
                self._given.limits,
            ):
                return None  # perhaps only for lack of iterations, and what is running may end without using one
        return move
