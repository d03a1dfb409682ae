"""Cline CLI: `cline --json`, with a private folder of settings and the user's file of model providers."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ralph.agents.cline_events import ClineEvents
from ralph.agents.program import argument, find_client, host_of
from ralph.agents.untyped import members, text
from ralph.core.agent_traits import AgentTraits, LoginState, Rehearsal
from ralph.core.ports import HookFiles, Launch, Login, Reader, Session

NAME = "cline"
TITLE = "Cline CLI"
HOOKS = True
REPORTS_CALLS = True
ENV = (
    "ANTHROPIC_API_KEY",
    "CLINE_API_KEY",
    "CLINE_MODEL",
    "CLINE_PROVIDER",
    "GEMINI_API_KEY",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "OPENAI_API_KEY",
    "OPENROUTER_API_KEY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
_PROVIDERS = ".cline/data/settings/providers.json"
LOGIN = (Login(_PROVIDERS, comes_back=True),)
TRAITS = AgentTraits(
    program="cline",
    install="npm install -g cline",
    tried="3.0.65",
    log_in="run `cline auth`",
    keys=("CLINE_API_KEY",),
    reports_cost=True,
    unguarded="the end of a turn, which no hook can block",
    notes=(
        "Hooks of your own in ~/.cline are not run, nor MCP servers; those in the project's .clinerules/hooks are.",
        "A denied call is replaced with one that fails: a hook of this client can only end the whole session.",
        "It tries a failed request again for a minute, without a word.",
    ),
)
_FOLDER = "cline"
"""In the session's folder: its CLINE_DIR."""
_HOSTS = {
    "anthropic": ("api.anthropic.com",),
    "gemini": ("generativelanguage.googleapis.com",),
    "openai-native": ("api.openai.com",),
    "openrouter": ("openrouter.ai",),
}
_EVENTS = {
    "TaskStart": "SessionStart",
    "PreToolUse": "PreToolUse",
    "PostToolUse": "PostToolUse",
    "SessionShutdown": "SessionEnd",
}
"""The client's event → Ralph's."""
_ABORT = '{"cancel": true, "errorMessage": "Ralph could not check this call: its hook did not start."}'
_AWAKE = "awake.js"
_STAY_AWAKE = "delete process.env.BUN_OPTIONS;\nsetInterval(() => {}, 2 ** 30);\n"
"""Loaded by the client's runtime, Bun. While it lists the files of a project for an `@path` in a prompt, the client has
nothing that keeps its process alive; unless a request happens to be under way, it ends with code 0 and no output. When
it is done it exits by itself. The programs that it starts do not get the option."""
_FIRST = "Follow these instructions."
"""Without an argument, the client does not read stdin."""


def find(session: Session, path: str) -> str:
    return find_client(session, path, TITLE, TRAITS)


def _home(env: Mapping[str, str]) -> Path:
    return Path(env.get("HOME") or Path.home())


def _provider(home: Path) -> dict[str, Any]:
    """The settings of the model provider that was used last."""
    try:
        found = members(json.loads((home / _PROVIDERS).read_bytes()))
    except (OSError, ValueError):
        return {}
    name = text(found.get("lastUsedProvider"))
    return {"provider": name} | members(members(members(found.get("providers")).get(name)).get("settings"))


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    own = _provider(_home(env))
    if address := text(own.get("baseUrl")):
        return (host_of(address),)
    return _HOSTS.get(text(own.get("provider")), ("api.cline.bot",))


def login(env: Mapping[str, str], home: Path) -> LoginState:
    if env.get("CLINE_API_KEY"):
        return LoginState("CLINE_API_KEY")
    return LoginState(str(home / _PROVIDERS) if _provider(home) else "")


def rehearse(address: str) -> Rehearsal:
    settings = {"provider": "openai-compatible", "apiKey": "test-key", "model": "scripted", "baseUrl": f"{address}/v1"}
    entry = {"settings": settings, "updatedAt": "2026-01-01T00:00:00.000Z", "tokenSource": "manual"}
    whole = {"version": 1, "lastUsedProvider": "openai-compatible", "modes": {}}
    return Rehearsal(files={_PROVIDERS: json.dumps(whole | {"providers": {"openai-compatible": entry}})})


def launch(session: Session, program: str) -> Launch:
    folder = session.folder / _FOLDER
    approve = "false" if session.rights.permissions == "client" else "true"
    argv = [program, *session.command[1:], "--json", "--auto-approve", approve]
    if session.model:
        argv += ["--model", argument(session.model)]
    env = {
        "BUN_OPTIONS": f'"--preload={folder / _AWAKE}"',
        "CLINE_DIR": str(folder),
        "CLINE_NO_AUTO_UPDATE": "1",
        "CLINE_PROVIDER_SETTINGS_PATH": str(_home(os.environ) / _PROVIDERS),  # replaced when a login is renewed
        "CLINE_SESSION_BACKEND_MODE": "local",  # else it leaves a daemon behind
    }
    files = {
        f"{_FOLDER}/{_AWAKE}": _STAY_AWAKE,
        f"{_FOLDER}/data/settings/global-settings.json": json.dumps({"telemetryOptOut": True}),
    }
    if session.hooks is not None:
        files |= {f"{_FOLDER}/hooks/{own}.sh": _hook(session.hooks, event) for own, event in _EVENTS.items()}
        env |= session.hooks.env
    prompt = "\n\n".join(filter(None, (session.system, session.prompt)))
    return Launch((*argv, _FIRST), prompt.encode("utf-8", "replace"), env, files)


def _hook(hooks: HookFiles, event: str) -> str:
    call = hooks.call(event, NAME)
    return f"( {call} ) || printf '%s\\n' '{_ABORT}'\n" if event == "PreToolUse" else f"{call}\n"


def reader() -> Reader:
    return ClineEvents()
