"""A forecast of what finishing will take, by resampling past stories, and what is left of the shared budgets.

Deterministic: each trial draws one past story for each open story and adds them up. More open stories extend the same
trials, so a longer plan never has a cheaper forecast."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.budget.settings import budget_of, ledger_of, plan_name, repo_of
from ralph.config.layers import load
from ralph.config.schema import Config
from ralph.core.events import Foreseen
from ralph.core.money import MICROS, NOTHING, Room, Scope, Spending, micros, rooms, share, story_rooms
from ralph.core.ports import PlanRef
from ralph.host.git.repo import Repo
from ralph.journal.ledger import Held, Sample
from ralph.workspace.find import OpenPlan
from ralph.workspace.killed_sessions import elsewhere_in

ENOUGH = 3
"""Finished stories from which on the workspace's own history is used, and nothing else. Below that there is no
forecast of money or tokens; iterations are guessed, to compare them with the cap.
"""
ENOUGH_TO_STOP = 5
"""Finished stories required before a run may stop because it is unlikely to finish within its budget."""
_TRIALS = 240
_DRAWN = 32
"""Open stories that are drawn one by one; beyond that, the result is scaled."""
_PRIOR = (1, 1, 1, 2, 2, 3, 5)
_PRIOR_SECONDS = 240.0

Range = tuple[float, float]


class Totals(Struct, frozen=True):
    """The result of one trial."""

    iterations: float
    seconds: float
    micros: float
    tokens: float


class Kept(Struct, frozen=True):
    """How past forecasts held: finished runs, and how many stayed within the two figures."""

    runs: int
    within_half: int
    within_most: int


def prior(review: bool, acceptance: bool = False) -> tuple[Sample, ...]:
    """Guessed iterations for a workspace without history: most stories take one or two attempts, some take five.

    Only accepted work is reviewed, so reviews do not double them.
    """
    each = [count + review + acceptance for count in _PRIOR]
    return tuple(Sample(n, n * _PRIOR_SECONDS, None, 0) for n in each)


def forecast(samples: Sequence[Sample], stories: int, *, review: bool = False, acceptance: bool = False) -> Foreseen:
    """`acceptance`: a session before each story writes its acceptance tests."""
    trials, knows = _trials(samples, stories, review, acceptance)
    if not trials:
        return Foreseen(stories=0, samples=len(samples), iterations=(0.0, 0.0), seconds=(0.0, 0.0))
    usd: Range | None = None
    if knows.money:
        p50, p90 = _range(trials, lambda t: t.micros)
        usd = (round(p50 / 1e6, 4), round(p90 / 1e6, 4))
    return Foreseen(
        stories=stories,
        samples=len(samples),
        iterations=_range(trials, lambda t: t.iterations),
        seconds=_range(trials, lambda t: t.seconds),
        usd=usd,
        tokens=_range(trials, lambda t: t.tokens) if knows.tokens else None,
    )


def with_chance(seen: Foreseen, samples: Sequence[Sample], limits: Iterable[Room]) -> Foreseen:
    """The forecast with the chance to finish within the tightest budgets. Reservations of other runs do not count."""
    listed = list(limits)
    money = min((room.limit - room.spent for room in listed if room.is_money), default=None)
    tokens = min((room.limit - room.spent for room in listed if not room.is_money), default=None)
    return msgspec.structs.replace(seen, chance=chance(samples, seen.stories, money, tokens))


def chance(samples: Sequence[Sample], stories: int, micros: int | None, tokens: int | None) -> float | None:
    """The chance to finish with what is left. None: there is no limit, or too little is known."""
    if len(samples) < ENOUGH_TO_STOP or (micros is None and tokens is None):
        return None
    trials, knows = _trials(samples, stories, False)
    if not trials:
        return 1.0
    if (micros is not None and not knows.money) or (tokens is not None and not knows.tokens):
        return None
    enough = [(micros is None or t.micros <= micros) and (tokens is None or t.tokens <= tokens) for t in trials]
    return sum(enough) / len(enough)


class _Known(Struct, frozen=True):
    money: bool
    tokens: bool


def _trials(
    samples: Sequence[Sample], stories: int, review: bool, acceptance: bool = False
) -> tuple[list[Totals], _Known]:
    if stories <= 0:
        return [], _Known(False, False)
    pool = [*samples, *(prior(review, acceptance) if len(samples) < ENOUGH else ())]
    priced = [sample for sample in pool if sample.micros is not None]
    own_priced = sum(sample.micros is not None for sample in samples)
    has_history = len(samples) >= ENOUGH
    knows = _Known(has_history and own_priced * 2 >= len(samples), has_history and any(s.tokens for s in samples))
    drawn, scale = min(stories, _DRAWN), max(stories / _DRAWN, 1.0)
    trials: list[Totals] = []
    for trial in range(_TRIALS):
        dice = _dice(trial)
        iterations = seconds = micros = tokens = 0.0
        for _ in range(drawn):
            at = next(dice)
            one = pool[at % len(pool)]
            iterations, seconds, tokens = iterations + one.iterations, seconds + one.seconds, tokens + one.tokens
            known = one.micros if one.micros is not None or not priced else priced[at % len(priced)].micros
            micros += known or 0
        trials.append(Totals(iterations * scale, seconds * scale, micros * scale, tokens * scale))
    return trials, knows


def _dice(trial: int) -> Iterator[int]:
    """A fixed pseudo-random sequence for each trial; importing `random` would cost more than the whole forecast."""
    state = (0x9E3779B97F4A7C15 * (trial + 1)) & 0xFFFFFFFFFFFFFFFF
    while True:
        state ^= (state << 13) & 0xFFFFFFFFFFFFFFFF
        state ^= state >> 7
        state ^= (state << 17) & 0xFFFFFFFFFFFFFFFF
        yield state >> 11


def _range(trials: Iterable[Totals], of: Callable[[Totals], float]) -> Range:
    figures = sorted(of(one) for one in trials)
    return round(figures[len(figures) // 2], 3), round(figures[len(figures) * 9 // 10], 3)


def kept(held: Iterable[Held]) -> Kept:
    """Sorted by iterations: the one figure every run has."""
    pairs = [(one.foretold.iterations, one.finished.iterations) for one in held]
    return Kept(len(pairs), sum(n <= p50 for (p50, _), n in pairs), sum(n <= p90 for (_, p90), n in pairs))


class Prospect(Struct, frozen=True):
    forecast: Foreseen | None
    """None if no work is left."""
    kept: Kept
    """How accurate the forecasts of finished runs were."""


def settings_of(root: Path, env: Mapping[str, str]) -> Config:
    """Of the workspace, for any of its plans."""
    return load(root=root, layout="", name=None, env=env, flags={}).config


def shared_rooms(config: Config, root: Path, repo: Repo | None, env: Mapping[str, str]) -> list[Room]:
    budget = budget_of(config)
    if not budget.is_shared:
        return []
    book = ledger_of(root, repo, env).refresh()
    limits = rooms(budget, NOTHING, elsewhere_in(book, "", time.time()))
    return [room for room in limits if room.scope is not Scope.RUN]


def prospect(opened: OpenPlan, repo: Repo | None, env: Mapping[str, str]) -> Prospect:
    config = opened.settings.config
    book = ledger_of(opened.root, repo, env).refresh()
    still = sum(story.is_open for story in opened.plan.stories)
    if not still:
        return Prospect(None, kept(book.held))
    acceptance = config.acceptance != "off"
    seen = forecast(book.samples, still, review=config.review.when == "always", acceptance=acceptance)
    limits = rooms(budget_of(config), NOTHING, elsewhere_in(book, "", time.time()))
    return Prospect(with_chance(seen, book.samples, limits), kept(book.held))


def spending_of(ref: PlanRef, config: Config, env: Mapping[str, str]) -> Spending:
    """What a run that starts now would count as spent."""
    if not budget_of(config).is_set:
        return Spending()
    book = ledger_of(ref.root, repo_of(ref.root, env), env).refresh()
    return Spending(stories=book.of_plan(plan_name(ref)), elsewhere=elsewhere_in(book, "", time.time()))


def allowance(ref: PlanRef, config: Config, story: str, env: Mapping[str, str]) -> float:
    """Dollars that the first session of a run may spend; 0 if unlimited."""
    budget, spending = budget_of(config), spending_of(ref, config, env)
    limits = [
        *rooms(budget, spending.run, spending.elsewhere),
        *story_rooms(budget, spending.of(story) if story else NOTHING),
    ]
    costliest = ledger_of(ref.root, repo_of(ref.root, env), env).refresh().costliest if budget.is_shared else 0
    return (share(limits, micros(config.agent.budget_usd) or None, costliest) or 0) / MICROS
