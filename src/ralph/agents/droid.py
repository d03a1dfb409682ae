"""Factory's Droid: `droid exec --output-format stream-json`, with Ralph's hooks in a settings file of one process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ralph.agents.droid_events import DroidEvents
from ralph.agents.program import argument, find_client, host_of
from ralph.agents.untyped import decode, items, text
from ralph.core.agent_traits import AgentTraits, LoginState, Rehearsal
from ralph.core.ports import HookFiles, Launch, Login, Reader, Session

NAME = "droid"
TITLE = "Factory Droid"
HOOKS = True
REPORTS_CALLS = True
ENV = (
    "FACTORY_AIRGAP_ENABLED",
    "FACTORY_API_BASE_URL",
    "FACTORY_API_KEY",
    "FACTORY_EXTRA_CA_CERTS",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
_SETTINGS = ".factory/settings.json"
LOGIN = (
    Login(".factory/auth.v2.file", comes_back=True),
    Login(".factory/auth.v2.key"),
    Login(".factory/auth.encrypted", comes_back=True),
    Login(_SETTINGS, keys=("customModels", "model", "sessionDefaultSettings")),
    Login(".factory/config.json", keys=("custom_models",)),
)
TRAITS = AgentTraits(
    program="droid",
    install="npm install -g droid",
    tried="0.215.0",
    log_in="run `droid` once and log in, set FACTORY_API_KEY, or add a model of your own to ~/.factory/settings.json",
    keys=("FACTORY_API_KEY",),
    own_rules="it only reads and changes nothing",
    cannot={"limit": "the client does not pass on when a limit ends"},
    notes=(
        "A model of your own is called `custom:NAME`, as `droid exec --help` lists it.",
        "Your own hooks and MCP servers in ~/.factory are used too; the tools of MCP servers are denied by the guard.",
        "A login in the keyring of the desktop does not reach a sandbox: set FACTORY_API_KEY there.",
        "Its log goes to stderr, because it says only there that it retries.",
    ),
)
_HOSTS = ("api.factory.ai", "api.eu.factory.ai", "app.factory.ai", "api.workos.com", "telemetry.factory.ai")
"""The service itself, where a login is renewed, and where its log goes: without an answer from there it writes the log
less and less often."""
_RUNTIME = "droid-settings.json"
_EVENTS = ("SessionStart", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
_TIMEOUTS = {"PreToolUse": 600, "Stop": 30, "SessionEnd": 5}
"""Seconds. A call whose hook takes longer is left to the client's own rules."""
_TIMEOUT = 15


def find(session: Session, path: str) -> str:
    return find_client(session, path, TITLE, TRAITS)


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts that the client contacts, for a sandbox: Factory's, and those of the user's own models."""
    given = env.get("FACTORY_API_BASE_URL")
    models = _own_models(Path(env.get("HOME") or "/nonexistent"))
    own = dict.fromkeys(host_of(address) for model in models if (address := text(model.get("baseUrl"))))
    return (*((host_of(given),) if given else _HOSTS), *own)


def login(env: Mapping[str, str], home: Path) -> LoginState:
    if env.get("FACTORY_API_KEY"):
        return LoginState("FACTORY_API_KEY")
    for name in ("auth.v2.file", "auth.v2.keyring", "auth.encrypted"):
        if (path := home / ".factory" / name).is_file():
            return LoginState(str(path))
    return LoginState(str(home / _SETTINGS) if _own_models(home) else "")


def _own_models(home: Path) -> list[dict[str, Any]]:
    try:
        return items(decode((home / _SETTINGS).read_bytes()).get("customModels"))
    except OSError:
        return []


def rehearse(address: str) -> Rehearsal:
    model = {
        "model": "scripted",
        "displayName": "scripted",
        "baseUrl": f"{address}/v1",
        "apiKey": "test-key",
        "provider": "generic-chat-completion-api",
    }
    return Rehearsal(files={_SETTINGS: json.dumps({"customModels": [model]}) + "\n"}, model="custom:scripted")


def launch(session: Session, program: str) -> Launch:
    """Its settings for one process are added to the user's: the login and the user's models stay where they are."""
    argv = [program, "--settings", str(session.folder / _RUNTIME), "exec", *session.command[1:]]
    argv += ["--output-format", "stream-json"]
    if session.model:
        argv += ["--model", argument(session.model)]
    if session.rights.permissions == "skip":
        argv.append("--skip-permissions-unsafe")
    elif session.rights.permissions == "guard":
        argv += ["--auto", "low"]  # without it there is no tool that changes anything; the hook permits the rest
    prompt = f"{session.system}\n\n{session.prompt}" if session.system else session.prompt
    env = {
        "FACTORY_DISABLE_SETTINGS_PERSISTENCE": "true",
        "FACTORY_DROID_AUTO_UPDATE_ENABLED": "false",
        "FACTORY_LOG_FILE": "/dev/stderr",  # it retries for minutes, and says so nowhere else
    }
    if Path(login(os.environ, Path.home()).by).name == Path(_SETTINGS).name:
        env["FACTORY_AIRGAP_ENABLED"] = "true"  # only models of the user's own: it needs nothing of Factory's
    settings: dict[str, Any] = {"cloudSessionSync": False}
    if session.hooks is not None:
        env |= session.hooks.env
        settings["hooks"] = _hooks(session.hooks)
    files = {_RUNTIME: json.dumps(settings, indent=2) + "\n"}
    return Launch(tuple(argv), prompt.encode("utf-8", "replace"), env, files)


def _hooks(hooks: HookFiles) -> dict[str, Any]:
    return {
        event: [
            {
                "hooks": [
                    {
                        "type": "command",
                        "command": hooks.call(event, NAME),
                        "timeout": _TIMEOUTS.get(event, _TIMEOUT),
                    }
                ]
            }
        ]
        for event in _EVENTS
    }


def reader() -> Reader:
    return DroidEvents()
