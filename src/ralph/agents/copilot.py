"""GitHub Copilot CLI: `copilot --output-format json`, with a configuration folder of its own for each process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from ralph.agents.copilot_events import USAGE, CopilotEvents
from ralph.agents.program import argument, find_client, host_of
from ralph.core.agent_traits import AgentTraits, LoginState, Rehearsal
from ralph.core.ports import HookFiles, Launch, Login, Reader, Session

NAME = "copilot"
TITLE = "GitHub Copilot CLI"
HOOKS = True
REPORTS_CALLS = True
ENV = (
    "COPILOT_GH_HOST",
    "COPILOT_GITHUB_TOKEN",
    "COPILOT_MODEL",
    "COPILOT_OFFLINE",
    "COPILOT_PROVIDER_*",
    "GH_HOST",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
"""GH_TOKEN and GITHUB_TOKEN open more than a model: they are passed only if agent.env names them."""

LOGIN = (Login(".copilot/config.json"),)
TRAITS = AgentTraits(
    program="copilot",
    install="npm install -g @github/copilot",
    tried="1.0.102",
    log_in="run `copilot login`, or set COPILOT_GITHUB_TOKEN",
    keys=("COPILOT_GITHUB_TOKEN", "COPILOT_PROVIDER_BASE_URL"),
    own_rules="it only reads, because nothing can be approved",
    notes=(
        "It masks the value of an API key in all of its output, which a key of only a few letters makes unreadable.",
        "A login in the keyring of the desktop or of `gh` does not reach a sandbox: set COPILOT_GITHUB_TOKEN there.",
        "Each session has its own COPILOT_HOME: your MCP servers, plugins, hooks and settings are not used.",
        "It reports the number of tokens when a session ends, so there are no warnings about a full context.",
    ),
)
_HOSTS = ("api.github.com", "github.com", "*.githubcopilot.com", "copilot-proxy.githubusercontent.com")
_HOME = "copilot"
"""COPILOT_HOME in the session's folder."""
_EVENTS = {
    "sessionStart": "SessionStart",
    "preToolUse": "PreToolUse",
    "postToolUse": "PostToolUse",
    "postToolUseFailure": "PostToolUseFailure",
    "agentStop": "Stop",
    "sessionEnd": "SessionEnd",
}
"""The client's events → Ralph's. `userPromptSubmitted` also comes after each block of a stop, in the same session."""
_TIMEOUTS = {"PreToolUse": 600, "Stop": 30, "SessionEnd": 5}
"""Seconds. A call whose hook takes longer is not denied by this client: it is left to its own rules."""
_TIMEOUT = 15


def find(session: Session, path: str) -> str:
    return find_client(session, path, TITLE, TRAITS)


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts that the client contacts, for a sandbox: with a provider of the user's, only that one."""
    if address := env.get("COPILOT_PROVIDER_BASE_URL"):
        return (host_of(address),)
    if own := env.get("COPILOT_GH_HOST") or env.get("GH_HOST"):
        return (*_HOSTS, host_of(own), f"*.{host_of(own)}")
    return _HOSTS


def login(env: Mapping[str, str], home: Path) -> LoginState:
    if key := next((key for key in TRAITS.keys if env.get(key)), ""):
        return LoginState(key)
    path = Path(env.get("COPILOT_HOME") or home / ".copilot") / "config.json"
    try:
        known = path.read_text(encoding="utf-8", errors="replace").lower()  # JSON with comments
    except OSError:
        return LoginState()
    return LoginState(str(path) if "loggedinuser" in known or "logged_in_user" in known else "")


def rehearse(address: str) -> Rehearsal:
    return Rehearsal(
        env={
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{address}/v1",
            "COPILOT_PROVIDER_API_KEY": "test-key-of-a-rehearsal",  # a short one would be masked in the output
            "COPILOT_MODEL": "scripted",
        }
    )


def launch(session: Session, program: str) -> Launch:
    """Free of the user's own hooks, plugins and MCP servers. Hooks of the project do not run without a terminal."""
    argv = [program, *session.command[1:], "--output-format", "json", "--no-ask-user", "--no-color"]
    argv += ["--no-auto-update", "--disable-client-telemetry", "--disable-builtin-mcps", "--log-level", "error"]
    argv += ["--usage-output-file", str(session.folder / USAGE)]
    if session.model:
        argv += ["--model", argument(session.model)]
    argv += _permissions(session)
    prompt = f"{session.system}\n\n{session.prompt}" if session.system else session.prompt
    env = {"COPILOT_HOME": str(session.folder / _HOME), "COPILOT_AUTO_UPDATE": "false"}
    files = {}
    if session.hooks is not None:
        env |= session.hooks.env
        files[f"{_HOME}/hooks/ralph.json"] = json.dumps(_hooks(session.hooks), indent=2) + "\n"
    own = Path(os.environ.get("COPILOT_HOME") or "~/.copilot").expanduser()
    links = {f"{_HOME}/config.json": str(own / "config.json")}
    return Launch(tuple(argv), prompt.encode("utf-8", "replace"), env, files, links)


def _permissions(session: Session) -> list[str]:
    if session.rights.permissions == "skip":
        return ["--allow-all"]
    if session.rights.permissions == "guard":
        # A hook's permission is enough for commands, not for edits. What it does not permit is refused.
        return ["--allow-all-paths", "--allow-all-urls", "--allow-tool=write"]
    return [f"--add-dir={argument(folder)}" for folder in session.rights.folders if Path(folder).is_dir()]


def _hooks(hooks: HookFiles) -> dict[str, object]:
    called = {
        name: [
            {"type": "command", "bash": hooks.call(event, NAME), "timeoutSec": _TIMEOUTS.get(event, _TIMEOUT)},
        ]
        for name, event in _EVENTS.items()
    }
    return {"version": 1, "hooks": called}


def reader() -> Reader:
    return CopilotEvents()
