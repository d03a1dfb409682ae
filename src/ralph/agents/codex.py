"""Codex CLI: `codex exec --json`, with a private CODEX_HOME of the user's login and settings and Ralph's hooks."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from ralph.agents.codex_config import config, home_of, provider, toml, user_settings
from ralph.agents.codex_events import CodexEvents
from ralph.agents.program import argument, find_client, host_of
from ralph.agents.untyped import text
from ralph.core.agent_traits import AgentTraits, LoginState, Rehearsal
from ralph.core.ports import HookFiles, Launch, Login, Reader, Session

NAME = "codex"
TITLE = "Codex CLI"
HOOKS = True
REPORTS_CALLS = True
ENV = (
    "AZURE_OPENAI_API_KEY",
    "CODEX_ACCESS_TOKEN",
    "CODEX_API_KEY",
    "CODEX_CA_CERTIFICATE",
    "CODEX_OSS_*",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "OPENAI_*",
    "SSL_CERT_FILE",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
LOGIN = (Login(".codex/auth.json", comes_back=True),)
TRAITS = AgentTraits(
    program="codex",
    install="npm install -g @openai/codex",
    tried="0.166.0",
    log_in="run `codex login`, or set CODEX_API_KEY; it does not read OPENAI_API_KEY",
    keys=("CODEX_API_KEY", "CODEX_ACCESS_TOKEN"),
    unguarded="web searches, which the service runs itself",
    notes=(
        "Your config.toml applies, without its hooks, plugins, MCP servers, `notify` and trusted projects.",
        "A login in the system's keyring is not found: set `cli_auth_credentials_store` to `file` and log in again.",
    ),
    own_rules="it is read-only and changes nothing, unless `sandbox_mode` is set in your config.toml",
)
_FOLDER = "codex"
"""In the session's folder: its CODEX_HOME."""
_HOSTS = ("api.openai.com", "chatgpt.com", "auth.openai.com")
"""The service with a key, with a login, and where a login is renewed."""
_EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")


def find(session: Session, path: str) -> str:
    return find_client(session, path, TITLE, TRAITS)


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    """With a model provider of the user's own, only that one."""
    settings = user_settings(env)
    given = text(provider(settings).get("base_url")) or text(settings.get("openai_base_url"))
    return (host_of(given),) if given else _HOSTS


def login(env: Mapping[str, str], home: Path) -> LoginState:
    if key := next((key for key in TRAITS.keys if env.get(key)), ""):
        return LoginState(key)
    own = provider(user_settings(env, home))
    if (key := text(own.get("env_key"))) and env.get(key):
        return LoginState(key)
    file = home_of(env, home) / "auth.json"
    return LoginState(str(file) if file.is_file() else "")


def rehearse(address: str) -> Rehearsal:
    scripted = {"name": "scripted", "base_url": f"{address}/v1", "env_key": "SCRIPTED_KEY", "wire_api": "responses"}
    settings = {"model_provider": "scripted", "model_providers": {"scripted": scripted}}
    return Rehearsal(
        env={"SCRIPTED_KEY": "test-key"},
        files={".codex/config.toml": "".join(f"{key} = {toml(value)}\n" for key, value in settings.items())},
        model="scripted",
    )


def launch(session: Session, program: str) -> Launch:
    """A private CODEX_HOME, because the option that lets Ralph's hooks run would let all of the user's run, too."""
    own, folder = home_of(os.environ), session.folder / _FOLDER
    argv = [program, *session.command[1:], "exec", "--json", "--skip-git-repo-check"]
    files = {f"{_FOLDER}/config.toml": config(session.system)}
    links = {f"{_FOLDER}/auth.json": str(own / "auth.json")}
    env = {"CODEX_HOME": str(folder)}
    key = text(provider(user_settings(os.environ)).get("env_key"))
    if key and key in os.environ:  # the key of a model provider of the user's own
        env[key] = os.environ[key]
    if session.keep:
        links[f"{_FOLDER}/sessions"] = str(own / "sessions")
    else:
        argv.append("--ephemeral")
    if session.rights.permissions == "client":
        argv += [f"--add-dir={argument(each)}" for each in session.rights.folders if Path(each).is_dir()]
        links[f"{_FOLDER}/rules"] = str(own / "rules")
    else:
        argv.append("--dangerously-bypass-approvals-and-sandbox")
    if session.hooks is not None:
        argv.append("--dangerously-bypass-hook-trust")
        files[f"{_FOLDER}/hooks.json"] = _hooks(session.hooks)
        env |= session.hooks.env
    if "WebSearch" in session.rights.disallowed_tools:
        argv += ["-c", "web_search=disabled"]
    if session.model:
        argv += ["--model", argument(session.model)]
    return Launch((*argv, "-"), session.prompt.encode("utf-8", "replace"), env, files, links)


def _hooks(hooks: HookFiles) -> str:
    def entry(event: str) -> list[dict[str, object]]:
        return [{"hooks": [{"type": "command", "command": hooks.call(event, NAME)}]}]

    return json.dumps({"hooks": {event: entry(event) for event in _EVENTS}}, indent=1)


def reader() -> Reader:
    return CodexEvents()
