"""The results of `decide`: work on a story, wait, set one aside, retry some, run the final checks, or stop."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from ralph.core.exit_codes import ExitCode
from ralph.core.plan import Mode


class Reason(StrEnum):
    """Why a run ends. Each reason has one exit code."""

    COMPLETE = "complete"
    NAMED_STORIES = "named-stories"
    """The stories named on the command line are done."""
    OPEN_FINDINGS = "open-findings"
    """Every story is done, some approved only because of the review cap or a stalemate."""
    UNPROVEN = "unproven"
    """Work is kept that no check is about and no review has approved."""
    FINAL_CHECKS = "final-checks"
    EXAM = "exam"
    """`ralph proof exam` added stories, or its session failed."""
    ITERATION_CAP = "iteration-cap"
    NO_PROGRESS = "no-progress"
    SAME_ERROR = "same-error"
    CRASH_LOOP = "crash-loop"
    TIME_CAP = "time-cap"
    FAILED_STORIES = "failed-stories"
    NOTHING_READY = "nothing-ready"
    TRANSPORT = "transport"
    ONCE = "once"
    ONCE_TIMED_OUT = "once-timed-out"
    USAGE_LIMIT = "usage-limit"
    BUDGET = "budget"
    OUT_OF_REACH = "out-of-reach"
    """The run is unlikely to finish within the budget."""
    WAITING = "waiting"
    MISCONFIGURED = "misconfigured"
    BROKEN_CHECK = "broken-check"
    """A check cannot run at all; detected before the first agent started."""
    RED_BASELINE = "red-baseline"
    """A check fails before any work is done, and `baseline: strict` would reject every story because of it."""
    REPOSITORY = "repository"
    SHARED_TREE = "shared-tree"
    """Commits that may be somebody else's were in the way of a rollback."""
    BAD_PLAN = "bad-plan"
    ON_REQUEST = "on-request"
    """By `ralph stop`, between iterations."""
    INTERRUPTED = "interrupted"
    TERMINATED = "terminated"
    TERMINAL_CLOSED = "terminal-closed"

    @property
    def exit_code(self) -> ExitCode:
        return _EXIT_CODES.get(self, ExitCode.UNFINISHED)


_EXIT_CODES = {
    Reason.COMPLETE: ExitCode.COMPLETE,
    Reason.NAMED_STORIES: ExitCode.COMPLETE,
    Reason.ONCE: ExitCode.COMPLETE,
    Reason.FAILED_STORIES: ExitCode.FAILED_STORIES,
    Reason.TIME_CAP: ExitCode.TIME_CAP,
    Reason.ONCE_TIMED_OUT: ExitCode.TIMED_OUT,
    Reason.USAGE_LIMIT: ExitCode.USAGE_LIMIT,
    Reason.BUDGET: ExitCode.BUDGET,
    Reason.OUT_OF_REACH: ExitCode.BUDGET,
    Reason.WAITING: ExitCode.WAITING,
    Reason.MISCONFIGURED: ExitCode.ENVIRONMENT,
    Reason.BROKEN_CHECK: ExitCode.ENVIRONMENT,
    Reason.RED_BASELINE: ExitCode.ENVIRONMENT,
    Reason.CRASH_LOOP: ExitCode.ENVIRONMENT,
    Reason.REPOSITORY: ExitCode.ENVIRONMENT,
    Reason.SHARED_TREE: ExitCode.WAITING,
    Reason.BAD_PLAN: ExitCode.BAD_DATA,
    Reason.INTERRUPTED: ExitCode.INTERRUPTED,
    Reason.TERMINATED: ExitCode.TERMINATED,
    Reason.TERMINAL_CLOSED: ExitCode.TERMINATED,
}
BY_SIGNAL = frozenset({Reason.INTERRUPTED, Reason.TERMINATED, Reason.TERMINAL_CLOSED})


class Work(Struct, frozen=True, tag="work"):
    story: str
    """Empty in setup mode and in an exam."""
    mode: Mode
    choice: str = ""
    """The agent or model; empty: as configured."""


class Wait(Struct, frozen=True, tag="wait"):
    until: float
    """Seconds since the epoch."""
    why: str
    ask: bool = False
    """Ask first whether to wait, if stdin is a terminal."""


class SetAside(Struct, frozen=True, tag="set-aside"):
    """Set a story aside and continue with the others."""

    story: str
    why: str
    by_user: bool = False
    """`ralph task skip`: the run does not retry it."""


class Retry(Struct, frozen=True, tag="retry"):
    """Retry stories this run gave up."""

    stories: tuple[str, ...]


class Prove(Struct, frozen=True, tag="prove"):
    """Run every check once on the final tree."""


class Stop(Struct, frozen=True, tag="stop"):
    reason: Reason
    detail: str = ""


Move = Work | Wait | SetAside | Retry | Prove | Stop
