"""What the runs of a workspace cost, read from their journals: a receipt per iteration, and totals."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.app.tills import main_root
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
from ralph.core.plan import Mode
from ralph.core.spending import MICROS, Basis, micros
from ralph.host.places import workspace_state
from ralph.host.repo import Repo
from ralph.journal.reading import read
from ralph.journal.runs import journal_path, list_runs


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
    main = main_root(root, repo)
    state = workspace_state(main, env)
    inside = os.path.relpath(os.path.realpath(root), os.path.realpath(repo.root)) if repo else "."
    roots = [main, root] if main != root else [main]
    trees = state / "worktrees"
    roots += [tree / inside for tree in sorted(trees.iterdir())] if trees.is_dir() else []
    for folder in dict.fromkeys(workspace_state(one, env) for one in roots):
        for run in list_runs(folder):
            yield journal_path(folder, run)
        yield from sorted((folder / "planning").glob("**/events-*.jsonl"))


def gather(paths: Iterable[Path], run: str = "") -> Gathered:
    found: list[Receipt] = []
    damaged: list[str] = []
    for path in paths:
        if run and not path.parent.name.startswith(run):
            continue
        reader = _Reader(path.parent.name)
        try:
            for record in read(path):
                reader.add(record)
        except BadData as error:
            damaged.append(str(error))
        found += reader.receipts()
    return Gathered(tuple(sorted(found, key=lambda receipt: (receipt.at, receipt.iteration))), tuple(damaged))


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


class _Reader:
    """Reads one journal into receipts."""

    def __init__(self, run: str) -> None:
        self._run = run
        self._plan = ""
        self._done: list[Receipt] = []
        self._open: IterationStarted | None = None
        self._at = 0.0
        self._now = 0.0
        self._plans = False
        self._sessions: list[tuple[Outcome, Charged | None]] = []
        self._reserved: Reserved | None = None

    def add(self, record: Record) -> None:
        event, self._now = record.event, record.t
        match event:
            case RunStarted(plan=plan, workspace=workspace):
                self._plan = os.path.relpath(plan, workspace)  # the same in every worktree
            case IterationStarted():
                self._close("", self._now - self._at)
                self._open, self._at = event, record.t
            case AgentStarted(iteration=number) if self._open is None:  # outside an iteration: a planning session
                self._open = IterationStarted(iteration=number, story="", title="", mode=Mode.SETUP, attempt=1)
                self._at, self._plans = record.t, True
            case _ if self._open is not None:
                self._inside(event)

    def _inside(self, event: AnyEvent) -> None:
        match event:
            case Reserved():
                self._reserved = event
            case AgentEnded(outcome=outcome):
                self._sessions.append((outcome, None))
                self._reserved = None
            case Charged() if self._sessions:
                self._sessions[-1] = (self._sessions[-1][0], event)
                if self._plans:
                    self._close("answered" if self._sessions[-1][0].ok else "no answer", self._now - self._at)
            case IterationEnded(kind=kind, seconds=seconds):
                self._close(kind.value, seconds)

    def _close(self, outcome: str, seconds: float) -> None:
        started, self._open = self._open, None
        sessions, self._sessions = self._sessions, []
        reserved, self._reserved = self._reserved, None
        if started is None:
            return
        costs = [_cost(*session) for session in sessions]
        if reserved is not None:  # the loop was killed while this session was running
            costs.append((reserved.usd, Basis.UNKNOWN if reserved.usd is None else Basis.RESERVED))
        tokens = Tokens()
        for said, _ in sessions:
            tokens += said.tokens + said.heard
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
                model=next((said.model for said, _ in reversed(sessions) if said.model), ""),
                tokens=tokens,
                usd=sum(known) if len(known) == len(costs) else None,
                basis=max((basis for _, basis in costs), key=_ORDER.index, default=Basis.REPORTED),
                sessions=len(costs),
                seconds=max(seconds, 0),
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
    if micros(outcome.cost_usd) is not None:  # of a run before there was a till, or one that was killed
        return outcome.cost_usd, Basis.REPORTED
    return None, Basis.UNKNOWN
