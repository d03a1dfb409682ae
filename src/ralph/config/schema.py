"""The settings: one declaration per option. Keys, flags, variables, JSON Schema and docs all come from here.

Without `from __future__ import annotations`: msgspec would have to compile every one of them anew at each start.
"""

from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from ralph.config.durations import Duration

Words = Annotated[tuple[str, ...], Meta(extra={"form": "words"})]
"""A list of texts, or one text with commas: `Write,Bash(git *),Read`."""

Argv = Annotated[tuple[str, ...], Meta(extra={"form": "argv"})]
"""A list of texts, or one text that is split as a shell would."""

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
    """What there is to say about one option.

    `flags` set it (for a boolean: to true), `off` are flags that set a boolean to false. A `secret` is an address
    that is only shown masked. `constants` are flags without a value that stand for one:
    `("--dangerously-skip-permissions", "skip")`.
    """
    extra: dict[str, Any] = {"flags": flags, "off": off, "metavar": metavar, "secret": secret, "constants": constants}
    return Meta(description=doc, ge=ge, le=le, extra=extra)


class Section(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mapping with fixed keys in a config file."""


class Agent(Section, frozen=True):
    name: Annotated[str, key("Which agent works on the stories.", "--agent", metavar="NAME")] = "claude"
    command: Annotated[
        Argv, key("The agent's command line, instead of its own.", "--agent-command", metavar="COMMAND")
    ] = ()
    model: Annotated[str, key("The model the agent is asked for.", "-m", "--model", metavar="MODEL")] = ""
    allowed_tools: Annotated[
        Words, key("Tools that the client's own rules allow, e.g. Bash(git *).", "--allowed-tools", metavar="TOOLS")
    ] = ()
    disallowed_tools: Annotated[Words, key("Tools the agent may not use.", "--disallowed-tools", metavar="TOOLS")] = ()
    fallback_model: Annotated[
        str, key("The model to use while the first one is overloaded.", "--fallback-model", metavar="MODEL")
    ] = ""
    budget_usd: Annotated[
        float, key("Most money for one session of the agent, in dollars; 0: no limit.", "--budget", metavar="USD", ge=0)
    ] = 0.0
    keep_sessions: Annotated[bool, key("Let the client keep transcripts of its sessions in its own folder.")] = False
    env: Annotated[Words, key("With `env: minimal`: names of further environment variables to pass on.")] = ()
    script: Annotated[str, key("The script that the scripted agent plays.", "--agent-script", metavar="FILE")] = ""


class CircuitBreaker(Section, frozen=True):
    no_progress_threshold: Annotated[
        int, key("Trip after so many attempts in a row that fail alike or change no file; 0: never.", ge=0)
    ] = 3
    same_error_threshold: Annotated[int, key("Trip after the same error so many times in a row; 0: never.", ge=0)] = 5
    on_stuck: Annotated[
        Literal["next", "stop"],
        key("When a story trips: set it aside and take the next, or stop the run.", "--on-stuck", metavar="WHAT"),
    ] = "next"
    retry_rounds: Annotated[
        int, key("How often stories that were given up are tried again at the end of the run; 0: never.", ge=0)
    ] = 2
    crash_loop_threshold: Annotated[
        int, key("Stop when so many agents in a row die within a second; 0: never.", ge=0)
    ] = 3


class Completion(Section, frozen=True):
    promise: Annotated[str, key("The text by which an agent claims that everything is done.")] = (
        "<promise>COMPLETE</promise>"
    )


class Review(Section, frozen=True):
    enabled: Annotated[
        bool, key("Have each story reviewed in a fresh session.", "--review", off=("--skip-review", "--no-review"))
    ] = True
    cap: Annotated[int, key("Most reviews of one story.", "--review-cap", metavar="N", ge=1)] = 5
    on_cap: Annotated[
        Literal["approve", "fail", "human"],
        key("What becomes of a story that is not approved by its last review.", "--on-cap", metavar="WHAT"),
    ] = "approve"
    on_stalemate: Annotated[
        Literal["human", "approve", "fail"],
        key("What becomes of a story when two reviews in a row ask for the same.", "--on-stalemate", metavar="WHAT"),
    ] = "human"
    agent: Annotated[str, key("The agent that reviews; empty: the same one.", "--review-agent", metavar="NAME")] = ""
    model: Annotated[str, key("The model that reviews; empty: the same one.", "--review-model", metavar="MODEL")] = ""
    command: Annotated[Argv, key("The reviewing agent's command line, instead of its own.")] = ()
    reviewers: Annotated[
        Words,
        key(
            "Who reviews, one after the other: names of the library (quality, tests, security), or prompt files.",
            "--reviewers",
            metavar="NAMES",
        ),
    ] = ()


class Planning(Section, frozen=True):
    agent: Annotated[str, key("Which agent plans; empty: the one that works on the stories.")] = ""
    command: Annotated[Argv, key("The planning agent's command line, instead of its own.")] = ()
    model: Annotated[str, key("The model that plans; empty: opus with Claude Code, else agent.model.")] = ""


class Memory(Section, frozen=True):
    prompt_tokens: Annotated[int, key("Most tokens of learnings in one prompt; 0: none.", ge=0)] = 1500
    compact_tokens: Annotated[
        int, key("Learnings that take more tokens are large: `ralph add` has them summarised; 0: never.", ge=0)
    ] = 6000
    repo_file: Annotated[
        str, key("A file such as CLAUDE.md or AGENTS.md that agents may add lasting rules to; empty: none.")
    ] = ""


class Context(Section, frozen=True):
    budget_tokens: Annotated[
        int, key("Most tokens that a session should begin with: prompt, plan, readme, memory; 0: no limit.", ge=0)
    ] = 20_000


class Branch(Section, frozen=True):
    prefix: Annotated[str, key("Put before the plan's name when a branch is made for it.")] = "feature/"
    auto_create: Annotated[bool, key("Make the plan's branch when it does not exist, and work on it.")] = False


class Archive(Section, frozen=True):
    on_complete: Annotated[
        bool, key("Put the plan away when every story is done.", "--archive", off=("--no-archive",))
    ] = False


class Check(Section, frozen=True):
    """A command the loop runs itself; its result is evidence."""

    name: Annotated[str, Meta(description="What reports call it.", min_length=1)]
    command: Annotated[str, Meta(description="A shell command; exit code 0 passes.", min_length=1)]
    timeout: Annotated[Duration, Meta(description="Longest run.")] = 600.0
    when: Annotated[tuple[When, ...], Meta(description="After a story, before a review is believed, at the end.")] = (
        "story",
        "review",
        "final",
    )
    cwd: Annotated[str, Meta(description="Where it runs, relative to the workspace.")] = ""
    allow_failure: Annotated[bool, Meta(description="Report a failure, but do not reject the work for it.")] = False


class StepBreaker(Section, frozen=True):
    threshold: Annotated[int, Meta(description="Failures in a row that open the circuit.", ge=1)] = 3
    reset_after: Annotated[Duration, Meta(description="How long an open circuit skips the step.")] = 60.0


class Step(Section, frozen=True):
    """One step of an iteration."""

    type: Annotated[str, Meta(description="Which step: agent, git-commit, command, readme-check, noop.", min_length=1)]
    name: Annotated[str, Meta(description="What reports call it.")] = ""
    enabled: Annotated[bool, Meta(description="False skips the step.")] = True
    timeout: Annotated[Duration | None, Meta(description="Longest run of the whole step.")] = None
    max_retries: Annotated[int, Meta(description="Further tries after a failure.", ge=0)] = 0
    retry_delay: Annotated[Duration, Meta(description="Pause before a retry.")] = 0.0
    continue_on_error: Annotated[bool, Meta(description="Go on with the next step after a failure.")] = False
    circuit_breaker: Annotated[StepBreaker | None, Meta(description="Skip the step for a while when it fails.")] = None
    config: Annotated[dict[str, Any], Meta(description="What the step itself understands.")] = {}


class GuardRule(Section, frozen=True):
    """Commands by program and arguments; `*` stands for anything."""

    program: Annotated[str, Meta(description="The program's name, e.g. git.", min_length=1)]
    args: Annotated[str, Meta(description="Its arguments, e.g. push origin *.")] = "*"
    category: Annotated[str, Meta(description="Only for this category of the guard; empty: for all.")] = ""


class Guard(Section, frozen=True):
    enabled: Annotated[bool, key("Look at each shell command of the agent before it runs.")] = True
    allow: Annotated[tuple[GuardRule, ...], key("Commands that are allowed although the guard would deny them.")] = ()
    deny: Annotated[tuple[GuardRule, ...], key("Commands that are denied although the guard would allow them.")] = ()


class Budget(Section, frozen=True):
    run_usd: Annotated[
        float, key("Most money for one run, in dollars; 0: no limit.", "--max-cost", metavar="USD", ge=0)
    ] = 0.0
    story_usd: Annotated[float, key("Most money for one story, over all runs; then it is set aside.", ge=0)] = 0.0
    day_usd: Annotated[float, key("Most money for one day of the workspace, from midnight to midnight.", ge=0)] = 0.0
    workspace_usd: Annotated[float, key("Most money for the workspace, over all runs.", ge=0)] = 0.0
    run_tokens: Annotated[int, key("Most tokens for one run; 0: no limit.", "--max-tokens", metavar="N", ge=0)] = 0
    story_tokens: Annotated[int, key("Most tokens for one story, over all runs; then it is set aside.", ge=0)] = 0
    day_tokens: Annotated[int, key("Most tokens for one day of the workspace.", ge=0)] = 0
    workspace_tokens: Annotated[int, key("Most tokens for the workspace, over all runs.", ge=0)] = 0
    least_chance: Annotated[
        Share, key("Stop when the chance to finish within the budget falls below this; 0: never.", ge=0)
    ] = 0.0
    prices: Annotated[str, key("A file of prices, for models that are not in Ralph's own list or cost less.")] = ""


class Notify(Section, frozen=True):
    on: Annotated[News, key("What to tell about: done, failed, blocked, limit, budget, paused, stopped.")] = (
        "done",
        "failed",
        "blocked",
        "limit",
        "budget",
    )
    desktop: Annotated[bool, key("Show a notification on this desktop (notify-send or osascript).")] = False
    webhook: Annotated[str, key("An address that messages are sent to, as JSON by HTTP POST.", secret=True)] = ""
    command: Annotated[Argv, key("A command that gets messages by environment and stdin.")] = ()
    env: Annotated[Words, key("Names of further environment variables that notify.command gets to see.")] = ()
    apprise: Annotated[
        Words, key("Addresses of services, as Apprise writes them; needs the extra `notify`.", secret=True)
    ] = ()
    timeout: Annotated[Duration, key("Longest time for one message to go out.")] = 10.0


class Routing(Section, frozen=True):
    enabled: Annotated[bool, key("Choose the model by how hard a story looks.", "--routing", off=("--no-routing",))] = (
        False
    )
    simple: Annotated[str, key("The model for simple stories.")] = "haiku"
    medium: Annotated[str, key("The model for stories of medium size.")] = "sonnet"
    complex: Annotated[str, key("The model for complex stories.")] = "opus"


class Config(Section, frozen=True):
    name: Annotated[str, key("What this configuration is called.")] = ""
    description: Annotated[str, key("What this configuration is for.")] = ""
    layout: Annotated[str, key("The plan's layout; auto: found out.", "--layout", metavar="LAYOUT")] = "auto"
    ralph_dir: Annotated[str, key("The folder of tasks.json.", "--ralph-dir", metavar="DIR")] = ""
    feature: Annotated[str, key("The feature's folder in .ralph/.", "-f", "--feature", metavar="NAME")] = ""
    prd: Annotated[Positive | None, key("The PRD number, for .ralph/PRD-N/.", "--prd", metavar="N")] = None
    repo: Annotated[str, key("The git repository, when it is a folder inside the workspace.")] = ""
    prompt: Annotated[str, key("The prompt template to use.", "-p", "--prompt", metavar="FILE")] = ""
    max_iterations: Annotated[
        int, key("Most iterations of one run; 0: follows from the plan.", "-n", "--max-iterations", metavar="N", ge=0)
    ] = 0
    max_allowed_iterations: Annotated[
        int, key("The most that max_iterations may be; 0: no limit.", "--max-allowed-iterations", metavar="N", ge=0)
    ] = 0
    max_loops_per_task: Annotated[
        int,
        key("Most attempts at one story before it fails; 0: no limit.", "--max-loops-per-task", metavar="N", ge=0),
    ] = 5
    timeout: Annotated[
        Duration,
        key("Longest run of the agent in one iteration; 0: no limit.", "-t", "--timeout", metavar="TIME"),
    ] = 900.0
    idle_timeout: Annotated[
        Duration,
        key("Longest silence of the agent; 0: no limit.", "--idle-timeout", metavar="TIME"),
    ] = 600.0
    max_run_time: Annotated[
        Duration,
        key("Longest run of the whole; 0: no limit.", "--max-time", metavar="TIME"),
    ] = 0.0
    time_ceiling: Annotated[
        Duration, key("What no agent, check or step takes longer than, whatever its timeout says.", ge=1)
    ] = 86_400.0
    rate_limit_per_hour: Annotated[
        int, key("Most agent starts in an hour; 0: no limit.", "-r", "--rate-limit", metavar="N", ge=0)
    ] = 100
    token_limit_per_hour: Annotated[
        int, key("Most tokens in an hour, of all kinds; 0: no limit.", "--token-limit", metavar="N", ge=0)
    ] = 0
    transport_retries: Annotated[
        int, key("How often in a row a model that cannot be reached, or answers nothing, is tried again.", ge=0)
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
            "No new work once this share of a usage window is used up; 1: only when all of it is.",
            "--limit-share",
            metavar="SHARE",
            ge=0,
            le=1,
        ),
    ] = 1.0
    push: Annotated[
        Literal["never", "after-story"],
        key("When the loop pushes; the agent itself never does.", "--push", metavar="WHEN"),
    ] = "never"
    beads: Annotated[
        Literal["auto", "br", "bd", "off"], key("The beads tool to use with spec.md.", "--beads", metavar="TOOL")
    ] = "auto"
    permissions: Annotated[
        Literal["guard", "skip", "client"],
        key(
            "Who permits a tool call: Ralph's guard, nobody (every call is permitted), or the client's own rules.",
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
        key("Folders outside of the workspace that the agent may write to.", "--allow-paths", metavar="PATHS"),
    ] = ()
    canary: Annotated[
        Literal["stop", "warn", "off"],
        key("What to do with a client that works without Ralph's hooks.", "--canary", metavar="WHAT"),
    ] = "stop"
    rollback: Annotated[
        Literal["end", "immediate"],
        key("When failing tests undo the work: at the end of the iteration, or at once.", "--rollback", metavar="WHEN"),
    ] = "end"
    env: Annotated[
        Literal["caller", "minimal"],
        key("Which environment variables agents and checks get: the caller's, or a short list and `agent.env`."),
    ] = "caller"
    read_before_edit: Annotated[bool, key("Let the agent edit only files that it has read in its session.")] = True
    baseline: Annotated[
        Literal["strict", "no-worse"],
        key("A check that failed before the run rejects a story too, or does not.", "--baseline", metavar="POLICY"),
    ] = "strict"
    tamper: Annotated[
        Literal["review", "reject", "off"],
        key("What follows when tests or checks were weakened: a review, or rejection.", "--tamper", metavar="POLICY"),
    ] = "review"
    tests: Annotated[
        Literal["any", "must-fail-first"],
        key("Whether new tests have to fail on the code as it was before the story.", "--tests", metavar="POLICY"),
    ] = "any"
    require_commit: Annotated[bool, key("Let the agent stop only when it has committed its work itself.")] = False
    protected: Annotated[Words, key("Further files and folders that the agent does not edit.")] = ()
    checks: Annotated[
        tuple[Check, ...],
        key("Commands the loop runs to prove a story: plain command lines, or mappings with the keys below."),
    ] = ()
    quality_checks: Annotated[dict[str, str], key("More checks, as name and command.")] = {}
    steps: Annotated[tuple[Step, ...], key("The steps of an iteration, in order.")] = ()
    fallback: Annotated[
        Words,
        key(
            "Who works when the first choice is at a limit, has spent its budget or keeps failing: models, agents, "
            "or agent/model, in this order.",
            "--fallback",
            metavar="NAMES",
        ),
    ] = ()
    fallback_after: Annotated[int, key("Failures of one story in a row before the next of them tries.", ge=1)] = 2
    fallback_cooldown: Annotated[Duration, key("How long one that could not work is left alone.")] = 1800.0
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
    """The checks of both spellings, in the order they are run."""
    return (*(Check(name=name, command=command) for name, command in config.quality_checks.items()), *config.checks)
