"""The sections of the settings, and how an option is declared. `schema` puts them together.

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
    bare: str = "",
) -> Meta:
    """The description of one option.

    `flags` set it (for a boolean: to true), `off` are flags that set a boolean to false. A `secret` is an address that
    is only shown masked. `constants` are flags without a value that set a fixed one:
    `("--dangerously-skip-permissions", "skip")`. `bare` is what a flag sets that is given without its value.
    """
    extra: dict[str, Any] = {"flags": flags, "off": off, "metavar": metavar, "secret": secret, "constants": constants}
    extra["bare"] = bare
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
    max_processes: Annotated[int, key("An agent that has more processes than this is ended; 0 is no limit.", ge=0)] = (
        2000
    )
    max_memory_mb: Annotated[
        int, key("An agent whose processes use more megabytes than this together is ended; 0 is no limit.", ge=0)
    ] = 0
    max_file_mb: Annotated[int, key("Megabytes that an agent may write to one file; 0 is no limit.", ge=0)] = 0
    script: Annotated[str, key("The script of the scripted agent.", "--agent-script", metavar="FILE")] = ""


class SandboxLimits(Section, frozen=True):
    processes: Annotated[int, key("The most processes and threads inside; 0 is no limit.", ge=0)] = 2000
    memory_mb: Annotated[
        int, key("Megabytes of memory inside; 0 is three quarters of the machine's, -1 is no limit.", ge=-1)
    ] = 0
    disk_mb: Annotated[int, key("Megabytes that may be written inside; 0 is no limit.", ge=0)] = 20_000
    cpu_seconds: Annotated[int, key("Seconds of processor time for one session or check; 0 is no limit.", ge=0)] = (
        36_000
    )


class Sandbox(Section, frozen=True):
    use: Annotated[
        Literal["auto", "required", "bwrap", "srt", "docker", "podman", "sbx", "none"],
        key(
            "The sandbox around agents and checks: the strongest that works here, one by name, or none. "
            "`required` stops instead of working without one. `sandbox: NAME` is short for this key.",
            "--sandbox",
            metavar="NAME",
            bare="required",
            constants=(("--no-sandbox", "none"),),
        ),
    ] = "auto"
    network: Annotated[
        Literal["listed", "open", "none"],
        key("What can be reached from inside: the hosts of the list, everything, or nothing."),
    ] = "listed"
    allow_hosts: Annotated[
        Words,
        key(
            "Hosts that can be reached from inside, besides the agent's own: example.org, *.example.org, "
            "localhost:5432, or a registry (pypi, npm, crates, go, debian).",
            "--allow-hosts",
            metavar="HOSTS",
        ),
    ] = ()
    files: Annotated[
        Words, key("Files that git ignores, or files in your home folder (~/…), that are copied into the sandbox.")
    ] = ()
    setup: Annotated[
        str, key("A command that prepares the sandbox once, until it changes; default: sandbox/setup.sh if it exists.")
    ] = ""
    image: Annotated[str, key("The container image for docker and podman; empty: Ralph's own Containerfile.")] = ""
    limits: SandboxLimits = SandboxLimits()


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
    when: Annotated[
        Literal["always", "when-unproven", "never"],
        key(
            "Which stories are reviewed in a fresh session: all, those that no check is about, or none.",
            "--review-when",
            metavar="WHEN",
            constants=(("--review", "always"), ("--skip-review", "never"), ("--no-review", "never")),
        ),
    ] = "always"
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
        str,
        key(
            "The agent that reviews; empty: the agent that works; other: an agent of another vendor than the author's.",
            "--review-agent",
            metavar="NAME",
        ),
    ] = ""
    model: Annotated[
        str, key("The model that reviews; empty: the model that works.", "--review-model", metavar="MODEL")
    ] = ""
    command: Annotated[Argv, key("The command line of the reviewer, instead of the built-in one.")] = ()
    reviewers: Annotated[
        Words,
        key(
            "Reviewers, in order: quality, tests, security, or prompt files; each may end with @AGENT or @AGENT/MODEL.",
            "--reviewers",
            metavar="NAMES",
        ),
    ] = ()

    @property
    def enabled(self) -> bool:
        """Whether a run may start a review."""
        return self.when != "never"


class Proof(Section, frozen=True):
    where: Annotated[
        Literal["checkout", "in-place"],
        key("Where checks run: in a clean checkout of the commit to be, or in the workspace.", metavar="WHERE"),
    ] = "checkout"
    setup: Annotated[
        str,
        key("The command that installs the dependencies in the checkout; auto detects it, none runs nothing."),
    ] = "auto"
    files: Annotated[Words, key("Ignored files that the checks need in the checkout, e.g. .env.")] = ()
    minimum: Annotated[
        Literal["proven", "witnessed", "reviewed", "unproven"],
        key("The least proof with which a story is done.", "--proof-minimum", metavar="GRADE"),
    ] = "reviewed"


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


class Queue(Section, frozen=True):
    """The merge queue of a run with several workers."""

    method: Annotated[
        Literal["rebase", "merge"],
        key("How accepted work gets onto the branch: as one commit on the tip, or as a merge commit."),
    ] = "rebase"
    batch: Annotated[
        int,
        key("How many accepted stories are merged and proved together; if they fail, halves are tried.", ge=1),
    ] = 1
    speculate: Annotated[
        int, key("How many entries of the queue are proved ahead of time, as if those before them passed.", ge=0)
    ] = 3
    returns: Annotated[int, key("How often the queue returns a story before the story is done alone.", ge=0)] = 2


class KeepIgnored(Section, frozen=True):
    """Ignored files that a rollback can restore."""

    file_kb: Annotated[
        int, key("Largest ignored file, such as `.env`, that is copied before a session; 0 copies none.", ge=0)
    ] = 10_240
    total_mb: Annotated[int, key("Most space for these copies; the smallest files come first.", ge=0)] = 100


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
    enabled: Annotated[bool, key("Choose the model or the agent by story.", "--routing", off=("--no-routing",))] = False
    simple: Annotated[str, key("For simple stories: a model, an agent, or agent/model.")] = "haiku"
    medium: Annotated[str, key("For medium stories: a model, an agent, or agent/model.")] = "sonnet"
    complex: Annotated[str, key("For complex stories: a model, an agent, or agent/model.")] = "opus"
