"""What Ralph itself observed in one iteration. `judge` reads this and nothing else."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from ralph.core.agent import Outcome
from ralph.core.changes import AddStory, Delta
from ralph.core.plan import Mode, Story
from ralph.core.proof import Grade, Proof, Suspicion, Tamper, Tests
from ralph.core.review import Answer, Reply
from ralph.core.rules import UNRECORDED, VerdictRules


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
    """The last lines of stderr, or why it did not start."""
    ran: float = 0
    """Seconds without the grace period before a kill; 0 in older journals."""

    @property
    def well(self) -> bool:
        """True also if no agent was needed, as in a set-up that runs only commands."""
        return self.code == 0 and self.how in (How.EXITED, How.LINGERED, How.NOT_RUN)


class Claim(StrEnum):
    DONE = "done"
    ALREADY = "already-satisfied"


class CheckResult(Struct, frozen=True):
    """One command that Ralph ran itself: evidence."""

    name: str
    command: str
    passed: bool
    code: int | None = None
    seconds: float = 0
    timed_out: bool = False
    tail: str = ""
    digest: str = ""
    required: bool = True
    """False: allowed to fail; reported, but never a reason to reject."""
    failed_before: bool = False
    """It already failed on the checkpoint: not caused by this agent."""
    proves: str = ""
    """The finished story this check belongs to: if it fails, that story is broken again."""
    output: str = ""
    """The file with its complete output, if it failed."""
    tests: Tests | None = None
    """The tests it ran, without their names; None: not from a known runner, or unknown."""
    failed: tuple[str, ...] = ()
    """The first tests that failed, where the runner names them."""
    hint: str = ""
    """Why it may have failed, other than by what it checks."""


class Evidence(Struct, frozen=True, kw_only=True):
    mode: Mode
    story: Story | None
    ended: Ended
    outcome: Outcome
    rules: VerdictRules = UNRECORDED
    changed: tuple[str, ...] = ()
    """Paths that differ from the checkpoint, without Ralph's own files."""
    continues: bool = False
    """Nothing was changed, and the story is claimed: the claim is about what earlier sessions of the story left."""
    repository_trouble: str = ""
    """The agent rewrote history or left its branch: none of that can be kept."""
    error: str = ""
    """An error stopped the examination or the commit: the reason why none of the work can be kept."""
    notices: tuple[str, ...] = ()
    """What was restored in the working tree."""
    objections: tuple[str, ...] = ()
    """Reasons against acceptance although the checks pass."""
    delta: Delta | None = Delta()
    """The agent's changes to the plan. None: it left a plan that cannot be parsed."""
    plan_problem: str = ""
    claim: Claim | None = None
    question: str = ""
    waiting: str = ""
    """The text of a WAITING file: a question that stops the whole run."""
    checks: tuple[CheckResult, ...] = ()
    check_set: str = ""
    """The identity of the check set."""
    unchecked: bool = False
    """Files changed, and there is no check that could have run on them."""
    proof: Proof | None = None
    """What the passing checks are worth. None: not examined."""
    acceptance: tuple[str, ...] = ()
    """The acceptance or exam tests that a session wrote and that fail now: their names, or their files."""
    exam: tuple[AddStory, ...] = ()
    """The new stories for the failing tests of an exam."""
    exam_passed: int = 0
    """New tests of an exam that pass."""
    suspicions: tuple[Suspicion, ...] = ()
    """In older journals: weakened tests, edited checks."""
    passed_before: bool | None = None
    """Whether the checks passed on the checkpoint. None: not checked."""
    answer: Answer | None = None
    """A reviewer's verdict from the request file."""
    reviewer: str = ""
    """The reviewer, if there are several."""
    replies: tuple[Reply, ...] = ()
    """A fix's answer to each finding."""
    learned: tuple[str, ...] = ()
    """Learnings for later sessions. They have no effect on the verdict."""
    logged: str = ""
    """Its addition to the progress log: the evidence for a step that only inspects other work."""
    has_review_fields: bool = False
    """The plan format has review fields: an agent's edits to them must follow the table of transitions."""
    open_after: int = 0
    """The number of other stories that are not done."""
    interrupted: bool = False

    @property
    def minimum(self) -> Grade:
        """The least proof with which the story is done."""
        return self.rules.minimum if self.story is not None else Grade.UNPROVEN

    @property
    def may_review(self) -> bool:
        """A review can be started for work that nothing else proves."""
        return self.rules.may_review and self.story is not None and self.mode is not Mode.SETUP

    @property
    def to_review(self) -> bool:
        """Acceptance sends the story to review."""
        return self.rules.review and self.mode is not Mode.SETUP

    @property
    def is_tampered(self) -> bool:
        """The checks pass only with changed tests, so their results prove nothing yet."""
        if self.rules.tamper is Tamper.OFF:
            return False
        grave = any(doubt.is_grave for doubt in self.suspicions)
        return grave or (self.proof is not None and self.proof.needs_approval)

    @property
    def grade(self) -> Grade:
        """How well the story is proven by this evidence alone, without a review."""
        own = self.story.verify if self.story else ()
        if not self.changed and self.claim is Claim.ALREADY:
            is_own = any(check.passed and check.command in own for check in self.checks)
            return Grade.PROVEN if is_own else Grade.UNPROVEN
        witnesses = self.proof.witnesses if self.proof else ()
        if any(witness.is_own for witness in witnesses):
            return Grade.PROVEN
        return Grade.WITNESSED if witnesses else Grade.UNPROVEN
