"""What the driver of a run with several workers and a worker say to each other.

To the worker go values of our own (`Begin`, `Ticket`, …), from it come messages that are decoded strictly: a worker
starts agents, and those may be anybody's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from ralph.core.agent import Outcome
from ralph.core.events import AnyEvent
from ralph.core.evidence import CheckResult, Ended
from ralph.core.moves import Stop, Work
from ralph.core.ports import PlanRef, Task
from ralph.core.proof import Proof
from ralph.core.trace_context import TraceContext
from ralph.core.work_tree import RolledBack

CANDIDATES = "refs/ralph/candidates/"
"""Refs of what workers accepted, by run and iteration."""


class Begin(Struct, frozen=True, kw_only=True):
    """Everything a worker needs to know about the run."""

    run: str
    """The driver's."""
    worker: int
    home: Path
    """The worker's own state home."""
    ref: PlanRef
    """The plan in the user's workspace."""
    source: str
    """The repository it gets commits from: a folder with objects that it can read directly, or the address of a hub."""
    is_hub: bool = False
    checkout: str = ""
    """The root of the user's working tree, if it is on this machine."""
    base: str
    settings: Any
    options: Any
    objects: str = "sha1"
    sandbox: tuple[str, str, str] | None = None
    """Name, program and version of the one that the driver chose, all empty for none; None: the worker chooses."""
    env: dict[str, str] = {}
    """Variables of the driver that agents need, where the worker does not inherit them."""
    git_settings: dict[str, str] = {}
    """Of the user's repository, where the worker cannot read them."""
    trace: TraceContext | None = None
    """Of the driver's run, if traces are sent."""


class Ticket(Struct, frozen=True, kw_only=True):
    """One iteration."""

    iteration: int
    work: Work
    base: str
    files: dict[str, bytes] = {}
    """Ralph's own files in the workspace, by path: the plan, prompts, settings."""
    state: dict[str, bytes] = {}
    """Files of the plan's state folder."""
    past: tuple[AnyEvent, ...] = ()
    """What earlier iterations of the story did, for reviews."""
    kept: Mapping[str, Any] = {}
    """By story: what sessions have left of stories that are not done."""
    feedback: str = ""
    free: int = 0
    most: int = 0
    carried: str = ""
    """A tree that the session starts with: earlier work of the story on this base, with any conflicts marked."""


class Examine(Struct, frozen=True, kw_only=True):
    """Prove a merged tree."""

    key: str
    iteration: int
    works: tuple[Work, ...]
    onto: str
    merged: str
    is_claimed: bool = True
    kept: Mapping[str, Any] = {}
    files: dict[str, bytes] = {}
    state: dict[str, bytes] = {}


class Reply(Struct, frozen=True):
    number: int
    value: Any


class End(Struct, frozen=True):
    """Stop what is being done; without a signal, also exit when that is over."""

    signum: int = 0


Order = Begin | Ticket | Examine | Reply | End


class Reserve(Struct, frozen=True, kw_only=True, tag=True):
    task: Task
    model: str = ""
    budget_usd: float = 0


class Charge(Struct, frozen=True, kw_only=True, tag=True):
    name: str
    task: Task
    model: str = ""
    ended: Ended
    outcome: Outcome


class Admit(Struct, frozen=True, tag=True):
    """Whether a further agent may start."""


class Allowed(Struct, frozen=True, kw_only=True):
    """The answer to `Reserve`."""

    name: str
    usd: float | None = None
    refusal: Outcome | None = None


class Ready(Struct, frozen=True, kw_only=True, tag=True):
    pid: int
    start: str = ""
    run: str = ""
    where: str = ""
    folder: str = ""
    seconds: float = 0
    has_lost_work: bool = False
    """A ref keeps what a killed worker had left in the clone."""


class Alive(Struct, frozen=True, tag=True):
    """Sent regularly, whatever the worker is doing."""


class Told(Struct, frozen=True, tag=True):
    event: AnyEvent


class Query(Struct, frozen=True, tag=True):
    number: int
    ask: Reserve | Charge | Admit


class Finished(Struct, frozen=True, kw_only=True, tag=True):
    """An iteration was judged. `candidate`: what was accepted; empty: it was undone."""

    iteration: int
    candidate: str = ""
    undone: RolledBack = RolledBack()
    stop: Stop | None = None
    """Why the iteration could not start."""
    acceptance: bytes = b""
    """Acceptance tests that the session wrote."""
    logs: dict[str, bytes] = {}
    """Files of the worker's run folder, if it is on another machine."""


class Examined(Struct, frozen=True, kw_only=True, tag=True):
    key: str
    checks: tuple[CheckResult, ...] = ()
    proof: Proof | None = None
    interrupted: bool = False


class Failed(Struct, frozen=True, kw_only=True, tag=True):
    """The worker cannot go on."""

    message: str
    hint: str = ""
    is_setup: bool = False


Message = Ready | Alive | Told | Query | Finished | Examined | Failed
