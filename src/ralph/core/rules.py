"""The rules of a run: one value, made once from the settings, that every verb obeys."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from ralph.core.money import Budget
from ralph.core.proof import Grade, Tamper
from ralph.core.review import OnCap


class Patience(Struct, frozen=True):
    """How long an agent may take. Seconds; None: no limit."""

    total: float | None = 900
    idle: float | None = 600
    grace: float = 10
    linger: float | None = 15


class VerdictRules(Struct, frozen=True):
    """What `judge` obeys. The journal has it beside the evidence, so that a replay judges alike."""

    minimum: Grade = Grade.UNPROVEN
    """The least proof with which a story is done."""
    may_review: bool = False
    """A review can be started for work that nothing else proves."""
    tamper: Tamper = Tamper.REVIEW
    review: bool = False
    """Every story is reviewed."""
    review_cap: int = 5
    on_cap: OnCap = OnCap.APPROVE
    on_stalemate: OnCap = OnCap.HUMAN
    reviewers: tuple[str, ...] = ()
    """All required reviewers, in this order. Empty: one, without a name."""
    promises_all: bool = False
    """The promise tag refers to the whole plan, not to one story."""
    claim_is_implied: bool = False
    """A successful session with a change counts as a claim (seed 000: the loop marks)."""


UNRECORDED = VerdictRules()
"""Evidence in older journals has these fields itself; see `journal.records`."""


class Rules(Struct, frozen=True, kw_only=True):
    limits: Limits
    """For `decide`."""
    verdict: VerdictRules
    """For `judge`."""
    patience: Patience
    commits: bool
    """Accepted work is committed, whether a step asks for that or not."""
    setup_markers: tuple[Path, ...] = ()
    """Files that mark the set-up as done."""


_WINDOWS = {"five_hour": 6 * 3600.0}
"""Seconds, with an hour to spare."""


class OnLimit(StrEnum):
    """What to do at a usage limit."""

    WAIT = "wait"
    EXIT = "exit"
    ASK = "ask"
    """Ask at the terminal; without an answer or a terminal, wait."""
    ASK_EXIT = "ask-exit"
    """The same, but an unanswered question ends the run (seed 003: "No response in 30s: auto-exit")."""


class OnStuck(StrEnum):
    """What happens to a run when a story makes no progress."""

    STOP = "stop"
    NEXT = "next"
    """The story is set aside, and the run continues with the others."""


class Limits(Struct, frozen=True):
    max_iterations: int = 20
    """0: follows from the plan, see `cap`."""
    max_allowed: int = 0
    """Maximum iterations where they follow from the plan; 0: no limit."""
    per_story: int = 0
    """Iterations that one story may take: its attempts and its reviews; 0: no limit."""
    max_attempts: int = 5
    """Per story; 0: no limit."""
    no_progress: int = 3
    same_error: int = 5
    on_stuck: OnStuck = OnStuck.STOP
    rate_per_hour: int = 0
    """Agent starts within any hour; 0: no limit."""
    tokens_per_hour: int = 0
    max_transport: int = 5
    crash_loop: int = 0
    """Agents in a row that crash within a second; 0: no limit."""
    max_time: float = 0
    """Of the whole run, in seconds; 0: no limit."""
    keeps_unproven: bool = False
    """Without reviews, stories that wait for one are left alone: they are kept, but unproven."""
    once: bool = False
    exam_only: bool = False
    """One round of the exam, and no other work."""
    stories: tuple[str, ...] = ()
    """Only these are worked on; empty: all."""
    open_findings_at: tuple[str, ...] = ("cap", "stalemate")
    """Where an approval with open findings counts as complete, because the user chose it."""
    same_only: bool = False
    """The breakers trip on the same failure again or on no activity, not on failures of different kinds."""
    retry_rounds: int = 0
    """How often stories that this run gave up are retried when nothing else is left."""
    on_limit: OnLimit = OnLimit.WAIT
    limit_share: float = 1
    """No new work once this share of a usage window is used; 1: only when all of it is used."""
    jitter: float = 0
    """Maximum seconds added to a wait for a reset, so that not every run resumes in the same second."""
    longest_wait: float = 8 * 24 * 3600.0
    """A reset time further away than this is ignored."""
    doubtful_wait: float = 0
    """How long to wait if the reset time is doubtful: further away than the window is long, or than `longest_wait`.
    0: the older rule, which waits for `longest_wait` and does not pause at a reset time that has passed."""
    unknown_reset_wait: float = 15 * 60.0
    """How long to wait at a usage limit without a reset time."""
    budget: Budget = Budget()
    fallback: tuple[str, ...] = ()
    """Fallback agents and models, in this order."""
    reviewer: str = ""
    """The reviewer, if it is another agent or model than the one that works: its name among the fallbacks, or else
    `review`."""
    worker: str = ""
    """The name of the agent that works, for a review that it does."""
    routes: dict[str, str] = {}
    """By how hard a story looks: who works on it, if that is another agent than the first choice."""
    reviewers: dict[str, str] = {}
    """All required reviewers in their order, and who they are, if the settings name an agent for one of them."""
    reviewed_by_other: bool = False
    """A story is reviewed by another agent than the one that did the work."""
    agents: dict[str, str] = {}
    """The agent of each choice; empty if there is only one."""
    max_lost_reviews: int = 0
    """Reviews of a story in a row without a usable verdict before the story is set aside; 0: no limit."""
    fallback_after: int = 2
    """Failures of one story in a row before a fallback tries it."""
    fallback_cooldown: float = 1800.0
    """Seconds before an agent or model that could not work is tried again."""

    def is_doubtful(self, resets_at: float, since: float, kind: str = "") -> bool:
        """Whether a reset is further away than a usage window of this kind is long."""
        return self.doubtful_wait > 0 and resets_at - since > _WINDOWS.get(kind, self.longest_wait)

    def cap(self, stories: int) -> int:
        """The maximum iterations of a run that has seen this many open stories; 0: no limit."""
        if self.max_iterations:
            return self.max_iterations
        from_plan = self.per_story * stories
        return min(from_plan, self.max_allowed) if from_plan and self.max_allowed else from_plan or self.max_allowed


class Streak(Struct, frozen=True):
    no_progress: int = 0
    """Iterations in a row that proved nothing new. By the newer rule (`Limits.same_only`), only those count that
    failed like the one before or changed no file: failures of different kinds are bad luck.
    """
    same_error: int = 0
    """How often the last error occurred in a row."""
    error: str = ""
    """Its fingerprint."""
    said: str = ""
    """Its text the last time."""
    idle: bool = False
    """The last iteration changed no file."""

    def after_failure(
        self, error: str, said: str, *, progress: bool, idle: bool = False, same_only: bool = False
    ) -> Streak:
        """Progress does not reset the error count: the same error may keep coming back."""
        is_same = bool(error) and error == self.error
        counts_on = is_same or idle or not same_only
        no_progress = 0 if progress else self.no_progress + 1 if counts_on else 1
        return Streak(no_progress, self.same_error + 1 if is_same else 1, error, said, idle)

    def once_less(self) -> Streak:
        less = max(self.no_progress - 1, 0), max(self.same_error - 1, 0)
        return Streak(*less, self.error, self.said, self.idle)

    def trip(self, limits: Limits) -> str:
        """Why this has gone on for too long; empty if it has not."""
        if limits.same_error and self.same_error >= limits.same_error:
            return f"the same error {self.same_error} times in a row"
        if limits.no_progress and self.no_progress >= limits.no_progress:
            return f"{self.no_progress} iterations in a row without progress"
        return ""
