"""Claude Code: `claude -p --output-format stream-json`, the reference client."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from ralph.agents.program import argument, host_of, not_found, which
from ralph.agents.stream_json import StreamJson
from ralph.agents.untyped import members
from ralph.core.agent_traits import AgentTraits, LoginState, Rehearsal
from ralph.core.ports import Launch, Login, Reader, Session

NAME = "claude"
TITLE = "Claude Code"
HOOKS = True
REPORTS_CALLS = True
ENV = (
    "ANTHROPIC_*",
    "API_TIMEOUT_MS",
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_REGION",
    "BASH_DEFAULT_TIMEOUT_MS",
    "BASH_MAX_TIMEOUT_MS",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_SKIP_*",
    "CLAUDE_CODE_TMPDIR",
    "CLAUDE_CODE_USE_*",
    "CLAUDE_CONFIG_DIR",
    "CLOUD_ML_REGION",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "MAX_THINKING_TOKENS",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
"""Variables passed with `env: minimal`: its own credentials, how to reach the model, and its limits. Keys for more than
a model, such as AWS ones, are passed only if agent.env names them."""
_TELEMETRY = "CLAUDE_CODE_ENABLE_TELEMETRY"
_OF_TELEMETRY = (
    *(_TELEMETRY, "CLAUDE_CODE_ENHANCED_TELEMETRY_BETA", "CLAUDE_CODE_OTEL_*", "CLAUDE_CODE_PROPAGATE_TRACEPARENT"),
    "OTEL_*",
)

LOGIN = (
    Login(".claude/.credentials.json", comes_back=True, variable="CLAUDE_CONFIG_DIR"),
    Login(
        ".claude.json",
        keys=("oauthAccount", "userID", "hasCompletedOnboarding", "customApiKeyResponses"),
        variable="CLAUDE_CONFIG_DIR",
    ),
)
TRAITS = AgentTraits(
    program="claude",
    install="npm install -g @anthropic-ai/claude-code",
    tried="2.1",
    log_in="run `claude` once and log in, or set ANTHROPIC_API_KEY",
    keys=(
        *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"),
        *("CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY"),
    ),
    reports_cost=True,
)
_HOSTS = ("api.anthropic.com", "platform.claude.com", "console.anthropic.com", "claude.ai")
"""The service itself, and where a login is renewed."""
_CLOUDS = {
    "CLAUDE_CODE_USE_BEDROCK": ("*.amazonaws.com",),
    "CLAUDE_CODE_USE_VERTEX": ("*.googleapis.com",),
    "CLAUDE_CODE_USE_FOUNDRY": ("*.azure.com", "*.microsoftonline.com"),
}
_ADDRESSES = ("ANTHROPIC_BASE_URL", "ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL")

_RETRIES = 6
"""About half a minute. The client's default of ten takes three minutes, even with an invalid key; the loop retries."""
_SHELL = "/bin/bash"
_UNUSABLE = (
    *("AskUserQuestion", "EnterPlanMode", "ExitPlanMode"),
    *("CronCreate", "CronDelete", "CronList", "ScheduleWakeup", "EnterWorktree", "ExitWorktree"),
)
"""Tools that wait for the user (questions go into the request file), keep the session open, or leave the workspace,
which the client permits by default."""


def find(session: Session, path: str) -> str:
    if session.command:
        given = session.command[0]
        if found := which(given, session.cwd, path):
            return found
        missing = f"agent program {given} not found"
        raise not_found(given, session.cwd, path, missing, "correct agent.command, or remove it")
    if found := which("claude", session.cwd, path) or _bundled():
        return found
    raise not_found(
        "claude",
        session.cwd,
        path,
        "Claude Code is not installed: claude not found on PATH",
        "run `npm install -g @anthropic-ai/claude-code`, or `pip install claude-agent-sdk`, which includes it; "
        "or use another program: set agent.name to `command` and agent.command to its command line",
    )


def _bundled() -> str | None:
    """The client inside the Python SDK. Importing the SDK itself would take a second."""
    spec = find_spec("claude_agent_sdk")
    folders = spec.submodule_search_locations if spec else None
    for folder in folders or ():
        program = Path(folder, "_bundled", "claude")
        if os.access(program, os.X_OK) and program.is_file():
            return str(program)
    return None


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts that the client contacts, for a sandbox: with a gateway of the user's, only that one."""
    given = tuple(host_of(env[name]) for name in _ADDRESSES if env.get(name))
    return given or tuple(host for name, found in _CLOUDS.items() if env.get(name) for host in found) or _HOSTS


def telemetry(env: Mapping[str, str]) -> tuple[str, ...]:
    """Variables passed as well if the user has turned on the client's own telemetry: among them may be a key."""
    return _OF_TELEMETRY if env.get(_TELEMETRY) else ()


def login(env: Mapping[str, str], home: Path) -> LoginState:
    if key := next((key for key in TRAITS.keys if env.get(key)), ""):
        return LoginState(key)
    folder = Path(env.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    if (folder / ".credentials.json").is_file():
        return LoginState(str(folder / ".credentials.json"))
    for path in (folder / ".claude.json", home / ".claude.json"):
        try:
            known = members(json.loads(path.read_bytes()))
        except (OSError, ValueError):
            continue
        if known.get("oauthAccount") or known.get("primaryApiKey"):
            return LoginState(str(path))
    return LoginState()


def rehearse(address: str) -> Rehearsal:
    return Rehearsal(env={"ANTHROPIC_BASE_URL": address, "CLAUDE_CODE_OAUTH_TOKEN": "test-token"})


def launch(session: Session, program: str) -> Launch:
    """Each process is a fresh session, free of the user's own hooks, plugins and MCP servers."""
    argv = [program, *session.command[1:], "-p", "--output-format", "stream-json", "--verbose"]
    argv += ["--setting-sources", "project", "--strict-mcp-config"]
    if not session.keep:
        argv.append("--no-session-persistence")
    if session.hooks is not None:
        argv += ["--settings", str(session.hooks.settings)]
    if session.model:
        argv += ["--model", argument(session.model)]
    if session.system:
        argv += ["--append-system-prompt", argument(session.system)]
    if session.rights.allowed_tools:
        # One word with `=`: the option takes all words that follow, and a rule such as `Bash(git *)` has spaces.
        argv.append(f"--allowedTools={argument(session.rights.allowed_tools)}")
    argv.append(f"--disallowedTools={argument(','.join(filter(None, (*_UNUSABLE, session.rights.disallowed_tools))))}")
    if session.rights.tools:
        argv.append(f"--tools={argument(session.rights.tools)}")
    if session.schema:
        argv += ["--json-schema", argument(session.schema)]
    if session.fallback_model:
        argv += ["--fallback-model", argument(session.fallback_model)]
    if session.budget_usd:
        argv += ["--max-budget-usd", f"{session.budget_usd:.4f}".rstrip("0").rstrip(".")]
    # Without it the client refuses a path that leads there through a link, whatever a hook permits.
    argv += [f"--add-dir={argument(folder)}" for folder in session.rights.folders if Path(folder).is_dir()]
    if session.rights.permissions == "skip":
        argv.append("--dangerously-skip-permissions")
    return Launch(tuple(argv), session.prompt.encode("utf-8", "replace"), _environment(session))


def _environment(session: Session) -> dict[str, str]:
    env = {
        "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",  # a command over its time is ended, not moved out of sight
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "CLAUDE_CODE_MAX_RETRIES": str(_RETRIES),
    }
    if Path(_SHELL).exists():
        env["SHELL"] = _SHELL  # else it takes whichever shell it finds
    if session.hooks is not None:
        env |= session.hooks.env
    if session.rights.is_root and session.rights.permissions == "skip":
        env["IS_SANDBOX"] = "1"  # as root it refuses to start otherwise
    return env


def reader() -> Reader:
    return StreamJson()
