"""What the loop stands on: the ports it uses and the few values that shape a run. Built by `app.wiring`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from ralph.core.agent import Outcome
from ralph.core.control import Wish
from ralph.core.events import AnyEvent, Noted
from ralph.core.evidence import CheckResult, Ended
from ralph.core.guard import Guard
from ralph.core.limits import Limits
from ralph.core.moves import Stop, Work
from ralph.core.plan import Mode, Plan, Story
from ralph.core.ports import PlanBook, Reading, Session
from ralph.core.requests import Request
from ralph.core.reviews import OnCap
from ralph.core.suspicion import Suspicion, Tamper
from ralph.engine.agent_run import Patience
from ralph.engine.pipeline import Pipeline
from ralph.host.signals import StopSignal
from ralph.journal.writing import Journal

Ask = Callable[[str, float, Callable[[], bool]], str]
"""Asks whoever is at the terminal whether to wait, and for what and until when; given up when somebody wants something
else of the run by then, and without an answer."""


class Inspection(Struct, frozen=True):
    """The working tree after an agent has been in it."""

    tree: str
    changed: tuple[str, ...] = ()
    """Every path that differs from the checkpoint."""
    commits: tuple[str, ...] = ()
    """Commits the agent made itself."""
    sound: bool = True
    """False: it rewrote history or left its branch; nothing of that can be kept."""
    notices: tuple[str, ...] = ()
    """What it did to the repository itself."""


class Commit(Struct, frozen=True):
    """A commit, or the hook that refused it."""

    commit: str = ""
    files: tuple[str, ...] = ()
    refused: CheckResult | None = None
    notices: tuple[str, ...] = ()


class RolledBack(Struct, frozen=True):
    ref: str = ""
    """Where the work is; empty when there was nothing to save."""
    commit: str = ""
    removed: int = 0
    rewritten: int = 0
    notices: tuple[str, ...] = ()


class PutBack(Struct, frozen=True):
    """Protected files that are again as they were at the checkpoint."""

    paths: tuple[str, ...] = ()
    ref: str = ""
    """Where the agent's version of them is."""
    left: tuple[str, ...] = ()
    """Those that could not be put back."""


class PageBack(Struct, frozen=True):
    """What became of a page that an agent has changed although it is read-only."""

    told: str = ""
    left: str = ""
    """Why it is not as it was."""
    logged: str = ""
    """What the agent added to the progress log."""

    def __add__(self, other: PageBack) -> PageBack:
        told = "; ".join(filter(None, (self.told, other.told)))
        return PageBack(told, self.left or other.left, self.logged + other.logged)


class WorkTree(Protocol):
    """The git repository, as the loop uses it. Checkpoints travel as plain data, so that they fit in the journal."""

    def checkpoint(self) -> dict[str, Any]: ...

    def is_in_place(self) -> bool:
        """Whether its folder is still the very one it was, whatever became of the repository in it."""
        ...

    def knows(self, checkpoint: dict[str, Any]) -> bool:
        """Whether it can go back to this checkpoint: another repository cannot."""
        ...

    def left_at(self, checkpoint: dict[str, Any]) -> float:
        """When HEAD was moved to where it is, if that is not where the checkpoint has it. 0: it is, or nobody knows."""
        ...

    def inspect(self, checkpoint: dict[str, Any]) -> Inspection: ...

    def put_back(
        self, checkpoint: dict[str, Any], is_protected: Callable[[str], bool], name: str, *, also_new: bool = True
    ) -> PutBack:
        """Make protected files what they were at the checkpoint. First everything is saved under a rescue ref."""
        ...

    def tree(self) -> str:
        """The identity of the working tree as it is now."""
        ...

    def roll_back(self, checkpoint: dict[str, Any], name: str, message: str) -> RolledBack:
        """Save everything under a rescue ref, then return to the checkpoint. Can be called again after a crash."""
        ...

    def commit(
        self,
        checkpoint: dict[str, Any],
        tree: str,
        extra: Sequence[Path],
        message: str,
        trailers: Mapping[str, str | Sequence[str]],
    ) -> Commit | None:
        """Commit what changed between the checkpoint and `tree`, and the files in `extra`. None: nothing changed."""
        ...

    def find_commit(self, trailers: dict[str, str]) -> str:
        """The recent commit that carries these trailers, or nothing."""
        ...


class Desk(Protocol):
    """Where the agent leaves requests and sentinels."""

    @property
    def asks_by_file(self) -> bool:
        """Every question is kept in the file WAITING."""
        ...

    def clear(self) -> None: ...

    def take(self) -> Request:
        """What the agent left, read and removed."""
        ...

    def waiting(self) -> str:
        """The text of a WAITING file, or nothing."""
        ...

    def keep_waiting(self, text: str) -> None: ...

    def says_complete(self) -> bool:
        """Whether a file COMPLETE is there, from whomever."""
        ...


class Attempt(Struct, frozen=True, kw_only=True):
    """One iteration under way."""

    number: int
    work: Work
    story: Story | None
    attempt: int
    free: int = 0
    reading: Reading
    """The plan as it was before; what becomes of it starts from this."""
    shown: Reading | None = None
    """The plan as the agent found it, with its story in progress; None: the same."""
    checkpoint: dict[str, Any]
    begun: float
    reviewer: str = ""
    """Who reviews, where there are several."""
    most: int = 0
    """The cap on iterations as it is now; 0: no limit, or not known."""

    @property
    def mode(self) -> Mode:
        return self.work.mode


class Checker(Protocol):
    @property
    def check_set(self) -> str:
        """The identity of the checks that ran last."""
        ...

    def __call__(
        self, plan: Plan, story: Story | None, when: str, iteration: int, tree: str
    ) -> tuple[CheckResult, ...]:
        """Run the checks that apply, one journal record each."""
        ...

    def baseline(self, plan: Plan, tree: str, story: Story | None) -> Stop | None:
        """Find out which checks pass before any work. A reason not to start the agent for `story`, or None."""
        ...


class Ground(Struct, frozen=True, kw_only=True):
    run: str
    root: Path
    repo: Path
    folder: Path
    """The run's own folder in the state folder."""
    journal: Journal
    book: PlanBook[Any]
    tree: WorkTree
    desk: Desk
    stop: StopSignal
    wish: Callable[[], Wish]
    """What people want of the run by now."""
    clock: Callable[[], float]
    ask: Ask | None
    """None: nobody is there."""
    limits: Limits
    guards: tuple[Guard, ...]
    at_each_start: tuple[Guard, ...] = ()
    """Those that are asked again before each further agent of an iteration."""
    work_steps: Pipeline
    setup_steps: Pipeline | None
    setup_markers: tuple[Path, ...]
    """Written when setting up is done."""
    needs_setup: Callable[[], bool]
    take_in: Callable[[], Sequence[str]] = tuple
    """Write into the plan what a person has added while an agent was at work. Sentences about it."""
    run_agent: Callable[[Session, str, Patience], tuple[Ended, Outcome]]
    news: Callable[[Plan], Iterable[AnyEvent]]
    """What a decision has to know besides the plan and the run's own history."""
    make_session: Callable[[Attempt, dict[str, Any], str], Session]
    """Attempt, step config and feedback → session with its prompt."""
    patience: Patience
    check: Checker
    run_command: Callable[..., CheckResult]
    track: Callable[[Story], Noted | None] = lambda _: None
    """Make an external tracker say what the plan says about a story now."""
    agreement: Callable[[Plan], tuple[CheckResult, ...]] = lambda _: ()
    """Whether the tracker agrees with the finished plan, as checks of the final pass."""
    suspect: Callable[[Attempt, Inspection], tuple[Suspicion, ...]]
    """What makes the word of passing checks doubtful."""
    vacuous: Callable[[Attempt, Inspection], tuple[str, ...]]
    """Why new tests prove nothing. Nothing: they do, or nobody asks."""
    tamper: Tamper
    review: bool
    review_cap: int
    on_cap: OnCap
    on_stalemate: OnCap
    reviewers: tuple[str, ...]
    """In the order they are asked. Empty: one, without a name."""
    claim_is_implied: bool
    promises_all: bool
    """The promise tag speaks of the whole plan, not of one story."""
    commits: bool
    changed_settings: Callable[[], tuple[str, ...]]
    """Files with settings that are not what they were. The run keeps those it started with."""
    is_protected: Callable[[str], bool] | None
    """Files that an agent must not change. None: there are none."""
    put_page_back: Callable[[int], PageBack] = lambda _: PageBack()
    """Make the page with the requirements what it was before the iteration, and the log. Before the tree is seen."""
    is_bookkeeping: Callable[[str], bool]
    bookkeeping: tuple[Path, ...]
    """Files of the layout that the loop writes itself."""
