"""The private configuration of a Codex process: the user's `config.toml`, without what would run beside the agent."""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ralph.agents.untyped import members, text

_DROPPED = ("hooks", "marketplaces", "mcp_servers", "notify", "plugins", "projects")
"""Hooks, plugins and MCP servers of the user's own. A project that is not trusted has no hooks of its own either."""
_OFF = (
    "apps",
    "plugins",  # else it clones a repository of them
    "shell_snapshot",
    "unbounded_connection_retries",  # else it waits for the network for ever
    "unified_exec_tty",  # what is typed into a shell that is already open passes no hook
)
"""Features that are switched off. A version without one of them ignores it."""


def home_of(env: Mapping[str, str], home: Path | None = None) -> Path:
    """The user's own folder of Codex."""
    return Path(env.get("CODEX_HOME") or (home or Path(env.get("HOME") or Path.home())) / ".codex")


def user_settings(env: Mapping[str, str], home: Path | None = None) -> dict[str, Any]:
    """Empty if the file is missing or not valid."""
    try:
        return tomllib.loads((home_of(env, home) / "config.toml").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def provider(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The user's own model provider; empty if it is one that Codex knows."""
    return members(members(settings.get("model_providers")).get(text(settings.get("model_provider"))))


def config(system: str) -> str:
    """The text of the private `config.toml`. `system` is added to the instructions of the developer."""
    path = home_of(os.environ) / "config.toml"
    try:
        source = path.read_text(encoding="utf-8")
        settings = tomllib.loads(source)
    except OSError:
        settings = {}
    except ValueError:
        return source  # Codex reports the error, with its line
    wanted = {key: value for key, value in settings.items() if key not in _DROPPED}
    wanted["analytics"] = {"enabled": False}  # sending them holds up the exit for five seconds
    wanted["check_for_update_on_startup"] = False
    wanted["features"] = members(wanted.get("features")) | {"hooks": True} | dict.fromkeys(_OFF, False)
    wanted["skills"] = members(wanted.get("skills")) | {"bundled": {"enabled": False}}
    if system:
        instructions = filter(None, (text(wanted.get("developer_instructions")), system))
        wanted["developer_instructions"] = "\n\n".join(instructions)
    return "".join(f"{_string(key)} = {toml(value)}\n" for key, value in wanted.items())


def toml(value: Any) -> str:
    """A value on one line."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return _string(value)
        case dict():
            return "{" + ", ".join(f"{_string(key)} = {toml(inner)}" for key, inner in value.items()) + "}"
        case list():
            return "[" + ", ".join(map(toml, value)) + "]"
        case float() if not math.isfinite(value):
            return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
        case int() | float():
            return repr(value)
        case _:
            return str(value.isoformat())  # a date or a time


def _string(value: str) -> str:
    """JSON's form, except that TOML does not have halves of characters, and DEL only escaped."""
    plain = value.encode("utf-8", "replace").decode()
    return json.dumps(plain, ensure_ascii=False).replace("\x7f", "\\u007f")
