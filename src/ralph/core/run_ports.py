"""The interfaces between the engine and the rest of a run, and the values that pass through them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

from msgspec import Struct

from ralph.core.agent import Outcome
from ralph.core.changes import AddStory
from ralph.core.events import AnyEvent, Noted
from ralph.core.evidence import CheckResult, Ended
from ralph.core.moves import SetAside, Stop, Work
from ralph.core.plan import Mode, Plan, Story
from ralph.core.ports import Command, Reading, Session
from ralph.core.proof import Proof
from ralph.core.requests import Request
from ralph.core.rules import Patience
from ralph.core.work_tree import Inspection, Shared

Ask = Callable[[str, float, Callable[[], bool]], str]
"""Asks at the terminal whether to wait: reason, end time, a test that cancels the question. Empty: no answer."""


MOST_ACCEPTANCE_SESSIONS = 2
"""Sessions that may try to write acceptance tests for a story; then it continues without them."""


class Attempt(Struct, frozen=True, kw_only=True):
    """One iteration in progress."""

    number: int
    work: Work
    story: Story | None
    attempt: int
    free: int = 0
    reading: Reading
    """The plan before the iteration, to which the verdict's changes are applied."""
    shown: Reading | None = None
    """The plan as shown to the agent, with its story in progress; None: same as `reading`."""
    plan_after: bytes = b""
    """The plan's text after the session, if it was judged as the agent's."""
    checkpoint: dict[str, Any]
    shared: Shared | None = None
    """With this checkpoint, once the session has ended."""
    begun: float
    reviewer: str = ""
    """The reviewer's name, where there are several."""
    most: int = 0
    """The current cap on iterations; 0: no limit, or unknown."""
    parents: tuple[str, ...] = ()
    """Further parents of its commit, for a merge commit."""

    @property
    def mode(self) -> Mode:
        return self.work.mode


class Written(Struct, frozen=True, kw_only=True):
    """What a session that was to write acceptance tests or an exam has left."""

    inspection: Inspection
    tests: tuple[str, ...] = ()
    """Those that fail now: names, or files where the runner reports no names."""
    stories: tuple[AddStory, ...] = ()
    """Of an exam: the stories for the tests that fail, and below the number of tests that pass."""
    passed: int = 0
    objections: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()


class PageBack(Struct, frozen=True):
    """The result of restoring the rules or the log that an agent changed."""

    told: str = ""
    left: str = ""
    """Why it could not be restored."""
    logged: str = ""
    """What the agent added to the progress log."""
    wrote: bool = False
    """Whether a file was written for that."""

    def __add__(self, other: PageBack) -> PageBack:
        told = "; ".join(filter(None, (self.told, other.told)))
        return PageBack(told, self.left or other.left, self.logged + other.logged, self.wrote or other.wrote)


class Inbox(Protocol):
    """What people left for the run: answers, retries, decisions about findings, new stories, changed settings."""

    def take(self, busy: Collection[str] = ()) -> Iterator[str | AnyEvent | SetAside]:
        """Apply it. Yields what to record: messages, events, and stories that the loop is to set aside.

        `busy`: stories that are being worked on. What would change one of them waits.
        """
        ...


class AgentSessions(Protocol):
    """Runs agents, within the budgets."""

    def news(self, plan: Plan) -> Iterable[AnyEvent]:
        """What a decision needs besides the plan and the run's own history."""
        ...

    def session(self, attempt: Attempt, step: dict[str, Any], feedback: str) -> Session:
        """The session of one agent process, with its prompt. `step`: the configuration of the step."""
        ...

    def run(self, session: Session, step: str, patience: Patience) -> tuple[Ended, Outcome]: ...


class Tracker(Protocol):
    """An external tracker of stories, such as beads."""

    def settle(self, story: Story) -> Noted | None:
        """Update a story to match the plan."""
        ...

    def agreement(self, plan: Plan) -> tuple[CheckResult, ...]:
        """Whether the tracker agrees with the finished plan, as checks of the final pass."""
        ...


class Watchers(Protocol):
    """Files that agents must not change: protected files, the rules of the run, its log."""

    @property
    def is_protected(self) -> Callable[[str], bool] | None:
        """By the path in the repository. None: nothing is protected."""
        ...

    def put_back(self, number: int, story: Story | None) -> PageBack:
        """Restore the rules and the log to their state before the iteration."""
        ...

    def is_rule(self, path: str) -> bool:
        """By the path in the repository."""
        ...

    def accept(self, paths: Iterable[str]) -> None:
        """A person changed these files."""
        ...

    def changed(self) -> tuple[str, ...]:
        """Names of the rules that differ from those before the iteration."""
        ...


class RequestFile(Protocol):
    """Where the agent leaves requests and sentinels."""

    @property
    def asks_by_file(self) -> bool:
        """Every question is kept in the file WAITING."""
        ...

    def clear(self) -> None: ...

    def take(self) -> Request:
        """Read the agent's request and remove it."""
        ...

    def waiting(self) -> str:
        """The text of the WAITING file, or an empty string."""
        ...

    def keep_waiting(self, text: str) -> None: ...

    def says_complete(self) -> bool:
        """Whether the file COMPLETE exists, written by anyone."""
        ...


class Checks(Protocol):
    @property
    def check_set(self) -> str:
        """The identity of the checks that ran last."""
        ...

    def __call__(
        self, plan: Plan, story: Story | None, when: str, iteration: int, tree: str
    ) -> tuple[CheckResult, ...]:
        """Run the checks that apply, one journal record each."""
        ...

    @property
    def run_command(self) -> Command: ...

    def baseline(self, plan: Plan, find_tree: Callable[[], str], story: Story | None) -> Stop | None:
        """Find out which checks pass before any work. A reason not to start the agent for `story`, or None."""
        ...

    def forget_tests(self) -> None:
        """The next story starts from another commit: count the tests that run there again."""
        ...


class Prover(Protocol):
    """Says what is proven about a story, besides its checks."""

    def candidate(self, attempt: Attempt, inspection: Inspection) -> str:
        """The tree that would be committed."""
        ...

    def prove(self, attempt: Attempt, candidate: str, *, is_claimed: bool) -> Proof | None:
        """What the passing checks are worth. None: there is nothing to examine. Only a claim needs a witness."""
        ...

    def kept(self, stories: Iterable[str]) -> Mapping[str, object]:
        """By story: what sessions have left of stories that are not done, for a worker that works on these."""
        ...

    def take_kept(self, kept: Mapping[str, Any]) -> None:
        """In a worker: what the driver has sent."""
        ...

    def has_kept(self, story: str) -> bool:
        """Whether work of earlier sessions of this story, which is not done, is in the tree."""
        ...

    def final(self, plan: Plan) -> str:
        """The tree for the last pass of a run: what is committed, or what is there if nothing is."""
        ...

    def known(self, story: str) -> Proof | None:
        """The proof of the work that waits for a review."""
        ...

    def in_doubt(self, plan: Plan, story: str) -> dict[str, str]:
        """Stories that only a review shows to be done, with a file of theirs that this story changed unapproved."""
        ...


class AcceptanceTests(Protocol):
    """Tests for a story, written by another session before the story is implemented."""

    is_hidden: bool

    def needed(self, plan: Plan) -> Callable[[Story], bool]:
        """Says of a story whether its tests are still to be written."""
        ...

    def sessions(self, story: Story) -> int:
        """How many sessions have failed to write them."""
        ...

    def take(self, attempt: Attempt, name: str) -> Written:
        """Collect and examine the new test files of a session. Everything else it changed is undone."""
        ...

    def draft_of(self, story: str) -> bytes:
        """The tests that a session has just written, for the driver of a run with several workers."""
        ...

    def receive(self, story: Story, draft: bytes) -> None:
        """What a session in a worker has written; empty: nothing that could be examined."""
        ...

    def reread(self) -> None:
        """In a worker: the driver has sent other records."""
        ...

    def join(self, story: str) -> bool:
        """Write the hidden tests of a finished story into the workspace. False: there are none."""
        ...

    def discard(self, attempt: Attempt) -> None:
        """Remove hidden tests that a killed session has begun to write."""
        ...

    def withdraw(self) -> None:
        """Remove hidden tests from the workspace: what is rolled back is saved where agents can read it."""
        ...


class ExamTests(Protocol):
    """End-to-end tests by another session, when every story is done."""

    def is_due(self, plan: Plan) -> bool: ...

    def rounds(self, plan: Plan) -> int:
        """How many rounds there have been with these stories."""
        ...

    def take(self, attempt: Attempt, name: str) -> Written:
        """Collect the new test files of a session and run them. Everything else it changed is undone."""
        ...
