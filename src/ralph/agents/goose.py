"""goose: `goose run --output-format stream-json`, with Ralph's hooks as a plugin of its own."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from pathlib import Path

from ralph.agents.goose_events import GooseEvents
from ralph.agents.program import argument, find_client, host_of
from ralph.core.agent_traits import AgentTraits, LoginState, Rehearsal
from ralph.core.ports import HookFiles, Launch, Login, Reader, Session

NAME = "goose"
TITLE = "goose"
HOOKS = True
REPORTS_CALLS = True
_PROVIDERS = {
    "openai": ("OPENAI_", "api.openai.com"),
    "anthropic": ("ANTHROPIC_", "api.anthropic.com"),
    "google": ("GOOGLE_", "generativelanguage.googleapis.com"),
    "openrouter": ("OPENROUTER_", "openrouter.ai"),
    "groq": ("GROQ_", "api.groq.com"),
    "xai": ("XAI_", "api.x.ai"),
    "databricks": ("DATABRICKS_", "*.databricks.com"),
    "azure_openai": ("AZURE_OPENAI_", "*.openai.azure.com"),
    "litellm": ("LITELLM_", ""),
    "ollama": ("OLLAMA_", ""),
}
"""GOOSE_PROVIDER → how its variables begin, and its host."""
ENV = (
    "GOOSE_*",
    *(f"{prefix}*" for prefix, _ in _PROVIDERS.values()),
    *("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "SSL_CERT_FILE"),
)
LOGIN = (Login(".config/goose/config.yaml"), Login(".config/goose/secrets.yaml"))
TRAITS = AgentTraits(
    program="goose",
    install="brew install block-goose-cli",
    tried="1.52.0",
    log_in="run `goose configure`, or set GOOSE_PROVIDER, GOOSE_MODEL and the provider's key, such as OPENAI_API_KEY",
    keys=tuple(f"{prefix}API_KEY" for prefix, host in _PROVIDERS.values() if host and "*" not in host),
    notes=(
        "Needs goose 1.35 or later: earlier versions run a tool although a hook denies it, so a run stops them.",
        "A key in the system's keyring is out of reach in a sandbox: set its variable, or GOOSE_DISABLE_KEYRING.",
        "Extensions of your own configuration are not loaded, only goose's tools for files and commands.",
    ),
)
_ADDRESSES = ("OPENAI_HOST", "OPENAI_BASE_URL", "ANTHROPIC_HOST", "OLLAMA_HOST", "LITELLM_HOST", "DATABRICKS_HOST")
_PLUGIN = ".agents/plugins/ralph"
_TIMEOUTS = {"Stop": 30, "SessionEnd": 5}
_TIMEOUT = 15
_EVENTS = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd")
_TOO_OLD = "*1.[0-9].*|*1.[12][0-9].*|*1.3[0-4].*"
"""Versions, as a shell pattern, that ignore what a hook denies. There no hook runs, and the canary stops the client."""
_BLOCKS = "9"
"""More than Ralph's own limit for blocks in a row."""


def find(session: Session, path: str) -> str:
    return find_client(session, path, TITLE, TRAITS)


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    settings = _settings(env) | dict(env)
    if given := tuple(host_of(settings[name]) for name in _ADDRESSES if settings.get(name)):
        return given
    known = _PROVIDERS.get(settings.get("GOOSE_PROVIDER", ""))
    return tuple(host for _, host in ([known] if known else _PROVIDERS.values()) if host)


def login(env: Mapping[str, str], home: Path) -> LoginState:
    if key := next((key for key in TRAITS.keys if env.get(key)), ""):
        return LoginState(key)
    if (file := _config(env, home) / "secrets.yaml").is_file():
        return LoginState(str(file))
    # The key may be in the system's keyring.
    configured = (_config(env, home) / "config.yaml").is_file() or env.get("GOOSE_PROVIDER")
    return LoginState(is_known=not configured)


def _settings(env: Mapping[str, str]) -> dict[str, str]:
    """The plain values in the user's own settings."""
    try:
        text = (_config(env, Path(env.get("HOME") or "/nonexistent")) / "config.yaml").read_text(errors="replace")
    except OSError:
        return {}
    return {key: value.strip("\"'") for key, value in re.findall(r"(?m)^([A-Z][A-Z_]*): *(\S+) *$", text)}


def _config(env: Mapping[str, str], home: Path) -> Path:
    return Path(env.get("XDG_CONFIG_HOME") or home / ".config") / "goose"


def rehearse(address: str) -> Rehearsal:
    provider = {"GOOSE_PROVIDER": "openai", "OPENAI_HOST": address, "OPENAI_API_KEY": "test-key"}
    return Rehearsal(env=provider | {"GOOSE_DISABLE_KEYRING": "1"}, model="scripted")


def launch(session: Session, program: str) -> Launch:
    """In a root folder of its own: the user's settings are read from there, nothing is written to them."""
    argv = [program, *session.command[1:], "run", "--quiet", "--no-session", "--output-format", "stream-json"]
    argv += ["--no-profile", "--with-builtin", "developer", "--instructions", "-"]
    if session.model:
        argv += ["--model", argument(session.model)]
    env = {
        "GOOSE_PATH_ROOT": str(session.folder),
        "GOOSE_ADDITIONAL_CONFIG_FILES": str(session.folder / "user.yaml"),
        "GOOSE_DISABLE_SESSION_NAMING": "true",  # else a request of its own for a title
        "GOOSE_TELEMETRY_ENABLED": "false",
        "GOOSE_TELEMETRY_OFF": "1",
    }
    if session.rights.permissions != "client":
        env["GOOSE_MODE"] = "auto"
    files = {}
    if session.hooks is not None:
        env |= session.hooks.env | {"GOOSE_STOP_HOOK_BLOCK_CAP": _BLOCKS}
        files[f"{_PLUGIN}/plugin.json"] = json.dumps({"name": "ralph", "version": "1.0.0"})
        files[f"{_PLUGIN}/hooks/hooks.json"] = json.dumps(_plugin(session.hooks, program))
    own = _config(os.environ, Path.home())
    links = {"user.yaml": str(own / "config.yaml")}
    links |= {f"config/{name}": str(own / name) for name in ("secrets.yaml", "custom_providers")}
    text = f"{session.system}\n\n{session.prompt}" if session.system else session.prompt
    return Launch(tuple(argv), text.encode("utf-8", "replace"), env, files, links)


def _plugin(hooks: HookFiles, program: str) -> dict[str, object]:
    def entry(event: str) -> dict[str, object]:
        is_new = f'case "$({shlex.quote(program)} --version)" in {_TOO_OLD}) exit 0;; esac; '
        action: dict[str, object] = {"type": "command", "command": is_new + hooks.call(event, NAME)}
        action["timeout"] = _TIMEOUTS.get(event, _TIMEOUT)
        if event == "PreToolUse":
            action["on_failure"] = "block"
        return {"hooks": [action]}

    return {"hooks": {event: [entry(event)] for event in _EVENTS}}


def reader() -> Reader:
    return GooseEvents()
