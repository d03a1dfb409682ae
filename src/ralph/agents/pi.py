"""Pi: `pi --print --mode json`, one event a line, and an extension for the hooks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ralph.agents.pi_events import PiEvents
from ralph.agents.program import argument, find_client
from ralph.agents.providers import KEYS, PROXY, provider_hosts
from ralph.agents.request_reports import plugin_files
from ralph.agents.untyped import members, text
from ralph.core.agent_traits import AgentTraits, LoginState, Rehearsal
from ralph.core.ports import Launch, Login, Reader, Rights, Session

NAME = "pi"
TITLE = "Pi"
HOOKS = True
REPORTS_CALLS = True
ENV = ("PI_*", "AZURE_OPENAI_*", *KEYS, *PROXY)
_AUTH, _MODELS = ".pi/agent/auth.json", ".pi/agent/models.json"
LOGIN = (Login(_AUTH, comes_back=True), Login(_MODELS), Login(".pi/agent/settings.json"))
TRAITS = AgentTraits(
    program="pi",
    install="npm install -g @earendil-works/pi-coding-agent",
    tried="0.74.2",
    log_in="run `pi` once and use /login, or set the key of a provider, such as ANTHROPIC_API_KEY",
    keys=KEYS,
    reports_cost=True,
    notes=(
        "agent.model can have the form provider/model; `pi --list-models` lists them.",
        "The user's own extensions are not loaded. For one that adds a provider, set agent.command to [pi, -e, FILE].",
        "The client has no permissions of its own: with `permissions: client` nothing is asked.",
    ),
)
_PLUGIN = "pi_extension.js"
_TOOLS = {"read": "Read", "bash": "Bash", "edit": "Edit", "write": "Write"}
"""Those that are on by default, and their names in the settings."""
_LOOKING = ("read", "grep", "find", "ls")


def find(session: Session, path: str) -> str:
    return find_client(session, path, TITLE, TRAITS)


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    home = Path(env.get("HOME") or "/nonexistent")
    providers = members(_models(env, home).get("providers"))
    addresses = (text(members(each).get("baseUrl")) for each in providers.values())
    has_login = (_folder(env, home) / "auth.json").is_file()
    return provider_hosts(env, filter(None, addresses), has_login=has_login)


def login(env: Mapping[str, str], home: Path) -> LoginState:
    if key := next((key for key in KEYS if env.get(key)), ""):
        return LoginState(key)
    auth = _folder(env, home) / "auth.json"
    if auth.is_file():
        return LoginState(str(auth))
    return LoginState("models.json" if _models(env, home).get("providers") else "")


def _folder(env: Mapping[str, str], home: Path) -> Path:
    return Path(env.get("PI_CODING_AGENT_DIR") or home / ".pi/agent")


def _models(env: Mapping[str, str], home: Path) -> dict[str, Any]:
    try:
        return members(json.loads((_folder(env, home) / "models.json").read_bytes()))
    except (OSError, ValueError):
        return {}


def rehearse(address: str) -> Rehearsal:
    model = {"id": "scripted", "name": "Scripted", "contextWindow": 200_000, "maxTokens": 16_000}
    provider = {"baseUrl": f"{address}/v1", "api": "openai-completions", "apiKey": "test-key", "models": [model]}
    return Rehearsal(files={_MODELS: json.dumps({"providers": {"trial": provider}})}, model="trial/scripted")


def launch(session: Session, program: str) -> Launch:
    argv = [program, *session.command[1:], "--print", "--mode", "json", "--offline"]
    argv += ["--no-extensions", "--no-prompt-templates", "--no-themes", "--extension", str(session.folder / _PLUGIN)]
    files = plugin_files(session.hooks, NAME, _PLUGIN)
    if not session.keep:
        argv.append("--no-session")
    if session.model:
        argv += ["--model", argument(session.model)]
    if tools := _tools(session.rights):
        argv += ["--tools", ",".join(tools)]
    if session.system:
        files["system.md"] = session.system
        argv += ["--append-system-prompt", str(session.folder / "system.md")]
    if session.hooks is not None:
        # The first message is added to that on stdin. The second is a command of the extension.
        argv += ["", "/ralph-stop"]
    env = {"PI_TELEMETRY": "0", **(session.hooks.env if session.hooks is not None else {})}
    return Launch(tuple(argv), session.prompt.encode("utf-8", "replace"), env, files)


def _tools(rights: Rights) -> tuple[str, ...]:
    """The only tools it gets, if any are denied. It has no rules for single commands: who only looks has no shell."""
    if rights.tools and "Edit" not in rights.tools:
        return _LOOKING
    denied = rights.disallowed_tools.split(",")
    return tuple(tool for tool in _TOOLS if _TOOLS[tool] not in denied) if {*denied} & {*_TOOLS.values()} else ()


def reader() -> Reader:
    return PiEvents()
