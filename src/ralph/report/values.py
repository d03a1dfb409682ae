"""The values of a run's report."""

from __future__ import annotations

from msgspec import Struct

from ralph.core.evidence import CheckResult
from ralph.core.review import OPEN_FINDINGS


class StoryCommit(Struct, frozen=True):
    id: str
    subject: str = ""
    by_agent: bool = False
    files: int = 0
    added: int = 0
    removed: int = 0
    is_missing: bool = False
    """The commit is no longer in the repository."""
    earlier_run: str = ""
    """The earlier run that made it; it is not in the diffstat. Empty: this run."""

    @property
    def remark(self) -> str:
        parts = [
            *(["by the agent"] if self.by_agent else []),
            *([f"run {self.earlier_run}"] if self.earlier_run else []),
            *(["no longer in the repository"] if self.is_missing else []),
        ]
        return f" ({', '.join(parts)})" if parts else ""


class Rejected(Struct, frozen=True):
    """An attempt that was rolled back and saved under a rescue ref."""

    story: str
    iteration: int
    kind: str
    reason: str
    name: str
    """What `ralph rescue show` takes."""
    is_missing: bool = False
    reasons: tuple[str, ...] = ()
    """Besides the first one, and what was restored or could not be."""


class StoryReport(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    state: str
    """done, approved with open findings, unproven, failed, blocked, in progress or open. Unproven: done
    without any check, or kept and waiting for a review."""
    why: str = ""
    iterations: int = 0
    seconds: float = 0
    tokens: int = 0
    cost_usd: float | None = None
    commits: tuple[StoryCommit, ...] = ()
    files: tuple[str, ...] = ()
    """Without the plan and Ralph's own files."""
    added: int = 0
    removed: int = 0
    doubts: tuple[str, ...] = ()
    """Changed expectations that were accepted, and why."""
    grade: str = ""
    """proven, witnessed, reviewed or unproven; empty: not judged."""
    witnesses: tuple[str, ...] = ()
    """What fails without the change and passes with it."""
    where: str = ""
    """Where it was proven: checkout or in-place; empty: not in this run."""
    limits: tuple[str, ...] = ()
    """What the proof did not examine, and why."""
    missing: tuple[str, ...] = ()
    """What would have been a witness."""


class Question(Struct, frozen=True):
    story: str
    text: str


class Report(Struct, frozen=True, kw_only=True):
    run: str
    plan: str
    branch: str
    state: str
    """ended, running, paused or killed."""
    reason: str
    detail: str
    why: str
    next: str
    exit_code: int | None
    started: float
    last: float
    """The time of the last record."""
    seconds: float
    agent_seconds: float
    iterations: int
    verdicts: dict[str, int]
    tokens: int
    cost_usd: float | None
    unknown_costs: int
    done: int
    total: int
    commits: int
    stories: tuple[StoryReport, ...]
    questions: tuple[Question, ...]
    look_first: tuple[str, ...]
    rejected: tuple[Rejected, ...]
    failing: tuple[CheckResult, ...]
    has_git: bool
    grades: dict[str, int] = {}
    """How many finished stories have each grade."""
    exams: tuple[str, ...] = ()
    """The result of each round of the exam."""
    where: str = ""
    """Where stories were proven: checkout or in-place; empty: no story was."""


STATES = ("done", OPEN_FINDINGS, "unproven", "failed", "blocked", "in progress", "open")
"""In display order."""
