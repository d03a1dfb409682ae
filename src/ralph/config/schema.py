"""The settings: one declaration per option. Keys, flags, variables, JSON Schema and docs all come from here.

Without `from __future__ import annotations`, because msgspec would have to evaluate every annotation at each start.
"""

from typing import Annotated, Literal

from ralph.config.durations import Duration
from ralph.config.sections import (
    Agent,
    Archive,
    Branch,
    Budget,
    Check,
    CircuitBreaker,
    Completion,
    Context,
    Guard,
    KeepIgnored,
    Memory,
    Notify,
    Planning,
    Positive,
    Proof,
    Queue,
    Review,
    Routing,
    Sandbox,
    Section,
    Step,
    StepBreaker,
    Words,
    key,
)

__all__ = [
    "Agent",
    "Check",
    "Config",
    "Notify",
    "Planning",
    "Review",
    "Step",
    "StepBreaker",
    "all_checks",
    "minimum_grade",
]


class Config(Section, frozen=True):
    name: Annotated[str, key("The name of this configuration.")] = ""
    description: Annotated[str, key("What this configuration is for.")] = ""
    layout: Annotated[str, key("The layout of the plan; auto detects it.", "--layout", metavar="LAYOUT")] = "auto"
    ralph_dir: Annotated[str, key("The folder of tasks.json.", "--ralph-dir", metavar="DIR")] = ""
    feature: Annotated[str, key("The plan in .ralph/NAME/.", "-f", "--feature", metavar="NAME")] = ""
    prd: Annotated[Positive | None, key("The plan in .ralph/PRD-N/.", "--prd", metavar="N")] = None
    repo: Annotated[str, key("The git repository, if it is a folder inside the workspace.")] = ""
    prompt: Annotated[str, key("The prompt template.", "-p", "--prompt", metavar="FILE")] = ""
    max_iterations: Annotated[
        int,
        key("Maximum iterations of a run; 0 derives it from the plan.", "-n", "--max-iterations", metavar="N", ge=0),
    ] = 0
    max_allowed_iterations: Annotated[
        int, key("Upper limit for max_iterations; 0 is no limit.", "--max-allowed-iterations", metavar="N", ge=0)
    ] = 0
    max_loops_per_task: Annotated[
        int,
        key("Maximum attempts at a story before it fails; 0 is no limit.", "--max-loops-per-task", metavar="N", ge=0),
    ] = 5
    timeout: Annotated[
        Duration,
        key("Maximum duration of a session; 0 is no limit.", "-t", "--timeout", metavar="TIME"),
    ] = 900.0
    idle_timeout: Annotated[
        Duration,
        key("Maximum time without output from the agent; 0 is no limit.", "--idle-timeout", metavar="TIME"),
    ] = 600.0
    max_run_time: Annotated[
        Duration,
        key("Maximum duration of the run; 0 is no limit.", "--max-time", metavar="TIME"),
    ] = 0.0
    time_ceiling: Annotated[Duration, key("Upper limit for every timeout of an agent, check or step.", ge=1)] = 86_400.0
    rate_limit_per_hour: Annotated[
        int, key("Maximum sessions per hour; 0 is no limit.", "-r", "--rate-limit", metavar="N", ge=0)
    ] = 100
    token_limit_per_hour: Annotated[
        int, key("Maximum tokens per hour, of all kinds; 0 is no limit.", "--token-limit", metavar="N", ge=0)
    ] = 0
    transport_retries: Annotated[
        int, key("Retries in a row when the model cannot be reached or answers nothing.", ge=0)
    ] = 5
    on_limit: Annotated[
        Literal["ask", "ask-exit", "wait", "exit"],
        key(
            "At a usage limit: ask at the terminal and wait without an answer in 30 s, ask and exit, wait, or exit.",
            "--on-limit",
            metavar="WHAT",
        ),
    ] = "ask"
    limit_share: Annotated[
        float,
        key(
            "Start no session once this share of a usage window is used; 1 uses all of it.",
            "--limit-share",
            metavar="SHARE",
            ge=0,
            le=1,
        ),
    ] = 1.0
    push: Annotated[
        Literal["never", "after-story"],
        key("When the loop pushes; the agent never does.", "--push", metavar="WHEN"),
    ] = "never"
    beads: Annotated[Literal["auto", "br", "bd", "off"], key("The beads tool to use with spec.md.")] = "auto"
    permissions: Annotated[
        Literal["guard", "skip", "client"],
        key(
            "How tool calls are permitted: by Ralph's guard, without checks, or by the client's own rules.",
            "--permissions",
            metavar="WHAT",
            constants=(
                ("--dangerously-skip-permissions", "skip"),
                ("--no-dangerously-skip-permissions", "guard"),
            ),
        ),
    ] = "guard"
    web: Annotated[
        Literal["allow", "deny"],
        key("Whether the agent may use the client's web tools (WebFetch, WebSearch).", "--web", metavar="WHAT"),
    ] = "allow"
    allow_paths: Annotated[
        Words,
        key("Folders outside the workspace that the agent may write to.", "--allow-paths", metavar="PATHS"),
    ] = ()
    canary: Annotated[
        Literal["stop", "warn", "off"],
        key("What to do if the client runs without Ralph's hooks.", "--canary", metavar="WHAT"),
    ] = "stop"
    rollback: Annotated[
        Literal["end", "immediate"],
        key(
            "When failing tests roll work back: at the end of the iteration, or at once.", "--rollback", metavar="WHEN"
        ),
    ] = "end"
    env: Annotated[
        Literal["caller", "minimal"],
        key("Which environment variables agents and checks get: the caller's, or a short list and `agent.env`."),
    ] = "caller"
    read_before_edit: Annotated[bool, key("The agent may only edit files that it has read in this session.")] = True
    baseline: Annotated[
        Literal["strict", "no-worse"],
        key("Whether a check that already failed before the run rejects stories.", "--baseline", metavar="POLICY"),
    ] = "strict"
    tamper: Annotated[
        Literal["review", "reject", "off"],
        key(
            "When the checks pass only with changed tests: have it reviewed, reject it, or allow it.",
            "--tamper",
            metavar="POLICY",
        ),
    ] = "review"
    tests: Annotated[
        Literal["any", "must-fail-first"],
        key(
            "Whether a story needs a test that fails without it, as `proof.minimum: witnessed`.",
            "--tests",
            metavar="POLICY",
        ),
    ] = "any"
    acceptance: Annotated[
        Literal["off", "visible", "hidden"],
        key(
            "Have another session write tests for each story first; hidden: unseen by the session that implements it.",
            "--acceptance",
            metavar="POLICY",
        ),
    ] = "off"
    exam: Annotated[
        Literal["off", "end-of-run"],
        key(
            "Have another session write end-to-end tests when every story is done; what fails becomes a new story.",
            "--exam-when",
            metavar="WHEN",
            constants=(("--exam", "end-of-run"), ("--no-exam", "off")),
        ),
    ] = "off"
    exam_rounds: Annotated[int, key("The most rounds of the exam for the same stories.", ge=1)] = 2
    require_commit: Annotated[bool, key("The agent may only stop after committing its work.")] = False
    redact: Annotated[
        tuple[str, ...],
        key("Regular expressions for more secrets to remove from what Ralph writes and shows, matched line by line."),
    ] = ()
    protected: Annotated[Words, key("More files and folders that the agent may not edit.")] = ()
    checks: Annotated[
        tuple[Check, ...],
        key("Commands the loop runs to prove a story: plain command lines, or mappings with the keys below."),
    ] = ()
    quality_checks: Annotated[dict[str, str], key("More checks: name and command.")] = {}  # noqa: RUF012
    steps: Annotated[tuple[Step, ...], key("The steps of an iteration, in order.")] = ()
    fallback: Annotated[
        Words,
        key(
            "What to use when the first choice hits a limit, has spent its budget, cannot be reached or keeps failing: "
            "models, agents, or agent/model, in this order.",
            "--fallback",
            metavar="NAMES",
        ),
    ] = ()
    fallback_after: Annotated[int, key("Failures in a row before the next fallback is used.", ge=1)] = 2
    fallback_cooldown: Annotated[Duration, key("How long a choice that failed is not used.")] = 1800.0
    sandbox: Sandbox = Sandbox()
    workspace: Annotated[
        Literal["auto", "clone", "in-place"],
        key(
            "Where the agent works: in a clone of its own or in your checkout; auto: in a clone if sandboxed.",
            "--workspace",
            metavar="WHERE",
        ),
    ] = "auto"
    parallel: Annotated[
        int,
        key(
            "How many stories are worked on at the same time, each by a worker in a clone.",
            "--parallel",
            metavar="N",
            ge=1,
            le=256,
        ),
    ] = 1
    queue: Queue = Queue()
    on: Annotated[
        str,
        key(
            "The machines that work: empty is this one; `ray` or `ray://HOST:PORT` is a Ray cluster.",
            "--on",
            metavar="WHERE",
        ),
    ] = ""
    hub: Annotated[
        str, key("The git repository through which machines of a cluster exchange work; empty: one on this machine.")
    ] = ""
    routing: Routing = Routing()
    agent: Agent = Agent()
    review: Review = Review()
    proof: Proof = Proof()
    planning: Planning = Planning()
    memory: Memory = Memory()
    context: Context = Context()
    circuit_breaker: CircuitBreaker = CircuitBreaker()
    completion: Completion = Completion()
    branch: Branch = Branch()
    archive: Archive = Archive()
    keep_ignored: KeepIgnored = KeepIgnored()
    guard: Guard = Guard()
    notify: Notify = Notify()
    budget: Budget = Budget()


def all_checks(config: Config) -> tuple[Check, ...]:
    """The checks of both spellings, in the order they run."""
    return (*(Check(name=name, command=command) for name, command in config.quality_checks.items()), *config.checks)


def minimum_grade(config: Config) -> str:
    """The least proof with which a story is done."""
    strict = config.tests == "must-fail-first" and config.proof.minimum in ("reviewed", "unproven")
    return "witnessed" if strict else config.proof.minimum
