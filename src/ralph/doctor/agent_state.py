"""Is the agent of a workspace installed, does it start, is it logged in? No network call is made."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from ralph.agents.claude_version import advice
from ralph.agents.registry import agent as find_agent
from ralph.core.ports import Session
from ralph.doctor.doctor import Finding, fail, ok, warn
from ralph.doctor.probes import NO_ANSWER, version_of
from ralph.host.files import read_state
from ralph.state.places import home

_CLAUDE_KEYS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
    "CLAUDE_CODE_USE_FOUNDRY",
)
_START_WITHIN = 15.0
_INSTALL = "npm install -g @anthropic-ai/claude-code"
_BROKEN = f"reinstall it: `{_INSTALL}`"
_NOT_CLAUDE = "if agent.command is not Claude Code, also set agent.name to `command`; otherwise correct agent.command"


def client(name: str, session: Session, env: Mapping[str, str], *, trusted: bool) -> Finding:
    """The path of its program. Raises SetupError if there is none. Claude Code is started once, with `--version`.

    `trusted`: the commands of the workspace may run. Otherwise a program that agent.command names is not started.
    """
    program = find_agent(name).find(session, env.get("PATH", ""))
    if session.command and not trusted:
        return warn(
            f"{name}: {program} was not started: the commands of the workspace are not trusted",
            "review them with `ralph trust`",
        )
    if name != "claude":
        return ok(f"{name}: {program}")
    version = version_of(program, env, _START_WITHIN)
    if version == NO_ANSWER:
        return warn(
            f"claude ({program}) did not answer `--version` within {_START_WITHIN:.0f} s", "run it by hand to see why"
        )
    if version.startswith("("):
        failure = version.strip("()").removeprefix("--version ")
        return fail(
            f"claude cannot start: `{program} --version` {failure}", _NOT_CLAUDE if session.command else _BROKEN
        )
    if known := advice(version):
        return warn(f"claude {version} ({program}): {known}", f"`{_INSTALL}`")
    return ok(f"claude {version} ({program})")


def login(name: str, env: Mapping[str, str]) -> Iterator[Finding]:
    """Look for the credentials that Claude Code uses. Whether they are still valid shows when a run starts."""
    if name != "claude":
        return
    if present := [key for key in _CLAUDE_KEYS if env.get(key)]:
        yield ok(f"by {present[0]}")
    elif where := _stored_login(Path(env.get("CLAUDE_CONFIG_DIR") or home(env) / ".claude"), home(env)):
        yield ok(f"by {where}")
    else:
        yield warn(
            "Claude Code does not appear to be logged in", "run `claude` once and log in, or set ANTHROPIC_API_KEY"
        )


def _stored_login(folder: Path, user: Path) -> str:
    if (folder / ".credentials.json").is_file():
        return str(folder / ".credentials.json")
    for path in (folder / ".claude.json", user / ".claude.json"):
        try:
            known = json.loads(read_state(path))
        except (OSError, ValueError):
            continue
        if isinstance(known, dict) and (known.get("oauthAccount") or known.get("primaryApiKey")):
            return str(path)
    return ""
