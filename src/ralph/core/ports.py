"""What the variants look like from outside. Engine and variants meet here and nowhere else."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from ralph.core.agent import AgentEvent, Outcome
from ralph.core.changes import Change
from ralph.core.evidence import CheckResult, Ended
from ralph.core.plan import Mode, Plan, State, Story


class PlanRef(Struct, frozen=True):
    """A plan found in a workspace. Nothing has been read yet."""

    layout: str
    root: Path
    """The workspace: the folder that holds `.ralph/` or `ralph/`."""
    folder: Path
    """The folder of this plan's own files, e.g. `.ralph/PRD-1`."""
    path: Path
    """The plan file itself."""
    name: str
    """What a person calls it: the feature's folder name, or the PRD number."""


class Locations(Struct, frozen=True):
    """Where a layout keeps things. None: the layout has no such file."""

    plan: Path
    archive: Path
    requirements: Path | None = None
    progress: Path | None = None
    prompt: Path | None = None
    learnings: Path | None = None
    readme: Path | None = None
    specs: Path | None = None
    other_prompts: tuple[Path, ...] = ()
    """Where else a prompt is looked for."""


class ProjectFacts(Struct, frozen=True):
    """What `ralph init` knows when it writes a first plan."""

    name: str
    date: str
    """ISO 8601."""
    branch: str = ""
    verify: tuple[str, ...] = ()


class Layout(Protocol):
    """One way of writing a plan down. A module is one of these."""

    @property
    def NAME(self) -> str: ...

    @property
    def TITLE(self) -> str:
        """One line for `--help` and `ralph init`."""
        ...

    @property
    def SPEAKS(self) -> frozenset[str]:
        """Names of the `Story` fields the format can hold. What it cannot hold is kept beside it."""
        ...

    @property
    def STATES(self) -> frozenset[State]:
        """The states the format itself can tell apart."""
        ...

    def detect(self, root: Path) -> list[PlanRef]:
        """The plans of this layout in a workspace. Looks at names only, reads nothing, follows no link."""
        ...

    def refer(self, root: Path, name: str) -> PlanRef:
        """The plan called `name`, whether it exists or not. Raises UsageError for an impossible name."""
        ...

    def parse(self, source: bytes, file: str) -> Plan:
        """Strict. Raises PlanError with every problem found. `file` is only for messages."""
        ...

    def edit(self, source: bytes, changes: Sequence[Change]) -> bytes:
        """The same bytes with just these changes. Pure; `parse` has accepted `source` before."""
        ...

    def locations(self, ref: PlanRef) -> Locations: ...

    def scaffold(self, ref: PlanRef, facts: ProjectFacts) -> dict[str, str]:
        """Files of a fresh plan: path relative to the workspace → text."""
        ...


class HookFiles(Struct, frozen=True):
    """What ties one client process to Ralph's hooks. All of it is outside of the workspace."""

    settings: Path
    """The client's settings with the hooks in them."""
    env: dict[str, str]
    records: Path
    """Where hooks write what they answered; also the canary."""
    state: Path
    """A folder for what one session has to remember."""


class Session(Struct, frozen=True, kw_only=True):
    """One agent process to come: everything an adapter needs to build its command line."""

    prompt: str
    """Always travels by stdin."""
    system: str = ""
    """Appended to the client's system prompt, where it has one."""
    cwd: Path
    agent: str = ""
    """Which agent it is; empty: the run's own."""
    model: str = ""
    allowed_tools: str = ""
    disallowed_tools: str = ""
    fallback_model: str = ""
    budget_usd: float = 0
    keep: bool = False
    """The client may keep a transcript of the session."""
    permissions: str = "client"
    """Who permits its tool calls: `guard` (Ralph's hook), `skip` (nobody is asked), `client` (its own rules)."""
    folders: tuple[str, ...] = ()
    """Folders outside of the workspace that it may write to."""
    tools: str = ""
    """The only tools there are, for clients that can leave the others out; empty: all of them."""
    schema: str = ""
    """JSON Schema of the answer, for clients that can be held to one."""
    command: tuple[str, ...] = ()
    """For the `command` agent, and to name another binary for the others."""
    script: Path | None = None
    """For the `scripted` agent."""
    story: str = ""
    title: str = ""
    mode: Mode = Mode.IMPLEMENT
    iteration: int = 1
    attempt: int = 1
    reviewer: str = ""
    """Who reviews, where there are several."""
    free: int = 0
    """Sessions of this story that cost no attempt: a limit, a broken connection."""
    plan: Path | None = None
    request: Path | None = None
    """Where the agent may leave a request: a claim, a question."""
    is_root: bool = False
    """The loop runs as root."""
    verdict_only: bool = False
    """A second session of a review that gave no verdict."""
    hooks: HookFiles | None = None
    """For clients that have hooks."""


class Launch(Struct, frozen=True):
    argv: tuple[str, ...]
    stdin: bytes = b""
    env: dict[str, str] = {}
    """Added to the child's environment."""


Reader = Callable[[bytes], Iterable[AgentEvent]]
"""Reads one line of a client's output. Never raises: a line it cannot read gives no event."""


class Agent(Protocol):
    """A coding agent's command line. A module is one of these."""

    @property
    def NAME(self) -> str: ...

    @property
    def TITLE(self) -> str: ...

    @property
    def ENV(self) -> tuple[str, ...]:
        """Names of environment variables the client needs passed through."""
        ...

    @property
    def HOOKS(self) -> bool:
        """The client runs hooks that are given to it."""
        ...

    def find(self, session: Session, path: str) -> str:
        """The program's path, searched on `path`. Raises SetupError with the fix when it is missing."""
        ...

    def launch(self, session: Session, program: str) -> Launch: ...

    def reader(self) -> Reader:
        """A fresh reader for one process."""
        ...


class Prompt(Struct, frozen=True):
    """What an agent is told. `system` goes by the client's own way of adding to its system prompt."""

    text: str
    system: str = ""


class Command(Protocol):
    """Runs a line of shell in the workspace, bounded, and reports it as evidence."""

    def __call__(self, name: str, command: str, *, timeout: float | None, cwd: str = "") -> CheckResult: ...


class StepContext(Struct, frozen=True):
    """What a step can see and use. The same for built-in and third-party steps."""

    root: Path
    """The workspace."""
    repo: Path
    """The git repository in it; most often the same folder."""
    story: Story | None
    mode: Mode
    iteration: int
    deadline: float | None
    """Seconds this step may take."""
    run_command: Command
    run_agent: Callable[[dict[str, Any], float | None], tuple[Ended, Outcome]]


class StepReport(Struct, frozen=True):
    """What came of a step. A report with `check` is evidence that `judge` looks at."""

    ok: bool
    detail: str = ""
    check: CheckResult | None = None
    commit: bool = False
    """Ask the loop to commit the story when it is accepted."""
    may_retry: bool = True
    """False: another try at once could not go better, such as after a usage limit."""


class Step(Protocol):
    """A kind of step. A module is one of these; a third-party one enters by the entry point group `ralph.steps`."""

    @property
    def NAME(self) -> str: ...

    def execute(self, context: StepContext, config: dict[str, Any]) -> StepReport: ...


class Reading(Protocol):
    """A plan as it was read at one moment. It can be written back byte for byte."""

    @property
    def plan(self) -> Plan: ...

    @property
    def source(self) -> bytes: ...

    @property
    def digest(self) -> str: ...


R = TypeVar("R", bound=Reading)


class PlanBook(Protocol[R]):
    """The plan on disk, as the engine uses it."""

    def load(self) -> R:
        """Raises PlanError."""
        ...

    def understood(self, before: R) -> tuple[R, str]:
        """The plan now, or else what an edit of `before` meant, and why it cannot be read. Raises PlanError."""
        ...

    def planned(self, reading: R, changes: Sequence[Change], why: dict[str, str]) -> R:
        """What `reading` becomes with these changes. Writes nothing. `why`: a sentence per failed or blocked story."""
        ...

    def in_progress(self, reading: R, story: str) -> R:
        """The same with the story marked as being worked on, where the plan's format can say so. Writes nothing."""
        ...

    def misplaced(self, reading: R) -> str:
        """What stands in the place of the plan's folder since it was read; nothing when all is well."""
        ...

    def write(self, reading: R) -> None:
        """Make the disk say exactly this, whatever is there now."""
        ...

    def dump(self, reading: R) -> bytes: ...

    def undump(self, data: bytes) -> R: ...
