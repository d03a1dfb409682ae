"""The interfaces of all variants. The engine and the variants meet only here."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from ralph.core.agent import AgentEvent, Outcome
from ralph.core.changes import Change
from ralph.core.evidence import CheckResult, Ended
from ralph.core.plan import Mode, Plan, State, Story


class PlanRef(Struct, frozen=True):
    """The location of a plan in a workspace. Nothing has been read yet."""

    layout: str
    root: Path
    """The workspace: the folder that holds `.ralph/` or `ralph/`."""
    folder: Path
    """The folder of this plan's files, e.g. `.ralph/PRD-1`."""
    path: Path
    """The plan file itself."""
    name: str
    """The name users give it: the feature's folder name, or the PRD number."""


class Locations(Struct, frozen=True):
    """The paths a layout uses. None: the layout has no such file."""

    plan: Path
    archive: Path
    requirements: Path | None = None
    progress: Path | None = None
    prompt: Path | None = None
    learnings: Path | None = None
    readme: Path | None = None
    specs: Path | None = None
    other_prompts: tuple[Path, ...] = ()
    """Other places to look for a prompt."""


class Naming(StrEnum):
    """How the plans of a layout are told apart."""

    NAMED = "named"
    """Each has a name of the user's choice."""
    NUMBERED = "numbered"
    """Each has a number: `PRD-1`."""
    SINGLE = "single"
    """A workspace has one plan, in a fixed place."""


class Templates(Struct, frozen=True):
    """Names of built-in templates."""

    prompt: str = ""
    """Empty: one that suits every layout, and `ralph init` writes none."""
    tdd: str = ""
    """The prompt for `ralph init --tdd`, if it differs."""
    requirements: str = "prd"


class Traits(Struct, frozen=True, kw_only=True):
    """How a layout differs from the others, apart from its format. Code outside `plans` asks for these, not for names.

    The defaults are those of a third-party layout.
    """

    naming: Naming = Naming.NAMED
    any_folder: bool = False
    """The plan can be in any folder of the workspace (`--ralph-dir`)."""
    folder_is_name: bool = False
    """The plan file repeats the name of its folder."""
    claims: bool = True
    """Agents report that they are done. False: a clean exit with changes is the claim."""
    promises_all: bool = False
    """Agents are told to make the promise only when every story is done."""
    needs_criteria: bool = False
    """Every story needs acceptance criteria."""
    keeps_checks: bool = False
    """The plan file can hold the commands that prove the project."""
    has_phases: bool = False
    """Stories can be grouped under headings."""
    has_tracker: bool = False
    """Stories can be tracked as beads."""
    has_pipeline: bool = False
    """The layout `steps`: a plan has a pipeline of steps, a setup session, and the repository in its own folder."""
    waits_by_file: bool = False
    """The layout `spec.md`: `.ralph/WAITING` asks a question and `.ralph/COMPLETE` marks the end."""
    archives_done: bool = False
    """Finished stories leave the plan when work is added."""
    templates: Templates = Templates()
    reviews_with_prompt: bool = False
    """The same prompt serves reviews and fixes."""
    story_in_system: bool = False
    """The story goes into the client's system prompt."""
    attaches_files: bool = False
    """Prompts include the plan's files by `@path`."""
    reads: tuple[str, ...] = ()
    """The files agents are told to read, as names of `Locations`."""
    budgets: dict[str, int] = {}
    """Most tokens of `prompt` and of these files."""
    ignored: tuple[str, ...] = ()
    """Files of a run that do not belong in git, as lines of a `.gitignore`."""
    leftovers: tuple[str, ...] = ()
    """More files in the plan's folder that belong to an archived plan."""


class ProjectFacts(Struct, frozen=True):
    """The inputs of `ralph init` for a first plan."""

    name: str
    date: str
    """ISO 8601."""
    branch: str = ""
    verify: tuple[str, ...] = ()


class Layout(Protocol):
    """One format for plans. Each is a module."""

    @property
    def NAME(self) -> str: ...

    @property
    def TITLE(self) -> str:
        """One line for `--help` and `ralph init`."""
        ...

    @property
    def SPEAKS(self) -> frozenset[str]:
        """Names of the `Story` fields the format can hold. The rest is kept in the state folder."""
        ...

    @property
    def STATES(self) -> frozenset[State]:
        """The states the format can distinguish."""
        ...

    # TRAITS: Traits = Traits() is optional, so that a layout of an earlier release stays valid.

    def detect(self, root: Path) -> list[PlanRef]:
        """The plans of this layout in a workspace. Checks names only: reads nothing, follows no link."""
        ...

    def refer(self, root: Path, name: str) -> PlanRef:
        """The plan called `name`, whether it exists or not. Raises UsageError for an invalid name."""
        ...

    def parse(self, source: bytes, file: str) -> Plan:
        """Strict. Raises PlanError with every problem found. `file` is used in messages only."""
        ...

    def edit(self, source: bytes, changes: Sequence[Change]) -> bytes:
        """The same bytes with only these changes. Pure; `parse` must have accepted `source`."""
        ...

    def locations(self, ref: PlanRef) -> Locations: ...

    def scaffold(self, ref: PlanRef, facts: ProjectFacts) -> dict[str, str]:
        """Files of a new plan: path relative to the workspace → text."""
        ...


class HookFiles(Struct, frozen=True):
    """What connects one client process to Ralph's hooks. All of it is outside the workspace."""

    settings: Path
    """The client's settings, including the hooks."""
    env: dict[str, str]
    records: Path
    """Where hooks record their answers; also the canary."""
    state: Path
    """A folder for the state of one session."""
    command: str = ""
    """The hook program, as words of a shell command. An adapter appends the event, and the client's dialect."""
    or_deny: str = ""
    """Appended to the command for an event before a tool call: one that cannot start denies the call."""

    def call(self, event: str, dialect: str = "") -> str:
        """The shell command that a client runs for an event, which has Ralph's name for it."""
        words = " ".join(filter(None, (self.command, event, dialect)))
        return words + self.or_deny if event == "PreToolUse" else words


class Task(Struct, frozen=True, kw_only=True):
    """What a session is for."""

    story: str = ""
    title: str = ""
    mode: Mode = Mode.IMPLEMENT
    iteration: int = 1
    attempt: int = 1
    reviewer: str = ""
    """The reviewer's name, if there are several."""
    free: int = 0
    """Sessions of this story that cost no attempt, such as a usage limit or a broken connection."""
    verdict_only: bool = False
    """The follow-up session of a review that gave no verdict."""


class Rights(Struct, frozen=True, kw_only=True):
    """What the client permits its model to do."""

    permissions: str = "client"
    """What permits its tool calls: `guard` (Ralph's hook), `skip` (nothing is asked), `client` (the client's own
    rules).
    """
    allowed_tools: str = ""
    disallowed_tools: str = ""
    tools: str = ""
    """The only available tools, for clients that can disable the others; empty: all tools."""
    folders: tuple[str, ...] = ()
    """Folders outside the workspace that it may write to."""
    is_root: bool = False
    """Ralph runs as root."""


class Session(Struct, frozen=True, kw_only=True):
    """Everything an adapter needs to build the command line of one agent process."""

    prompt: str
    """Always sent through stdin."""
    system: str = ""
    """Appended to the client's system prompt, if it supports that."""
    cwd: Path
    task: Task = Task()
    rights: Rights = Rights()
    agent: str = ""
    """The agent's name; empty: the agent of the run."""
    model: str = ""
    fallback_model: str = ""
    budget_usd: float = 0
    keep: bool = False
    """The client may keep a transcript of the session."""
    schema: str = ""
    """JSON Schema of the answer, for clients that can enforce one."""
    command: tuple[str, ...] = ()
    """For the `command` agent; for the others, the path of the binary."""
    script: Path | None = None
    """For the `scripted` agent."""
    plan: Path | None = None
    request: Path | None = None
    """The request file, where the agent may leave a claim or a question."""
    hooks: HookFiles | None = None
    """For clients that have hooks."""
    checkout: Path | None = None
    """The user's, if the agent finds its clone at that path, too: a client that keeps to its folder must know both."""
    folder: Path = Path("/nonexistent")
    """A private folder of this process, outside the workspace: what `Launch.files` and `Launch.links` are relative to.
    Nowhere if no process is started."""


class Login(Struct, frozen=True):
    """A file in the home folder that a client needs to log in. In a sandbox it works with a copy."""

    path: str
    """Relative to the home folder."""
    keys: tuple[str, ...] = ()
    """Only these keys of a JSON file are copied; empty: all of the file."""
    comes_back: bool = False
    """The client may renew it: a changed copy replaces the original, if that is as it was."""
    variable: str = ""
    """Names another folder than the usual one in the home folder, which is the first part of the path."""

    def original(self, home: Path, env: Mapping[str, str]) -> Path:
        own = env.get(self.variable, "") if self.variable else ""
        return Path(own, self.path.partition("/")[2] or self.path) if own else home / self.path


class Launch(Struct, frozen=True):
    argv: tuple[str, ...]
    stdin: bytes = b""
    env: dict[str, str] = {}
    """Added to the child's environment."""
    files: dict[str, str] = {}
    """Written into the session's folder first: path → text. Read-only for the process where a sandbox is in use."""
    links: dict[str, str] = {}
    """Path in the session's folder → the user's file or folder, such as a login that the client renews. A missing one
    is left out."""


class ClientEnd(Struct, frozen=True, kw_only=True):
    """How a process ended, for a reader whose client says more by it than by its output."""

    code: int | None = None
    """None: a signal ended it, or Ralph did."""
    stderr: str = ""
    """The end of it."""
    folder: Path = Path("/nonexistent")
    """`Session.folder`, where the client may have left files."""


Reader = Callable[[bytes], Iterable[AgentEvent]]
"""Reads one line of a client's output. Never raises: an unreadable line gives no event.

A reader may have a method `skim(block)`: of many lines at once, joined by newlines, those that can be events. It is
what makes a client that prints gigabytes cheap to read. A method `is_torn(line)` tells whether a last line without a
newline breaks off in the middle of an event. A method `error(line)` reads a line of stderr into events, and a method
`finish(end)`, given a `ClientEnd`, gives the last events when the process has ended.
"""


def events_in(read: Reader, block: bytes, on_error: Callable[[Exception], object]) -> Iterator[AgentEvent]:
    """The events of a block of lines. A line on which a third-party reader raises gives none."""
    own: Callable[[bytes], Iterable[bytes]] | None = getattr(read, "skim", None)
    try:
        lines = own(block) if own else [line.removesuffix(b"\r") for line in block.split(b"\n")]
    except Exception as error:  # noqa: BLE001
        on_error(error)
        return
    for line in lines:
        yield from events_of(read, line, on_error)


def events_of(read: Reader, line: bytes, on_error: Callable[[Exception], object]) -> tuple[AgentEvent, ...]:
    try:
        return tuple(read(line))
    except Exception as error:  # noqa: BLE001 - it may fail in any way, and the session goes on
        on_error(error)
        return ()


class Agent(Protocol):
    """The command line of a coding agent. Each is a module.

    For a sandbox it may also have `hosts(env)`, the hosts that the client contacts, in the form of
    `sandbox.allow_hosts`, `LOGIN`, a tuple of `Login`, and `files(session)`, more files that it reads. `TRAITS`, an
    `AgentTraits`, tells what the client can do; `login(env, home)` gives its `LoginState`, where that is not a matter
    of variables and files; `rehearse(address)` gives the `Rehearsal` that points the client at a model there.
    """

    @property
    def NAME(self) -> str: ...

    @property
    def TITLE(self) -> str: ...

    @property
    def ENV(self) -> tuple[str, ...]:
        """Names of environment variables the client needs."""
        ...

    @property
    def HOOKS(self) -> bool:
        """The client supports hooks."""
        ...

    @property
    def REPORTS_CALLS(self) -> bool:
        """Its output shows every tool call while it runs."""
        ...

    def find(self, session: Session, path: str) -> str:
        """The program's path, searched on `path`. Raises SetupError with a fix if it is missing."""
        ...

    def launch(self, session: Session, program: str) -> Launch: ...

    def reader(self) -> Reader:
        """A new reader for one process."""
        ...


class Prompt(Struct, frozen=True):
    """The prompt of an agent. `system` is added through the client's own option for its system prompt."""

    text: str
    system: str = ""


class Command(Protocol):
    """Runs a shell command in the workspace, with limits, and reports it as evidence."""

    def __call__(self, name: str, command: str, *, timeout: float | None, cwd: str = "") -> CheckResult: ...


class StepContext(Struct, frozen=True):
    """What a step can see and use. The same for built-in and third-party steps."""

    root: Path
    """The workspace."""
    repo: Path
    """The git repository in it; usually the same folder."""
    story: Story | None
    mode: Mode
    iteration: int
    deadline: float | None
    """Seconds this step may take."""
    run_command: Command
    run_agent: Callable[[dict[str, Any], float | None], tuple[Ended, Outcome]]


class StepReport(Struct, frozen=True):
    """The result of a step. A report with `check` is evidence for `judge`."""

    ok: bool
    detail: str = ""
    check: CheckResult | None = None
    commit: bool = False
    """Ask the loop to commit the story when it is accepted."""
    may_retry: bool = True
    """False: an immediate retry would not help, e.g. after a usage limit."""


class Step(Protocol):
    """A type of step. Each is a module; third-party types use the entry point group `ralph.steps`."""

    @property
    def NAME(self) -> str: ...

    def execute(self, context: StepContext, config: dict[str, Any]) -> StepReport: ...


class Reading(Protocol):
    """A plan as read at one moment. It can be written back byte for byte."""

    @property
    def plan(self) -> Plan: ...

    @property
    def source(self) -> bytes: ...

    @property
    def digest(self) -> str: ...


R = TypeVar("R", bound=Reading)


class PlanBook(Protocol[R]):
    """The plan on disk, as the engine uses it."""

    last: bytes
    """The text that was written last; empty: none."""

    def load(self) -> R:
        """Raises PlanError."""
        ...

    def understood(self, before: R) -> tuple[R, str]:
        """The current plan or, if it cannot be read, the intended edit of `before` and the error. Raises PlanError."""
        ...

    def planned(self, reading: R, changes: Sequence[Change], why: dict[str, str]) -> R:
        """`reading` with these changes. Writes nothing. `why`: a sentence per failed or blocked story."""
        ...

    def in_progress(self, reading: R, story: str) -> R:
        """The same with the story marked as in progress, if the plan's format supports it. Writes nothing."""
        ...

    def misplaced(self, reading: R) -> str:
        """What has replaced the plan's folder since it was read; empty if it is unchanged."""
        ...

    def source(self) -> bytes | None:
        """The current text; None if there is none that can be read."""
        ...

    def rebuilt(self, reading: R, source: bytes) -> R:
        """`reading` with another text. Raises PlanError."""
        ...

    def write(self, reading: R, over: Collection[bytes] | None = None) -> None:
        """Write exactly this to disk, whatever is there now. With `over`, PlanEdited if it is none of these."""
        ...

    def dump(self, reading: R) -> bytes: ...

    def undump(self, data: bytes) -> R: ...
