"""The settings: one declaration per option. Keys, flags, variables, JSON Schema and docs all come from here.

Without `from __future__ import annotations`, because msgspec would have to evaluate every annotation at each start.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ralph.config.durations import Duration

Words = Annotated[tuple[str, ...], Meta(extra={"form": "words"})]
"""A list of strings, or one string with commas: `Write,Bash(git *),Read`."""

Argv = Annotated[tuple[str, ...], Meta(extra={"form": "argv"})]
"""A list of strings, or one string that is split as a shell would."""

Positive = Annotated[int, Meta(ge=1)]

Share = Annotated[float, Meta(le=1)]

When = Literal["story", "review", "final"]

News = Annotated[
    tuple[Literal["done", "failed", "blocked", "limit", "budget", "paused", "stopped"], ...],
    Meta(extra={"form": "words"}),
]


def key(
    doc: str,
    *flags: str,
    off: tuple[str, ...] = (),
    metavar: str = "",
    ge: int | None = None,
    le: int | None = None,
    secret: bool = False,
    constants: tuple[tuple[str, str], ...] = (),
) -> Meta:
    """The description of one option.

    `flags` set it (for a boolean: to true), `off` are flags that set a boolean to false. A `secret` is an address that
    is only shown masked. `constants` are flags without a value that set a fixed one:
    `("--dangerously-skip-permissions", "skip")`.
    """
    extra: dict[str, Any] = {"flags": flags, "off": off, "metavar": metavar, "secret": secret, "constants": constants}
    return Meta(description=doc, ge=ge, le=le, extra=extra)


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping with fixed keys in a config file."""


class Agent(Section, frozen=True):
    name: Annotated[str, key("The agent that works on the stories.", "--agent", metavar="NAME")] = "claude"
    command: Annotated[
        Argv, key("The command line of the agent, instead of the built-in one.", "--agent-command", metavar="COMMAND")
    ] = ()
    model: Annotated[str, key("The model.", "-m", "--model", metavar="MODEL")] = ""
    allowed_tools: Annotated[
        Words, key("Tools that the client's own rules allow, e.g. Bash(git *).", "--allowed-tools", metavar="TOOLS")
    ] = ()
    disallowed_tools: Annotated[
        Words, key("Tools that the agent may not use.", "--disallowed-tools", metavar="TOOLS")
    ] = ()
    fallback_model: Annotated[
        str, key("The model to use while the first one is overloaded.", "--fallback-model", metavar="MODEL")
    ] = ""
    budget_usd: Annotated[
        float, key("Maximum cost of a session in dollars; 0 is no limit.", "--budget", metavar="USD", ge=0)
    ] = 0.0
    keep_sessions: Annotated[bool, key("Let the client keep its session transcripts.")] = False
    env: Annotated[Words, key("With `env: minimal`: names of further environment variables to pass on.")] = ()
    script: Annotated[str, key("The script of the scripted agent.", "--agent-script", metavar="FILE")] = ""


class CircuitBreaker(Section, frozen=True):
    no_progress_threshold: Annotated[
        int, key("Trip after this many attempts in a row that fail alike or change no file; 0 is never.", ge=0)
    ] = 3
    same_error_threshold: Annotated[
        int, key("Trip after the same error this many times in a row; 0 is never.", ge=0)
    ] = 5
    on_stuck: Annotated[
        Literal["next", "stop"],
        key("When a breaker trips: set the story aside, or stop the run.", "--on-stuck", metavar="WHAT"),
    ] = "next"
    retry_rounds: Annotated[
        int, key("How often stories that were set aside are retried at the end of the run; 0 is never.", ge=0)
    ] = 2
    crash_loop_threshold: Annotated[
        int, key("Stop after this many agents in a row died within a second; 0 is never.", ge=0)
    ] = 3


class Completion(Section, frozen=True):
    promise: Annotated[str, key("The text with which an agent claims that everything is done.")] = (
        "<promise>COMPLETE</promise>"
    )


class Review(Section, frozen=True):
    enabled: Annotated[
        bool, key("Have each story reviewed in a fresh session.", "--review", off=("--skip-review", "--no-review"))
    ] = True
    cap: Annotated[int, key("Maximum reviews of a story.", "--review-cap", metavar="N", ge=1)] = 5
    on_cap: Annotated[
        Literal["approve", "fail", "human"],
        key("What to do with a story whose last review did not approve it.", "--on-cap", metavar="WHAT"),
    ] = "approve"
    on_stalemate: Annotated[
        Literal["human", "approve", "fail"],
        key("What to do with a story when two reviews in a row ask for the same.", "--on-stalemate", metavar="WHAT"),
    ] = "human"
    agent: Annotated[
        str, key("The agent that reviews; empty: the agent that works.", "--review-agent", metavar="NAME")
    ] = ""
    model: Annotated[
        str, key("The model that reviews; empty: the model that works.", "--review-model", metavar="MODEL")
    ] = ""
    command: Annotated[Argv, key("The command line of the reviewer, instead of the built-in one.")] = ()
    reviewers: Annotated[
        Words,
        key(
            "Reviewers, in order: quality, tests, security, or prompt files.",
            "--reviewers",
            metavar="NAMES",
        ),
    ] = ()


class Planning(Section, frozen=True):
    agent: Annotated[str, key("The agent that plans; empty: the agent that works.")] = ""
    command: Annotated[Argv, key("The command line of the planner, instead of the built-in one.")] = ()
    model: Annotated[str, key("The model that plans; empty: opus with Claude Code, else agent.model.")] = ""


class Memory(Section, frozen=True):
    prompt_tokens: Annotated[int, key("Maximum tokens of learnings in a prompt; 0 is none.", ge=0)] = 1500
    compact_tokens: Annotated[int, key("`ralph add` summarises learnings above this size; 0 is never.", ge=0)] = 6000
    repo_file: Annotated[str, key("A file such as CLAUDE.md or AGENTS.md to which agents may add lasting rules.")] = ""


class Context(Section, frozen=True):
    budget_tokens: Annotated[
        int, key("Maximum tokens at the start of a session: prompt, plan, readme, memory; 0 is no limit.", ge=0)
    ] = 20_000


class Branch(Section, frozen=True):
    prefix: Annotated[str, key("The prefix of branches that Ralph creates.")] = "feature/"
    auto_create: Annotated[bool, key("Create the branch of the plan if needed, and work on it.")] = False


class Archive(Section, frozen=True):
    on_complete: Annotated[bool, key("Archive the plan when it is done.", "--archive", off=("--no-archive",))] = False


class Check(Section, frozen=True):
    """A command that Ralph runs itself; its result is evidence."""

    name: Annotated[str, Meta(description="Its name in reports.", min_length=1)]
    command: Annotated[str, Meta(description="A shell command; exit code 0 passes.", min_length=1)]
    timeout: Annotated[Duration, Meta(description="Maximum duration.")] = 600.0
    when: Annotated[tuple[When, ...], Meta(description="When to run it.")] = (
        "story",
        "review",
        "final",
    )
    cwd: Annotated[str, Meta(description="Its folder, relative to the workspace.")] = ""
    allow_failure: Annotated[bool, Meta(description="Report a failure without rejecting the work.")] = False


class StepBreaker(Section, frozen=True):
    threshold: Annotated[int, Meta(description="Failures in a row that open the circuit.", ge=1)] = 3
    reset_after: Annotated[Duration, Meta(description="How long an open circuit skips the step.")] = 60.0


class Step(Section, frozen=True):
    """One step of an iteration."""

    type: Annotated[str, Meta(description="Which step: agent, git-commit, command, readme-check, noop.", min_length=1)]
    name: Annotated[str, Meta(description="Its name in reports.")] = ""
    enabled: Annotated[bool, Meta(description="False skips the step.")] = True
    timeout: Annotated[Duration | None, Meta(description="Maximum duration of the step.")] = None
    max_retries: Annotated[int, Meta(description="Retries after a failure.", ge=0)] = 0
    retry_delay: Annotated[Duration, Meta(description="Delay before a retry.")] = 0.0
    continue_on_error: Annotated[bool, Meta(description="Continue with the next step after a failure.")] = False
    circuit_breaker: Annotated[StepBreaker | None, Meta(description="Skip the step for a while after failures.")] = None
    config: Annotated[dict[str, Any], Meta(description="The settings of the step itself.")] = {}


class GuardRule(Section, frozen=True):
    """Commands by program and arguments; `*` matches anything."""

    program: Annotated[str, Meta(description="The program's name, e.g. git.", min_length=1)]
    args: Annotated[str, Meta(description="Its arguments, e.g. push origin *.")] = "*"
    category: Annotated[str, Meta(description="Only for this category of the guard; empty: for all.")] = ""


class Guard(Section, frozen=True):
    enabled: Annotated[bool, key("Check each shell command of the agent before it runs.")] = True
    allow: Annotated[tuple[GuardRule, ...], key("Commands to allow although the guard would deny them.")] = ()
    deny: Annotated[tuple[GuardRule, ...], key("Commands to deny although the guard would allow them.")] = ()


class Budget(Section, frozen=True):
    run_usd: Annotated[
        float, key("Maximum cost of a run in dollars; 0 is no limit.", "--max-cost", metavar="USD", ge=0)
    ] = 0.0
    story_usd: Annotated[float, key("Maximum cost of a story over all runs; then it is set aside.", ge=0)] = 0.0
    day_usd: Annotated[float, key("Maximum cost of the workspace per day.", ge=0)] = 0.0
    workspace_usd: Annotated[float, key("Maximum cost of the workspace over all runs.", ge=0)] = 0.0
    run_tokens: Annotated[int, key("Maximum tokens of a run; 0 is no limit.", "--max-tokens", metavar="N", ge=0)] = 0
    story_tokens: Annotated[int, key("Maximum tokens of a story over all runs; then it is set aside.", ge=0)] = 0
    day_tokens: Annotated[int, key("Maximum tokens of the workspace per day.", ge=0)] = 0
    workspace_tokens: Annotated[int, key("Maximum tokens of the workspace over all runs.", ge=0)] = 0
    least_chance: Annotated[Share, key("Stop below this chance to finish within the budget; 0 is never.", ge=0)] = 0.0
    prices: Annotated[str, key("A file of prices for models that Ralph does not know or that cost less.")] = ""


class Notify(Section, frozen=True):
    on: Annotated[News, key("Events to report: done, failed, blocked, limit, budget, paused, stopped.")] = (
        "done",
        "failed",
        "blocked",
        "limit",
        "budget",
    )
    desktop: Annotated[bool, key("Show a notification on this desktop (notify-send or osascript).")] = False
    webhook: Annotated[str, key("A URL that gets messages as JSON, by HTTP POST.", secret=True)] = ""
    command: Annotated[Argv, key("A command that gets messages in its environment and on stdin.")] = ()
    env: Annotated[Words, key("More environment variables to pass to notify.command.")] = ()
    apprise: Annotated[Words, key("Apprise URLs; needs the extra `notify`.", secret=True)] = ()
    timeout: Annotated[Duration, key("Maximum time to send one message.")] = 10.0


class Routing(Section, frozen=True):
    enabled: Annotated[bool, key("Choose the model by story.", "--routing", off=("--no-routing",))] = False
    simple: Annotated[str, key("The model for simple stories.")] = "haiku"
    medium: Annotated[str, key("The model for medium stories.")] = "sonnet"
    complex: Annotated[str, key("The model for complex stories.")] = "opus"


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
    beads: Annotated[
        Literal["auto", "br", "bd", "off"], key("The beads tool to use with spec.md.", "--beads", metavar="TOOL")
    ] = "auto"
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
        key("What to do when tests or checks were weakened.", "--tamper", metavar="POLICY"),
    ] = "review"
    tests: Annotated[
        Literal["any", "must-fail-first"],
        key("Whether new tests must fail on the code from before the story.", "--tests", metavar="POLICY"),
    ] = "any"
    require_commit: Annotated[bool, key("The agent may only stop after committing its work.")] = False
    protected: Annotated[Words, key("More files and folders that the agent may not edit.")] = ()
    checks: Annotated[
        tuple[Check, ...],
        key("Commands the loop runs to prove a story: plain command lines, or mappings with the keys below."),
    ] = ()
    quality_checks: Annotated[dict[str, str], key("More checks: name and command.")] = {}
    steps: Annotated[tuple[Step, ...], key("The steps of an iteration, in order.")] = ()
    fallback: Annotated[
        Words,
        key(
            "What to use when the first choice hits a limit, has spent its budget or keeps failing: models, agents, "
            "or agent/model, in this order.",
            "--fallback",
            metavar="NAMES",
        ),
    ] = ()
    fallback_after: Annotated[int, key("Failures of a story in a row before the next fallback is used.", ge=1)] = 2
    fallback_cooldown: Annotated[Duration, key("How long a choice that failed is not used.")] = 1800.0
    routing: Routing = Routing()
    agent: Agent = Agent()
    review: Review = Review()
    planning: Planning = Planning()
    memory: Memory = Memory()
    context: Context = Context()
    circuit_breaker: CircuitBreaker = CircuitBreaker()
    completion: Completion = Completion()
    branch: Branch = Branch()
    archive: Archive = Archive()
    guard: Guard = Guard()
    notify: Notify = Notify()
    budget: Budget = Budget()


def all_checks(config: Config) -> tuple[Check, ...]:
    """The checks of both spellings, in the order they run."""
    return (*(Check(name=name, command=command) for name, command in config.quality_checks.items()), *config.checks)
