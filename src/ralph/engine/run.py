"""What the engine works with: the rules of a run and its ports. Built by `run.wiring`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec import Struct

from ralph.core.control import Wish
from ralph.core.ports import PlanBook
from ralph.core.rules import Rules
from ralph.core.run_ports import (
    AcceptanceTests,
    AgentSessions,
    Ask,
    Checks,
    ExamTests,
    Inbox,
    Prover,
    RequestFile,
    Tracker,
    Watchers,
)
from ralph.core.work_tree import WorkTree
from ralph.engine.steps import Pipeline
from ralph.host.process.signals import StopSignal
from ralph.journal.records import Journal


class Places(Struct, frozen=True):
    root: Path
    """The workspace."""
    repo: Path
    folder: Path
    """The run's own folder in the state folder."""
    written: tuple[Path, ...]
    """The plan, then other files of its layout that the loop writes itself."""
    is_own: Callable[[str], bool]
    """Whether a path in the repository is Ralph's own, not part of the project."""


class Control(Struct, frozen=True):
    """The clock, and what the user asks of the run while it works."""

    stop: StopSignal
    clock: Callable[[], float]
    wish: Callable[[], Wish] = Wish
    """The requests so far."""
    ask: Ask | None = None
    """None: stdin is not a terminal."""


class Steps(Struct, frozen=True):
    work: Pipeline
    setup: Pipeline | None = None


class Proving(Struct, frozen=True):
    """What finds out whether a story is done."""

    checks: Checks
    prover: Prover
    acceptance: AcceptanceTests
    exam: ExamTests


class Run(Struct, frozen=True, kw_only=True):
    id: str
    rules: Rules
    places: Places
    journal: Journal
    control: Control
    plan: PlanBook[Any]
    tree: WorkTree
    requests: RequestFile
    agents: AgentSessions
    steps: Steps
    proof: Proving
    watchers: Watchers
    inbox: Inbox
    tracker: Tracker
