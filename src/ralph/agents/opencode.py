"""opencode: `opencode run --format json`, one event a line, and a plugin for the hooks and for what it leaves out."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ralph.agents.opencode_events import OpencodeEvents
from ralph.agents.program import argument, find_client
from ralph.agents.providers import KEYS, PROXY, provider_hosts
from ralph.agents.request_reports import plugin_files
from ralph.agents.untyped import members, text
from ralph.core.agent_traits import AgentTraits, LoginState, Rehearsal
from ralph.core.errors import SetupError
from ralph.core.ports import Launch, Login, Reader, Rights, Session

NAME = "opencode"
TITLE = "opencode"
HOOKS = True
REPORTS_CALLS = True
ENV = ("OPENCODE_*", *KEYS, *PROXY)
_AUTH = ".local/share/opencode/auth.json"
_SETTINGS = tuple(f".config/opencode/{name}" for name in ("opencode.json", "opencode.jsonc", "config.json"))
LOGIN = (Login(_AUTH, comes_back=True), *(Login(path) for path in _SETTINGS))
TRAITS = AgentTraits(
    program="opencode",
    install="npm install -g opencode-ai",
    tried="1.18.33",
    log_in="run `opencode auth login`, or set the key of a provider, such as ANTHROPIC_API_KEY",
    keys=KEYS,
    reports_cost=True,
    notes=(
        "agent.model has the form provider/model, as in `opencode models`.",
        "Providers come from the user's own opencode.json. Its plugins and MCP servers are active too.",
        "It keeps its sessions in its own database, where `opencode session list` shows them.",
        "The cost is the client's own calculation, from the prices of its list of models.",
    ),
)
_PLUGIN = "opencode_plugin.js"
_PERMISSIONS = {
    **dict.fromkeys(("Edit", "Write", "MultiEdit", "NotebookEdit"), "edit"),
    "Bash": "bash",
    "Read": "read",
    "WebFetch": "webfetch",
    "WebSearch": "websearch",
    "Task": "task",
}
"""Tools in the settings → the client's names for permissions."""
_CONTENT, _PERMISSION = "OPENCODE_CONFIG_CONTENT", "OPENCODE_PERMISSION"
_OWN_HOSTS = ("opencode.ai", "models.dev", "models.opencode.ai")
"""Its list of models, and its own service."""


def find(session: Session, path: str) -> str:
    return find_client(session, path, TITLE, TRAITS)


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    providers = members(_settings(env).get("provider"))
    addresses = (text(members(members(each).get("options")).get("baseURL")) for each in providers.values())
    has_login = Path(env.get("HOME") or "/nonexistent", _AUTH).is_file()
    return (*_OWN_HOSTS, *provider_hosts(env, filter(None, addresses), has_login=has_login))


def login(env: Mapping[str, str], home: Path) -> LoginState:
    if key := next((key for key in KEYS if env.get(key)), ""):
        return LoginState(key)
    if (home / _AUTH).is_file():
        return LoginState(str(home / _AUTH))
    has_provider = bool(_settings({"HOME": str(home), **env}).get("provider"))
    return LoginState("opencode.json" if has_provider else "")


def _settings(env: Mapping[str, str]) -> dict[str, Any]:
    """The user's own, as far as they are plain JSON."""
    home = Path(env.get("HOME") or "/nonexistent")
    found: dict[str, Any] = {}
    for path in _SETTINGS:
        try:
            found |= members(json.loads((home / path).read_bytes()))
        except (OSError, ValueError):
            continue
    return found


def rehearse(address: str) -> Rehearsal:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Trial",
        "options": {"baseURL": f"{address}/v1", "apiKey": "test-key"},
        "models": {"scripted": {"name": "Scripted", "limit": {"context": 200_000, "output": 16_000}}},
    }
    settings = {"$schema": "https://opencode.ai/config.json", "provider": {"trial": provider}}
    return Rehearsal(files={_SETTINGS[0]: json.dumps(settings)}, model="trial/scripted")


def launch(session: Session, program: str) -> Launch:
    argv = [program, *session.command[1:], "run", "--format", "json"]
    # Why a model is unknown is only in its log. A session with a title needs no request that finds one.
    argv += ["--print-logs", "--log-level", "ERROR", f"--title={argument(f'Ralph {session.task.story}'.strip())}"]
    if session.model:
        argv += ["--model", argument(session.model)]
    if session.rights.permissions != "client":
        argv.append("--auto")
    text = f"{session.system}\n\n{session.prompt}" if session.system else session.prompt
    files = plugin_files(session.hooks, NAME, _PLUGIN)
    return Launch(tuple(argv), text.encode("utf-8", "replace"), _environment(session), files)


def _environment(session: Session) -> dict[str, str]:
    content, denied = _users(_CONTENT), _denied(session.rights)
    plugins = content.get("plugin")
    content |= {
        "autoupdate": False,
        "share": "disabled",
        "plugin": [*(plugins if isinstance(plugins, list) else []), (session.folder / _PLUGIN).as_uri()],
    }
    env = {
        _CONTENT: json.dumps(content),
        **({_PERMISSION: json.dumps(_users(_PERMISSION) | denied)} if denied else {}),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        "OPENCODE_PURE": "false",  # it would leave the plugin out
        # It installs a package that its plugins may import, and waits for that: without a network, for minutes.
        "npm_config_fetch_retries": "0",
    }
    return env | (session.hooks.env if session.hooks is not None else {})


def _users(name: str) -> dict[str, Any]:
    """The settings that the user has in a variable. Ralph's own are added to them."""
    try:
        found = json.loads(os.environ.get(name, "").strip() or "{}")
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise SetupError(f"{name} is not a JSON object", hint="correct it, or unset it")
    return found


def _denied(rights: Rights) -> dict[str, dict[str, str]]:
    """The rules for tools, in the client's form: the last one that matches counts. `--auto` does not lift a denial."""
    found: dict[str, dict[str, str]] = {}
    if rights.tools and "Edit" not in rights.tools:  # a session that only looks: commands by permission
        found = {"edit": {"*": "deny"}, "bash": {"*": "deny"}}
        for name, pattern in _rules(rights.allowed_tools):
            if name == "Bash":
                found["bash"][pattern] = "allow"
    for name, pattern in _rules(rights.disallowed_tools):
        if name in _PERMISSIONS:
            found.setdefault(_PERMISSIONS[name], {})[pattern] = "deny"
    return found


def _rules(text: str) -> list[tuple[str, str]]:
    """`Bash(git log *),Edit` → the tools with their patterns."""
    return [(name, pattern.strip() or "*") for name, pattern in re.findall(r"(\w+)(?:\(([^)]*)\))?", text)]


def reader() -> Reader:
    return OpencodeEvents()
