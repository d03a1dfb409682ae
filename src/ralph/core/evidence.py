"""What the loop saw with its own eyes in one iteration. `judge` reads this and nothing else."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from ralph.core.agent import Outcome
from ralph.core.delta import Delta
from ralph.core.findings import Reply
from ralph.core.plan import Mode, Story
from ralph.core.reviews import Answer, OnCap
from ralph.core.suspicion import Suspicion, Tamper


class How(StrEnum):
    """How the agent process ended."""

    EXITED = "exited"
    TIMED_OUT = "timed-out"
    SILENT = "silent"
    LINGERED = "lingered"
    STOPPED = "stopped"
    FAILED_TO_START = "failed-to-start"
    NOT_RUN = "not-run"


class Ended(Struct, frozen=True):
    how: How
    code: int | None = None
    signal: int | None = None
    seconds: float = 0
    detail: str = ""
    """The end of stderr, or why it did not start."""

    @property
    def well(self) -> bool:
        """Also where no agent was needed, as in a set-up that is only commands."""
        return self.code == 0 and self.how in (How.EXITED, How.LINGERED, How.NOT_RUN)


class Claim(StrEnum):
    DONE = "done"
    ALREADY = "already-satisfied"


class CheckResult(Struct, frozen=True):
    """One command the loop ran itself: evidence."""

    name: str
    command: str
    passed: bool
    code: int | None = None
    seconds: float = 0
    timed_out: bool = False
    tail: str = ""
    digest: str = ""
    required: bool = True
    """False: allowed to fail; told, but never a reason."""
    failed_before: bool = False
    """It failed on the checkpoint already: not this agent's doing."""
    proves: str = ""
    """The done story whose own check this is: when it fails, that story is broken again."""
    output: str = ""
    """The file with all that it wrote, when it failed."""


class Evidence(Struct, frozen=True, kw_only=True):
    mode: Mode
    story: Story | None
    ended: Ended
    outcome: Outcome
    changed: tuple[str, ...] = ()
    """Paths that differ from the checkpoint, without Ralph's own bookkeeping."""
    repository_trouble: str = ""
    """The agent rewrote history or left its branch: nothing of that can be kept."""
    notices: tuple[str, ...] = ()
    """What was put back in the tree."""
    objections: tuple[str, ...] = ()
    """What stands against acceptance although the checks pass."""
    delta: Delta | None = Delta()
    """What the agent did to the plan. None: it left one that cannot be read."""
    plan_problem: str = ""
    claim: Claim | None = None
    question: str = ""
    waiting: str = ""
    """The text of a WAITING file: a question that stops the whole run."""
    checks: tuple[CheckResult, ...] = ()
    check_set: str = ""
    """The identity of the set they belong to."""
    unchecked: bool = False
    """Files were changed, and there is no check that could have run on them."""
    suspicions: tuple[Suspicion, ...] = ()
    """What makes the checks' word doubtful: weakened tests, edited checks."""
    tamper: Tamper = Tamper.REVIEW
    passed_before: bool | None = None
    """Whether the checks passed on the checkpoint. None: not looked at."""
    answer: Answer | None = None
    """What a reviewer said in the request file."""
    reviewer: str = ""
    """Who reviews, where there are several."""
    reviewers: tuple[str, ...] = ()
    """All who have to, in this order. Empty: one, without a name."""
    replies: tuple[Reply, ...] = ()
    """What a fix says about each finding."""
    learned: tuple[str, ...] = ()
    """What it says that later sessions should know. Nothing is judged by it."""
    logged: str = ""
    """What it added to the progress log: the evidence for a step that only looks at the work of others."""
    review: bool = False
    """Acceptance means: on to review."""
    has_review_fields: bool = False
    """The plan's format has them: what an agent writes there is held to the table of transitions."""
    review_cap: int = 5
    on_cap: OnCap = OnCap.APPROVE
    on_stalemate: OnCap = OnCap.HUMAN
    open_after: int = 0
    """How many other stories are not done."""
    promises_all: bool = False
    """The promise tag speaks of the whole plan, not of one story."""
    claim_is_implied: bool = False
    """A good ending with a change counts as a claim (seed 000: the loop marks)."""
    interrupted: bool = False

    @property
    def is_tampered(self) -> bool:
        """Tests or checks were weakened, so that what they say proves nothing."""
        return self.tamper is not Tamper.OFF and any(doubt.is_grave for doubt in self.suspicions)
