"""Gemini CLI: `gemini --output-format stream-json`, one event a line."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ralph.agents.gemini_events import GeminiEvents
from ralph.agents.program import argument, find_client, host_of
from ralph.agents.untyped import members
from ralph.core.agent_traits import AgentTraits, LoginState, Rehearsal
from ralph.core.ports import HookFiles, Launch, Login, Reader, Rights, Session
from ralph.hooks.dialects.gemini import TOOLS

NAME = "gemini"
TITLE = "Gemini CLI"
HOOKS = True
REPORTS_CALLS = True
ENV = (
    "CODE_ASSIST_ENDPOINT",
    "GEMINI_API_KEY",
    "GEMINI_CLI_CUSTOM_HEADERS",
    "GEMINI_CLI_HOME",
    "GEMINI_MODEL",
    "GOOGLE_API_KEY",
    "GOOGLE_CLOUD_LOCATION",
    "GOOGLE_CLOUD_PROJECT",
    "GOOGLE_CLOUD_PROJECT_ID",
    "GOOGLE_GEMINI_BASE_URL",
    "GOOGLE_GENAI_*",
    "GOOGLE_VERTEX_BASE_URL",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
LOGIN = (
    Login(".gemini/oauth_creds.json", comes_back=True),
    Login(".gemini/google_accounts.json"),
    Login(".gemini/gemini-credentials.json", comes_back=True),
    Login(".gemini/.env"),
)
"""In the sandbox too, links in the private folder lead to these."""
TRAITS = AgentTraits(
    program="gemini",
    install="npm install -g @google/gemini-cli",
    tried="0.61.0",
    log_in="run `gemini` once and log in, or set GEMINI_API_KEY",
    keys=("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_GENAI_USE_GCA"),
    notes=(
        "Without agent.model the client asks a small model which one to use before its first request.",
        "Of your own settings only the login and the choice of a model apply; MCP servers are switched off.",
        "Its output has no tokens until the session ends, so there are no warnings about a full context.",
    ),
)
_HOSTS = (
    *("generativelanguage.googleapis.com", "cloudcode-pa.googleapis.com"),
    *("oauth2.googleapis.com", "accounts.google.com", "www.googleapis.com"),
)
"""The service with a key, the one with an account, and where a login is renewed."""
_VERTEX = ("*.googleapis.com",)
_ADDRESSES = ("GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "CODE_ASSIST_ENDPOINT")

_FOLDER = ".gemini"
_SETTINGS = "settings.json"
_POLICY = "policies/ralph.toml"
_KEPT = ("security", "model", "modelConfigs", "billing")
"""Of the user's settings: the login and the choice of a model."""
_HOME = "GEMINI_CLI_HOME"
"""Names the folder that has `.gemini` in it, instead of the home folder."""
_ATTEMPTS = 4
"""About half a minute, with the client's pauses of 5, 10 and 20 seconds. Its default of ten takes over three minutes;
the loop retries."""
_UNUSABLE = ("ask_user", "enter_plan_mode", "exit_plan_mode", "save_memory")
"""Tools that wait for the user (questions go into the request file), or write into the user's own settings."""
_EVENTS = {
    "SessionStart": "SessionStart",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
    "AfterAgent": "Stop",
    "SessionEnd": "SessionEnd",
}
"""The client's events → Ralph's."""
_TIMEOUTS = {"Stop": 30_000, "SessionEnd": 5_000}
_TIMEOUT = 15_000
"""Milliseconds."""


def find(session: Session, path: str) -> str:
    return find_client(session, path, TITLE, TRAITS)


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts that the client contacts, for a sandbox: with a gateway of the user's, only that one."""
    given = tuple(host_of(env[name]) for name in _ADDRESSES if env.get(name))
    return given or (_VERTEX if env.get("GOOGLE_GENAI_USE_VERTEXAI") else _HOSTS)


def rehearse(address: str) -> Rehearsal:
    return Rehearsal(
        env={"GEMINI_API_KEY": "test-key", "GOOGLE_GEMINI_BASE_URL": address},
        files={".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}\n'},
        model="gemini-2.5-flash",
    )


def login(env: Mapping[str, str], home: Path) -> LoginState:
    if key := next((key for key in TRAITS.keys if env.get(key)), ""):
        return LoginState(key)
    folder = Path(env.get(_HOME) or home) / _FOLDER
    names = (Path(file.path).name for file in LOGIN)
    return LoginState(next((str(folder / name) for name in names if (folder / name).is_file()), ""))


def launch(session: Session, program: str) -> Launch:
    """Its settings are in a private folder, with links to the user's login.

    The client ignores system settings that do not belong to root, and has no option for a file of settings.
    """
    argv = [program, *session.command[1:], "--output-format", "stream-json", "--extensions", "none"]
    if session.model:
        argv += ["--model", argument(session.model)]
    if session.rights.permissions != "client":
        argv += ["--approval-mode", "yolo"]  # else it offers its model no tool that changes anything
    for folder in (*session.rights.folders, *([str(session.checkout)] if session.checkout else ())):
        argv += ["--include-directories", argument(folder)]
    prompt = f"{session.system}\n\n{session.prompt}" if session.system else session.prompt
    env = {
        _HOME: str(session.folder),
        "GEMINI_CLI_TRUST_WORKSPACE": "true",  # `ralph trust` has asked
        "GEMINI_TELEMETRY_ENABLED": "false",
    }
    if session.hooks is not None:
        env |= session.hooks.env
    own = _own_folder()
    names = [Path(file.path).name for file in LOGIN]
    return Launch(
        tuple(argv),
        prompt.encode("utf-8", "replace"),
        env,
        {
            f"{_FOLDER}/{_SETTINGS}": json.dumps(_settings(session, own), indent=2) + "\n",
            f"{_FOLDER}/{_POLICY}": "\n".join(_rules(session.rights)),
        },
        {f"{_FOLDER}/{name}": str(own / name) for name in names},
    )


def _own_folder() -> Path:
    """The user's."""
    return Path(os.environ.get(_HOME) or Path.home()) / _FOLDER


def _settings(session: Session, own: Path) -> dict[str, Any]:
    try:
        known = members(json.loads((own / _SETTINGS).read_bytes()))
    except (OSError, ValueError):
        known = {}
    settings: dict[str, Any] = {key: known[key] for key in _KEPT if key in known}
    if "security" not in settings and os.environ.get("GEMINI_API_KEY"):  # with an address of its own it would not do
        settings["security"] = {"auth": {"selectedType": "gemini-api-key"}}
    settings |= {
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False, "maxAttempts": _ATTEMPTS},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "mcp": {"allowed": ["-"]},  # those of the project: none has this name, and an empty list allows all
    }
    if session.hooks is not None:
        settings |= {"hooksConfig": {"enabled": True, "notifications": False}, "hooks": _hooks(session.hooks)}
    return settings


def _hooks(hooks: HookFiles) -> dict[str, Any]:
    """An event without a matcher is always reported."""
    return {
        name: [
            {
                "hooks": [
                    {
                        "type": "command",
                        "name": f"ralph-{event}",
                        "command": hooks.call(event, NAME),
                        "timeout": _TIMEOUTS.get(event, _TIMEOUT),
                    }
                ]
            }
        ]
        for name, event in _EVENTS.items()
    }


def _rules(rights: Rights) -> Iterator[str]:
    """The rules for tools, in the client's form. They count more than its own, also when it asks for nothing."""
    yield _rule("deny", toolName=list(_UNUSABLE))
    for decision, given in (("allow", rights.allowed_tools), ("deny", rights.disallowed_tools)):
        for name, pattern in re.findall(r"(\w+)(?:\(([^)]*)\))?", given):
            start = re.split(r":?\*", pattern)[0].strip()
            if name == "Bash" and start:
                yield _rule(decision, toolName="run_shell_command", commandPrefix=start)
            elif not pattern and (tools := [tool for tool, (known, _) in TOOLS.items() if known == name]):
                yield _rule(decision, toolName=tools)


def _rule(decision: str, **about: str | list[str]) -> str:
    priority = 990 if decision == "deny" else 500
    values = {**about, "decision": decision, "priority": priority}
    return "\n".join(["[[rule]]", *(f"{key} = {json.dumps(value)}" for key, value in values.items()), ""])


def reader() -> Reader:
    return GeminiEvents()
