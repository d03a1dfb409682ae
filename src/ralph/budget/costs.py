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


class _Reader:
    """Reads one journal into receipts."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._run = path.parent.name
        self._agent = ""
        self._running: AgentStarted | None = None
        self._plan = ""
        self._done: list[Receipt] = []
        self._open: IterationStarted | None = None
        self._at = 0.0
        self._now = 0.0
        self._plans = False
        self._sessions: list[tuple[Outcome, Charged | None]] = []
        self._is_reserved = False

    def add(self, record: Record) -> None:
        event, self._now = record.event, record.t
        match event:
            case RunStarted(plan=plan, workspace=workspace, agent=agent):
                self._agent = agent
                self._plan = os.path.relpath(plan, workspace)  # the same in every worktree
            case IterationStarted():
                self._close("", self._now - self._at)
                self._open, self._at = event, record.t
            case AgentStarted(iteration=number) if self._open is None:  # outside an iteration: a planning session
                self._open = IterationStarted(iteration=number, story="", title="", mode=Mode.SETUP, attempt=1)
                self._at, self._plans, self._running = record.t, True, event
            case _ if self._open is not None:
                self._inside(event)

    def _inside(self, event: AnyEvent) -> None:
        match event:
            case Reserved():
                self._is_reserved = True
            case AgentStarted():
                self._running, self._is_reserved = event, False
            case AgentEnded(outcome=outcome):
                self._sessions.append((outcome, None))
                self._running = None
            case Charged():
                last = self._sessions.pop()[0] if self._sessions and self._sessions[-1][1] is None else Outcome()
                self._sessions.append((last, event))
                if self._plans:
                    self._close("answered" if self._sessions[-1][0].ok else "no answer", self._now - self._at)
            case IterationEnded(kind=kind, seconds=seconds):
                self._close(kind.value, seconds)

    def _close(self, outcome: str, seconds: float) -> None:
        started, self._open = self._open, None
        sessions, self._sessions = self._sessions, []
        running, self._running = self._running, None
        if started is None:
            return
        if running is not None:  # it is still active, or its loop was killed
            sessions.append((outcome_so_far(self._path, running, self._agent), None))
        elif self._is_reserved:  # killed before it is known whether the session started
            sessions.append((Outcome(), None))
        self._is_reserved = False
        costs = [_cost(*session) for session in sessions]
        tokens = Tokens()
        for answer, _ in sessions:
            tokens += answer.used
        known = [usd for usd, _ in costs if usd is not None]
        self._done.append(
            Receipt(
                run=self._run,
                iteration=started.iteration,
                at=self._at,
                plan=self._plan,
                story=started.story,
                mode="plan" if self._plans else started.mode.value,
                outcome=outcome,
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
        self._close("", self._now - self._at)
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
