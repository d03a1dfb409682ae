"""The events of the journal. Everything that is shown is computed from them.
A record that announces an effect is written before it, and one that confirms it after it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ralph.core.agent import AgentEvent, Limit, Outcome, Tokens
from ralph.core.control import Verb
from ralph.core.evidence import CheckResult, Ended, Evidence
from ralph.core.money import Charged as Charged
from ralph.core.money import Event as Event
from ralph.core.money import Foreseen as Foreseen
from ralph.core.money import Reserved as Reserved
from ralph.core.money import SpendingSeen as SpendingSeen
from ralph.core.moves import Move, Reason, Work
from ralph.core.plan import Mode, Order, State
from ralph.core.requests import Request
from ralph.core.review import Fate, ReviewStatus
from ralph.core.rules import Limits
from ralph.core.verdict import Kind, Verdict

SCHEMA = 1


class RunStarted(Event, frozen=True, kw_only=True):
    run: str
    workspace: str
    checkout: str = ""  # the user's folder, if the workspace is a clone of it
    layout: str
    plan: str
    name: str = ""
    pid: int
    start: str = ""
    host: str = ""
    version: str = ""
    agent: str = ""
    model: str = ""
    branch: str = ""
    total: int = 0
    done: int = 0
    max_iterations: int = 0
    review_cap: int = 0
    checks: tuple[str, ...] = ()
    may: str = ""  # what the agent may do and may not do, in one line
    limits: Limits = Limits()
    feedback: dict[str, str] = {}  # noqa: RUF012 - what attempts of earlier runs ran into, by story
    calls: tuple[float, ...] = ()  # when earlier runs started agents, within the last hour
    used: tuple[tuple[float, int], ...] = ()  # how many tokens they used when, within the last hour
    heard: tuple[Limit, ...] = ()  # the last reported state of usage windows that have not reset since
    authors: dict[str, str] = {}  # noqa: RUF012 - by story: the choice that did the work of earlier runs, if not the first
    traceparent: str = ""  # of the caller's trace, if it has one
    tracestate: str = ""


class SeenStory(Struct, frozen=True):  # what `decide` and the views need
    id: str
    title: str
    state: State
    priority: float = 0
    depends_on: tuple[str, ...] = ()
    review: ReviewStatus | None = None
    attempts: int = 0
    reviews: int = 0
    approved_at: str = ""  # see `review.approved_at`
    grade: str = ""


class PlanSeen(Event, frozen=True, kw_only=True):
    """The plan before a decision: complete the first time, then only the differences."""

    whole: bool
    stories: tuple[SeenStory, ...] = ()
    removed: tuple[str, ...] = ()
    ids: tuple[str, ...] | None = None  # the order of the stories, when it changed
    order: Order = Order.PRIORITY


class Decided(Event, frozen=True):  # with the inputs besides the plan, the history and the limits
    move: Move
    at: float
    needs_setup: bool = False
    review: bool = False
    needs_acceptance: bool = False  # the story had no acceptance tests yet
    needs_exam: bool = False  # every story is done, and a round of the exam is due


class Running(Struct, frozen=True):
    """An iteration of a worker that has not ended, or waits in the merge queue."""

    iteration: int
    story: str
    mode: Mode
    has_started: bool = False  # an agent of it has started
    is_queued: bool = False  # its work is accepted, and it is to be merged


class Held(Struct, frozen=True):
    """A story that is ready and not started, and why."""

    story: str
    why: str


class Scheduled(Event, frozen=True, kw_only=True):
    """What a run with several workers does next, with the inputs besides the plan, the history and the limits."""

    start: tuple[Work, ...] = ()
    move: Move | None = None  # what `decide` said when it named no further story to start
    held: tuple[Held, ...] = ()
    at: float = 0
    running: tuple[Running, ...] = ()
    free: int = 0
    areas: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - by story: what it will probably change, if it mattered
    returns: int = 0  # `queue.returns`
    needs_setup: bool = False
    review: bool = False
    needs_acceptance: tuple[str, ...] = ()  # stories that have no acceptance tests yet
    needs_exam: bool = False


class WorkerStarted(Event, frozen=True, kw_only=True):
    worker: int
    pid: int = 0
    start: str = ""
    where: str = ""  # the machine, if it is not this one
    folder: str = ""  # its clone
    seconds: float = 0


class WorkerLost(Event, frozen=True, kw_only=True):
    """A worker ended without being asked to. Its story is started again."""

    worker: int
    iteration: int = 0  # that it was working on
    why: str = ""


class Queued(Event, frozen=True, kw_only=True):
    """A candidate that its worker accepted waits to be merged."""

    iteration: int
    story: str
    commit: str
    base: str


class QueueProving(Event, frozen=True, kw_only=True):
    """Candidates, in order, merged onto a commit, are being proved together."""

    iterations: tuple[int, ...]
    onto: str  # the tip, or the merged commit of the entry before
    merged: str
    worker: int = 0


class QueueProved(Event, frozen=True, kw_only=True):
    iterations: tuple[int, ...]
    merged: str
    passed: bool
    why: str = ""
    seconds: float = 0


class Landing(Event, frozen=True, kw_only=True):
    """The merged and proven work of an iteration is about to be put in the run's own tree, where it is settled."""

    iteration: int
    checkpoint: dict[str, Any] = {}  # noqa: RUF012 - of that tree
    plan_digest: str = ""
    onto: str = ""
    commit: str = ""


class IterationStarted(Event, frozen=True, kw_only=True):
    """An iteration is about to start: the state it can be rolled back to."""

    iteration: int
    story: str
    title: str
    mode: Mode
    attempt: int
    checkpoint: dict[str, Any] = {}  # noqa: RUF012 - msgspec copies it
    plan_digest: str = ""
    choice: str = ""  # the model or agent that does it instead of the first choice
    most: int = 0  # the cap on iterations as it is now
    worker: int = 0  # the worker that does it; 0: the run itself
    base: str = ""  # the commit a worker starts from


class AgentStarted(Event, frozen=True, kw_only=True):
    iteration: int
    step: str
    pid: int
    start: str
    agent: str = ""  # whose adapter reads the raw log; empty in old journals: the run's
    argv: tuple[str, ...] = ()
    prompt: int = 0  # its length in characters; the text itself is in no record


class AgentSaid(Event, frozen=True):
    iteration: int
    event: AgentEvent


class AgentEnded(Event, frozen=True, kw_only=True):
    iteration: int
    step: str
    ended: Ended
    outcome: Outcome
    swept: int = 0
    raw: str = ""


class HookAnswered(Event, frozen=True, kw_only=True):
    """What a hook reported to the agent during the session. `output`: of tests that roll the iteration back at once."""

    iteration: int
    hook: str
    tool: str = ""
    subject: str = ""
    answer: str = ""
    category: str = ""
    reason: str = ""
    error: str = ""
    output: str = ""


class StepEnded(Event, frozen=True, kw_only=True):
    iteration: int
    step: str
    kind: str
    ok: bool
    seconds: float = 0
    tries: int = 1
    skipped: str = ""
    detail: str = ""


class SessionTaken(Event, frozen=True, kw_only=True):
    """What the sessions of an iteration left, before the checks run."""

    iteration: int
    ended: Ended
    outcome: Outcome
    request: Request
    checks: tuple[CheckResult, ...] = ()  # that have run as steps
    commit: bool = False
    tree: str = ""
    commits: tuple[str, ...] = ()


class CheckStarted(Event, frozen=True, kw_only=True):  # for views only
    iteration: int = 0
    name: str
    when: str  # baseline, checkout, story, proof or final


class CheckEnded(Event, frozen=True, kw_only=True):
    """A proof if it passed: this check, on this tree, as part of this set."""

    iteration: int
    tree: str
    check_set: str
    result: CheckResult


class Baseline(Event, frozen=True, kw_only=True):
    """Which checks pass before any work."""

    tree: str
    check_set: str
    results: tuple[CheckResult, ...] = ()


class Judged(Event, frozen=True):
    iteration: int
    evidence: Evidence
    verdict: Verdict


class Settling(Event, frozen=True, kw_only=True):
    """About to keep or roll back the work of an iteration."""

    iteration: int
    keep: bool
    message: str = ""
    tree: str = ""
    commit: bool = False
    plan_digest: str = ""  # hash of the plan as it will be; its bytes are in the state folder
    proof: dict[str, tuple[str, ...]] = {}  # noqa: RUF012 - the trailers of the commit that tell of the checks


class RescueSaved(Event, frozen=True):
    iteration: int
    ref: str
    commit: str


class RolledBack(Event, frozen=True, kw_only=True):
    iteration: int
    removed: int = 0
    rewritten: int = 0


class Committed(Event, frozen=True, kw_only=True):
    iteration: int
    commit: str
    message: str = ""
    by_agent: bool = False
    files: tuple[str, ...] = ()


class IterationEnded(Event, frozen=True, kw_only=True):
    """Makes an iteration final."""

    iteration: int
    story: str
    title: str = ""
    mode: Mode
    kind: Kind
    headline: str = ""
    reasons: tuple[str, ...] = ()  # besides the headline
    notices: tuple[str, ...] = ()
    fingerprint: str = ""
    story_state: State | None = None
    why: str = ""
    attempts: int = 0
    question: str = ""
    resets_at: float | None = None
    proven: bool = False
    completes: bool = False
    grade: str = ""
    feedback: str = ""
    seconds: float = 0
    tokens: Tokens = Tokens()
    cost_usd: float | None = None
    agent: str = ""
    model: str = ""
    files: tuple[str, ...] = ()
    commit: str = ""
    rescue: str = ""
    undone: tuple[str, ...] = ()
    """What a rollback restored besides the files of the tree, and what it could not restore."""
    ask: str = ""
    """What the user has to look at: work that may be somebody else's was in the way of a rollback. The run stops."""
    learned: tuple[str, ...] = ()


class WaitStarted(Event, frozen=True):
    until: float
    why: str


class WaitEnded(Event, frozen=True): ...


class Asked(Event, frozen=True):
    """A user's request to the running run."""

    verb: Verb
    by: str = ""  # the command, or the key


class Paused(Event, frozen=True):
    """The loop is paused between iterations until the user resumes it."""


class Resumed(Event, frozen=True):
    seconds: float = 0  # that the loop was paused


class Guided(Event, frozen=True):
    """A user's note was added to the prompt of this iteration."""

    iteration: int
    text: str
    story: str = ""


class LimitAnswered(Event, frozen=True):
    """The answer to whether to wait for a usage limit: `wait`, `exit`, or `nobody` if there was none."""

    answer: str


class StorySetAside(Event, frozen=True):
    """The story's breaker has tripped: the story failed, and the run continues with the others."""

    story: str
    title: str
    why: str
    by_user: bool = False  # the user skipped it: it is no failure, and the run does not retry it


class FindingDecided(Event, frozen=True):
    """The user rejected a finding of a review, or confirmed it: then it is open."""

    story: str
    finding: str
    fate: Fate
    reason: str = ""
    text: str = ""  # of the finding


class StoriesRetried(Event, frozen=True):
    stories: tuple[str, ...]  # which this run gave up; nothing else is left to do


class Proved(Event, frozen=True, kw_only=True):
    """The final step of a run: every check on the final tree."""

    tree: str
    passed: bool
    results: tuple[CheckResult, ...] = ()


class Recovered(Event, frozen=True):
    """What an earlier, killed run left unfinished, and how it was recovered."""

    run: str
    iteration: int
    what: str


class HostRefused(Event, frozen=True):
    """The sandbox's proxy let nobody through to this host. Written when a session has ended."""

    iteration: int
    host: str
    port: int
    why: str
    count: int = 1


class Noted(Event, frozen=True):
    text: str
    warning: bool = False


OUTSIDE_NOTE = "checks run outside the sandbox"
"""How the note begins that says so."""
CLOSED_LATER = "killed; closed by the next run"
"""The detail of a killed run's end."""


class RunEnded(Event, frozen=True):
    reason: Reason
    detail: str = ""
    uncommitted: tuple[str, ...] = ()


AnyEvent = (
    RunStarted
    | PlanSeen
    | Decided
    | Scheduled
    | WorkerStarted
    | WorkerLost
    | Queued
    | QueueProving
    | QueueProved
    | Landing
    | IterationStarted
    | AgentStarted
    | AgentSaid
    | AgentEnded
    | Reserved
    | Charged
    | SpendingSeen
    | Foreseen
    | HookAnswered
    | StepEnded
    | SessionTaken
    | CheckStarted
    | CheckEnded
    | Baseline
    | Judged
    | Settling
    | RescueSaved
    | RolledBack
    | Committed
    | IterationEnded
    | WaitStarted
    | WaitEnded
    | LimitAnswered
    | StorySetAside
    | StoriesRetried
    | FindingDecided
    | Asked
    | Paused
    | Resumed
    | Guided
    | Proved
    | Recovered
    | HostRefused
    | Noted
    | RunEnded
)


class Record(Struct, frozen=True):
    """One line of the journal."""

    seq: int
    t: float
    event: AnyEvent
    v: int = SCHEMA
