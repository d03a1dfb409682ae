"""Money and tokens: amounts whose sum does not depend on the order, budgets, what is spent, and the events about it.

Pure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from enum import StrEnum

import msgspec
from msgspec import Struct

MICROS = 1_000_000
"""Micros per dollar. Sums are kept as integers, so the same figures always give the same sum."""
_MOST = 10**9
"""Dollars, and thousands of tokens, of one session; higher reports are ignored as implausible."""
_NOTHING = 1000
"""A remainder below this share of a budget counts as zero: a client stops only roughly at its limit."""


class Basis(StrEnum):
    """Where a figure comes from."""

    REPORTED = "reported"
    ESTIMATED = "estimated"
    """Tokens at list prices."""
    RESERVED = "reserved"
    """The session was killed and its cost is unknown: its reservation counts."""
    UNKNOWN = "unknown"


class Amount(Struct, frozen=True, gc=False):
    micros: int = 0
    tokens: int = 0
    unknown: int = 0
    """Sessions whose cost is unknown; their tokens are included."""

    @property
    def usd(self) -> float:
        return self.micros / MICROS

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.micros + other.micros, self.tokens + other.tokens, self.unknown + other.unknown)


NOTHING = Amount()


class Extent(StrEnum):
    """Whether the cost of a session shows what another one of its story needs at least."""

    WHOLE = "whole"
    CUT = "cut"
    """It was stopped before its end: the next one needs more."""
    UNKNOWN = ""
    """It shows nothing: a review, or a session that could not work."""


class Need(Struct, frozen=True, gc=False):
    """What a session of a story needs at least: the cheapest whole one, or else the most expensive one that was cut."""

    micros: int = 0
    tokens: int = 0
    is_whole: bool = False

    def after(self, amount: Amount, extent: Extent) -> Need:
        if extent is Extent.UNKNOWN or amount.unknown or (extent is Extent.CUT and self.is_whole):
            return self
        if extent is Extent.CUT:
            return Need(max(self.micros, amount.micros), max(self.tokens, amount.tokens))
        if not self.is_whole:
            return Need(amount.micros, amount.tokens, True)
        return Need(min(self.micros, amount.micros), min(self.tokens, amount.tokens), True)


def total(amounts: Iterable[Amount]) -> Amount:
    micros = tokens = unknown = 0
    for amount in amounts:
        micros, tokens, unknown = micros + amount.micros, tokens + amount.tokens, unknown + amount.unknown
    return Amount(micros, tokens, unknown)


def micros(usd: float | None) -> int | None:
    """None if the value is not an amount of money: an agent may report anything."""
    if usd is None or isinstance(usd, bool) or not math.isfinite(usd) or not 0 <= usd <= _MOST:
        return None
    return round(usd * MICROS)


def whole_tokens(count: int) -> int:
    return count if 0 <= count <= _MOST * 1000 else 0


class Budget(Struct, frozen=True):
    """The spending limits. 0: no limit."""

    run_usd: float = 0
    story_usd: float = 0
    day_usd: float = 0
    workspace_usd: float = 0
    run_tokens: int = 0
    story_tokens: int = 0
    day_tokens: int = 0
    workspace_tokens: int = 0
    least_chance: float = 0
    """Stop when the chance to finish within these limits falls below it."""

    @property
    def is_shared(self) -> bool:
        """Whether other runs share it."""
        return bool(self.day_usd or self.workspace_usd or self.day_tokens or self.workspace_tokens)

    @property
    def has_tokens(self) -> bool:
        return bool(self.run_tokens or self.story_tokens or self.day_tokens or self.workspace_tokens)

    @property
    def is_set(self) -> bool:
        return self.is_shared or self.has_tokens or bool(self.run_usd or self.story_usd)


class Elsewhere(Struct, frozen=True):
    """The ledger's totals for all runs of the workspace, including this one."""

    day: Amount = NOTHING
    ever: Amount = NOTHING
    held: Amount = NOTHING
    """Reserved by other live runs."""


class Scope(StrEnum):
    RUN = "run"
    STORY = "story"
    DAY = "day"
    WORKSPACE = "workspace"


class Room(Struct, frozen=True):
    """One budget: its limit, what is spent, and what others have reserved."""

    scope: Scope
    is_money: bool
    limit: int
    """Micros, or tokens."""
    spent: int
    held: int = 0

    @property
    def left(self) -> int:
        return max(self.limit - self.spent - self.held, 0)

    @property
    def is_spent(self) -> bool:
        return self.limit - self.spent <= self.limit // _NOTHING

    @property
    def is_taken(self) -> bool:
        """Nothing is left now, but others may release their reservations."""
        return not self.is_spent and self.limit - self.spent - self.held <= self.limit // _NOTHING

    @property
    def key(self) -> str:
        return f"budget.{self.scope.value}_{'usd' if self.is_money else 'tokens'}"


def rooms(budget: Budget, run: Amount, elsewhere: Elsewhere, held: Amount = NOTHING) -> Iterator[Room]:
    """Every budget that is set, except those of stories. `held`: reserved by running sessions of this run."""
    yield from _both(Scope.RUN, budget.run_usd, budget.run_tokens, run, held)
    yield from _both(Scope.DAY, budget.day_usd, budget.day_tokens, elsewhere.day, elsewhere.held)
    yield from _both(Scope.WORKSPACE, budget.workspace_usd, budget.workspace_tokens, elsewhere.ever, elsewhere.held)


def story_rooms(budget: Budget, spent: Amount) -> Iterator[Room]:
    yield from _both(Scope.STORY, budget.story_usd, budget.story_tokens, spent, NOTHING)


def _both(scope: Scope, usd: float, tokens: int, spent: Amount, held: Amount) -> Iterator[Room]:
    if usd > 0:
        yield Room(scope, True, max(micros(min(usd, _MOST)) or 0, 1), spent.micros, held.micros)
    if tokens > 0:
        yield Room(scope, False, tokens, spent.tokens, held.tokens)


def overspent(budget: Budget, stories: dict[str, Amount]) -> dict[str, Room]:
    """Stories that have spent their own budget and are set aside."""
    if not budget.story_usd and not budget.story_tokens:
        return {}
    over: dict[str, Room] = {}
    for story, spent in stories.items():
        for room in story_rooms(budget, spent):
            if room.is_spent:
                over.setdefault(story, room)
    return over


def unaffordable(limits: Iterable[Room], need: Need) -> Room | None:
    """The budget whose rest does not pay for another session, if there is one."""
    short = (room for room in limits if room.limit - room.spent < (need.micros if room.is_money else need.tokens))
    return next(short, None)


def share(limits: Iterable[Room], session: int | None, costliest: int, workers: int = 1) -> int | None:
    """Micros that one session may spend. None: no limit.

    It takes half of a shared budget, so that others can work too, or all of it if half would hardly be enough for the
    most expensive session so far. Of the run's own budget it takes its share among the workers, by the same rule.
    """
    bounds = [] if session is None else [session]
    for room in limits:
        if room.is_money and room.scope in (Scope.DAY, Scope.WORKSPACE):
            bounds.append(min(max(room.left // 2, 2 * costliest), room.left))
        elif room.is_money and room.scope is Scope.RUN:
            bounds.append(min(max(room.left // max(workers, 1), 2 * costliest), room.left))
        elif room.is_money:
            bounds.append(room.left)
    return min(bounds) if bounds else None


def dollars(micros: int) -> str:
    """In cents; amounts below ten cents with more digits."""
    usd = micros / MICROS
    return f"${usd:,.2f}" if usd >= 0.1 or not micros else f"${usd:.4f}"


def figure(room: Room, amount: int) -> str:
    return dollars(amount) if room.is_money else f"{amount:,} tokens"


class Event(Struct, frozen=True, tag_field="type", tag=True):
    """Base of all events; the tag is the class name."""


class Reserved(Event, frozen=True, kw_only=True):
    """A reservation for a session that is about to start. It counts until the actual cost is recorded."""

    iteration: int
    id: str
    usd: float | None = None  # none: only tokens are bounded
    tokens: int = 0


class Charged(Event, frozen=True, kw_only=True):
    """The cost of a session, and where the figure comes from."""

    iteration: int
    story: str
    id: str
    basis: Basis
    usd: float | None = None
    tokens: int = 0
    model: str = ""
    extent: Extent = Extent.UNKNOWN


class SpendingSeen(Event, frozen=True, kw_only=True):
    """Spending of all runs of the workspace, before a decision that depends on it."""

    elsewhere: Elsewhere = Elsewhere()
    stories: dict[str, Amount] = {}  # spending of earlier runs on the stories of this plan; recorded once
    needs: dict[str, Need] = {}  # what their sessions cost at least; recorded once


class Foreseen(Event, frozen=True, kw_only=True):
    """The forecast to finish: figures for the 50% and the 90% case."""

    stories: int  # that are still open
    samples: int  # finished stories of this workspace it is based on; 0: a guess
    iterations: tuple[float, float]
    seconds: tuple[float, float]
    usd: tuple[float, float] | None = None
    tokens: tuple[float, float] | None = None
    chance: float | None = None  # of finishing within the budget. None: there is no budget, or too little is known


class Spending(Struct, frozen=True):
    run: Amount = NOTHING
    stories: dict[str, Amount] = {}
    """Of this run and earlier ones."""
    needs: dict[str, Need] = {}
    """What one session of a story needs at least."""
    elsewhere: Elsewhere = Elsewhere()
    chance: float | None = None
    """Of finishing within the budget."""
    reserved: dict[str, tuple[int, Amount]] = {}
    """By ID: the reservations of sessions whose cost is not recorded yet, with their iterations."""
    held: Amount = NOTHING
    """Reserved by running sessions of this run, as far as a decision depends on it."""

    def held_by(self, iterations: Collection[int]) -> Amount:
        """What sessions of these iterations have reserved."""
        return total(amount for number, amount in self.reserved.values() if number in iterations)

    def of(self, story: str) -> Amount:
        return self.stories.get(story, NOTHING)


def spend(spending: Spending, event: Event) -> Spending:
    change = msgspec.structs.replace
    match event:
        case Reserved(iteration=number, id=name, usd=usd, tokens=tokens):
            reserved = number, Amount(micros(usd) or 0, whole_tokens(tokens))
            return change(spending, reserved=spending.reserved | {name: reserved})
        case Charged(story=story, extent=extent):
            amount = amount_of(event)
            if event.id in spending.reserved:
                others = {name: each for name, each in spending.reserved.items() if name != event.id}
                spending = change(spending, reserved=others)
            if not story:
                return change(spending, run=spending.run + amount)
            stories = spending.stories | {story: spending.of(story) + amount}
            needs = spending.needs | {story: spending.needs.get(story, Need()).after(amount, extent)}
            return change(spending, run=spending.run + amount, stories=stories, needs=needs)
        case SpendingSeen(elsewhere=elsewhere, stories=earlier, needs=needs):
            stories = spending.stories | {name: spending.of(name) + amount for name, amount in earlier.items()}
            stories = stories if earlier else spending.stories
            return change(spending, elsewhere=elsewhere, stories=stories, needs=needs | spending.needs)
        case Foreseen(chance=chance):
            return change(spending, chance=chance)
        case _:
            return spending


def amount_of(charged: Charged) -> Amount:
    known = micros(charged.usd)
    return Amount(known or 0, whole_tokens(charged.tokens), int(known is None))
