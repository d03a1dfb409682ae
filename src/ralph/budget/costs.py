"""What the runs of a workspace cost, read from their journals: a receipt per iteration, and totals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.budget.settings import main_root
from ralph.config.prices import list_prices
from ralph.core.agent import Outcome, Tokens
from ralph.core.errors import BadData
from ralph.core.events import (
    AgentEnded,
    AgentStarted,
    AnyEvent,
    Charged,
    IterationEnded,
    IterationStarted,
    Record,
    Reserved,
    RunStarted,
)
from ralph.core.money import MICROS, Basis, micros
from ralph.core.plan import Mode
from ralph.host.git.repo import Repo
from ralph.journal.records import read
from ralph.state.names import PLANNING
from ralph.state.places import workspace_state
from ralph.state.runs import family, journal_path, list_runs
from ralph.workspace.killed_sessions import charge, outcome_so_far


class Part(Struct, frozen=True, kw_only=True):
    """The share of one model in a receipt."""

    model: str
    tokens: Tokens
    usd: float | None
    basis: Basis


class Receipt(Struct, frozen=True, kw_only=True):
    """One iteration: its usage, cost, how the cost is known, and the verdict."""

    run: str
    iteration: int
    at: float
    plan: str
    story: str
    mode: str
    """Mode of the iteration; `plan` for a planning session."""
    outcome: str
    """The verdict; empty while it is active, or if it was killed."""
    agent: str
    """Of its last session; empty: unknown."""
    model: str
    tokens: Tokens
    usd: float | None
    """None: unknown."""
    basis: Basis
    sessions: int
    seconds: float
    parts: tuple[Part, ...] = ()
    """By model: a session may use several, such as a small one for its own housekeeping."""


class Sums(Struct, frozen=True, kw_only=True):
    """Receipts added up. `usd` is the known cost; `unknown` counts iterations without a known cost."""

    name: str
    iterations: int = 0
    usd: float = 0
    estimated_usd: float = 0
    reserved_usd: float = 0
    unknown: int = 0
    tokens: Tokens = Tokens()
    seconds: float = 0


class Gathered(Struct, frozen=True):
    receipts: tuple[Receipt, ...]
    damaged: tuple[str, ...] = ()


def journals(root: Path, repo: Repo | None, env: Mapping[str, str]) -> Iterator[Path]:
    """Runs of the workspace and of worktrees that runs created from it. Oldest first in each."""
    for folder in dict.fromkeys((*family(main_root(root, repo), env), workspace_state(root, env))):
        for run in list_runs(folder):
            yield journal_path(folder, run)
        yield from sorted((folder / PLANNING).glob("**/events-*.jsonl"))


def gather(paths: Iterable[Path], run: str = "") -> Gathered:
    receipts: list[Receipt] = []
    damaged: list[str] = []
    for path in paths:
        if run and not path.parent.name.startswith(run):
            continue
        reader = _Reader(path)
        try:
            for record in read(path):
                reader.add(record)
        except BadData as error:
            damaged.append(str(error))
        receipts += reader.receipts()
    return Gathered(tuple(sorted(receipts, key=lambda receipt: (receipt.at, receipt.iteration))), tuple(damaged))


def add_up(name: str, receipts: Iterable[Receipt]) -> Sums:
    listed = list(receipts)

    def money(*bases: Basis) -> float:
        return sum(micros(one.usd) or 0 for one in listed if not bases or one.basis in bases) / MICROS

    tokens = Tokens()
    for one in listed:
        tokens += one.tokens
    return Sums(
        name=name,
        iterations=len(listed),
        usd=money(),
        estimated_usd=money(Basis.ESTIMATED),
        reserved_usd=money(Basis.RESERVED),
        unknown=sum(one.usd is None for one in listed),
        tokens=tokens,
        seconds=sum(one.seconds for one in listed),
    )


def group(receipts: Iterable[Receipt], name_of: Callable[[Receipt], str]) -> list[Sums]:
    groups: dict[str, list[Receipt]] = {}
    for receipt in receipts:
        groups.setdefault(name_of(receipt), []).append(receipt)
    return [add_up(name, listed) for name, listed in groups.items()]


def by_model(receipts: Iterable[Receipt]) -> Iterator[Receipt]:
    """One receipt for each model of each iteration. Their sum is the same."""
    for one in receipts:
        whole = Part(model=one.model, tokens=one.tokens, usd=one.usd, basis=one.basis)
        for number, part in enumerate(one.parts or (whole,)):
            fields = {"model": part.model, "tokens": part.tokens, "usd": part.usd, "basis": part.basis}
            yield msgspec.structs.replace(one, **fields, seconds=0.0 if number else one.seconds, parts=())


class _Open(Struct):
    """An iteration that has not ended, or a planning session."""

    started: IterationStarted
    at: float
    plans: bool = False
    running: AgentStarted | None = None
    sessions: list[tuple[Outcome, Charged | None]] = []
    is_reserved: bool = False


class _Reader:
    """Reads one journal into receipts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._run = path.parent.name
        self._agent = ""
        self._plan = ""
        self._done: list[Receipt] = []
        self._open: dict[int, _Open] = {}
        self._now = 0.0

    def add(self, record: Record) -> None:
        event, self._now = record.event, record.t
        match event:
            case RunStarted(plan=plan, workspace=workspace, agent=agent):
                self._agent = agent
                self._plan = os.path.relpath(plan, workspace)  # the same in every worktree
            case IterationStarted(iteration=number, worker=worker):
                if not worker:  # only workers have several at a time
                    self._close_all()
                self._open[number] = _Open(event, record.t)
            case AgentStarted(iteration=number) if not self._open:  # outside an iteration: a planning session
                started = IterationStarted(iteration=number, story="", title="", mode=Mode.SETUP, attempt=1)
                self._open[number] = _Open(started, record.t, plans=True, running=event)
            case Reserved() | AgentStarted() | AgentEnded() | Charged() | IterationEnded() if self._open:
                if (one := self._open.get(event.iteration)) is not None:
                    self._inside(one, event)

    def _inside(self, one: _Open, event: AnyEvent) -> None:
        match event:
            case Reserved():
                one.is_reserved = True
            case AgentStarted():
                one.running, one.is_reserved = event, False
            case AgentEnded(outcome=outcome):
                by = outcome.agent or (one.running.agent if one.running else "") or self._agent
                one.sessions.append((msgspec.structs.replace(outcome, agent=by), None))
                one.running = None
            case Charged():
                last = one.sessions.pop()[0] if one.sessions and one.sessions[-1][1] is None else Outcome()
                one.sessions.append((last, event))
                if one.plans:
                    self._close(one, "answered" if last.ok else "no answer", self._now - one.at)
            case IterationEnded(kind=kind, seconds=seconds):
                self._close(one, kind.value, seconds)

    def _close_all(self) -> None:
        for one in tuple(self._open.values()):
            self._close(one, "", self._now - one.at)

    def _close(self, one: _Open, outcome: str, seconds: float) -> None:
        self._open = {number: each for number, each in self._open.items() if each is not one}
        sessions = one.sessions
        if one.running is not None:  # it is still active, or its loop was killed
            sessions.append((outcome_so_far(self._path, one.running, self._agent), None))
        elif one.is_reserved:  # killed before it is known whether the session started
            sessions.append((Outcome(), None))
        costs = [_cost(*session) for session in sessions]
        tokens = Tokens()
        for answer, _ in sessions:
            tokens += answer.used
        known = [usd for usd, _ in costs if usd is not None]
        self._done.append(
            Receipt(
                run=self._run,
                iteration=one.started.iteration,
                at=one.at,
                plan=self._plan,
                story=one.started.story,
                mode="plan" if one.plans else one.started.mode.value,
                outcome=outcome,
                agent=next((answer.agent for answer, _ in reversed(sessions) if answer.agent), self._agent),
                model=next((answer.model for answer, _ in reversed(sessions) if answer.model), ""),
                tokens=tokens,
                usd=sum(known) if len(known) == len(costs) else None,
                basis=max((basis for _, basis in costs), key=_ORDER.index, default=Basis.REPORTED),
                sessions=len(costs),
                seconds=max(seconds, 0),
                parts=tuple(
                    part for (answer, _), cost in zip(sessions, costs, strict=True) for part in _parts(answer, *cost)
                ),
            )
        )

    def receipts(self) -> list[Receipt]:
        self._close_all()
        return self._done


_ORDER = [Basis.REPORTED, Basis.ESTIMATED, Basis.RESERVED, Basis.UNKNOWN]
"""From certain to uncertain: a sum is as certain as its least certain part."""


def _cost(outcome: Outcome, charged: Charged | None) -> tuple[float | None, Basis]:
    if charged is not None:
        return charged.usd if micros(charged.usd) is not None else None, charged.basis
    # Of a run before costs were recorded, or one that was killed.
    estimate = charge(list_prices(), "", 0, "", "", outcome)
    return estimate.usd, estimate.basis


def _parts(outcome: Outcome, usd: float | None, basis: Basis) -> Iterator[Part]:
    """What the client reported for each model, and the rest for the one that did most of the work."""
    known, rest = [use for use in outcome.uses if use.tokens.total or use.usd], outcome.used
    tokens = Tokens()
    for use in known:
        tokens += use.tokens
    left = None if usd is None else round(usd - sum(use.usd for use in known), 9)
    for use in known:
        yield Part(model=use.model, tokens=use.tokens, usd=use.usd, basis=Basis.REPORTED)
    if not known or rest.total > tokens.total or left:
        missing = Tokens(*(max(getattr(rest, name) - getattr(tokens, name), 0) for name in rest.__struct_fields__))
        yield Part(model=outcome.model, tokens=missing, usd=left, basis=basis)
