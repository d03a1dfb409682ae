"""Write the policy for one session's hooks and the client settings that call them, outside the workspace."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ralph.agents.registry import agent as find_agent
from ralph.config.schema import Config
from ralph.core.agent_traits import traits_of
from ralph.core.permissions import Rights
from ralph.core.plan import Mode
from ralph.core.ports import HookFiles, Locations, PlanRef
from ralph.core.run_ports import Attempt
from ralph.host.files import make_folder, write_bytes
from ralph.host.git.repo import find_repository
from ralph.host.process.tree import identify
from ralph.state.names import ANSWERED, CLIENT_SETTINGS, HOOK_SESSIONS, PLAN_BEFORE, POLICY, RECORDS
from ralph.state.places import home
from ralph.workspace.own_files import RequestFiles, bookkeeping

EVENTS = (
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Stop",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
)
_INSTALLED_IN = Path(__file__).resolve().parents[2]
_TIMEOUTS = {"Stop": 30, "SessionEnd": 5}
_TIMEOUT = 15
_TOOLS = "*"

_NOT_STARTED = "Ralph's hook could not start, so this call was not checked and is denied. End your turn."
_OR_DENY = f" || {{ echo {shlex.quote(_NOT_STARTED)} >&2; exit 2; }}"

PROTECTED = (
    ".ralph/config.yaml",
    ".ralph/config.yml",
    ".ralph/configs",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".aider.conf.yml",
    ".clinerules/hooks",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".factory/settings.json",
    ".gemini/settings.json",
    ".github/hooks",
    ".opencode/plugin",
    ".opencode/plugins",
    ".pi/extensions",
    ".pi/settings.json",
    ".qwen/settings.json",
    "opencode.json",
    "opencode.jsonc",
)
"""Files in the workspace that define what runs and what is allowed."""


def prepare_hooks(
    ref: PlanRef,
    where: Locations,
    config: Config,
    attempt: Attempt,
    run: str,
    folder: Path,
    env: Mapping[str, str],
    *,
    alone: bool = False,
    checkout: Path | None = None,
) -> HookFiles:
    """Write policy and settings for one client process. `folder` is the run's own, in the state folder.

    `alone`: the hooks run where they cannot see the loop's process; what they see ends with the loop.
    `checkout`: the user's, if the agent finds its clone at that path, too.
    """
    state = make_folder(folder / HOOK_SESSIONS / f"{attempt.number:04}", private=True)
    nonce = os.urandom(16).hex()
    records = state / RECORDS
    policy_path = state / POLICY
    for left in (records, state / ANSWERED):  # by an earlier session of the same iteration
        left.unlink(missing_ok=True)
    request = RequestFiles(ref.root, ref.folder).request
    repo = find_repository(ref.root, config.repo or None, home(env))
    policy = {
        "nonce": nonce,
        "pid": 1 if alone else os.getpid(),
        "pid_start": me.start if not alone and (me := identify(os.getpid())) else "",
        "run": run,
        "story": attempt.work.story,
        "mode": attempt.mode.value,
        "iteration": attempt.number,
        "workspace": str(ref.root),
        "state": str(state),
        "records": str(records),
        "permissions": config.permissions,
        "web": config.web,
        "writable": writable_places(env, config, ref.root),
        "repository": str(repo),
        "checkout": str(checkout or ""),
        "clone": str(repo) if checkout else "",
        "protected": protected_places(ref, where, config),
        "own": bookkeeping(ref, where, repo, config).paths_in(repo),
        "read_before_edit": config.read_before_edit,
        "rollback": config.rollback,
        "guard": guard_section(config),
        "stop_command": stop_command(),
        "layout": ref.layout,
        "plan": str(ref.path),
        "review": config.review.when == "always",
        "review_cap": config.review.cap,
        "require_commit": config.require_commit and attempt.mode not in (Mode.ACCEPTANCE, Mode.EXAM),
        "request": str(request),
        "unreviewed": [s.id for s in attempt.reading.plan.stories if s.is_done and s.review.status is None],
    }
    write_bytes(state / PLAN_BEFORE, attempt.reading.source, mode=0o600, durable=False)
    write_bytes(policy_path, as_json(policy), mode=0o600, durable=False)
    settings_path = state / CLIENT_SETTINGS
    write_bytes(settings_path, msgspec.json.encode(client_settings(strict=True)), mode=0o600, durable=False)
    variables = {"RALPH_POLICY": str(policy_path), "RALPH_NONCE": nonce}
    return HookFiles(settings_path, variables, records, state, hook_command(), _OR_DENY)


def client_settings(command: str = "", *, strict: bool = False) -> dict[str, Any]:
    """The hooks in the client's own form. The interpreter is this one, by its full path.

    `strict`, for the sessions of a run: a hook that cannot even start denies the tool call.
    """
    return {"hooks": {event: [hook_entry(event, command, strict=strict)] for event in EVENTS}}


def hook_entry(event: str, command: str = "", *, strict: bool = False) -> dict[str, Any]:
    call = f"{command or hook_command()} {event}"
    if strict and event == "PreToolUse":
        call += _OR_DENY
    entry: dict[str, Any] = {"hooks": [{"type": "command", "command": call, "timeout": _TIMEOUTS.get(event, _TIMEOUT)}]}
    if event.endswith(("ToolUse", "ToolUseFailure")):
        entry = {"matcher": _TOOLS} | entry
    return entry


def hook_command() -> str:
    """`python -I -m ralph.hooks`, twice as fast: without `site` and `runpy`, with its folder named instead.

    If Ralph is no longer installed this exits with 1, which a client ignores. A missing script would exit with 2, which
    denies every tool call.
    """
    code = f"import sys; sys.path.append({_literal(str(_INSTALLED_IN))}); from ralph.hooks.entry import main; main()"
    return f"{shlex.quote(sys.executable)} -I -S -c {shlex.quote(code)}"


def _literal(text: str) -> str:
    """In double quotes if possible: the whole command is in single quotes."""
    return repr(text) if set(text) & set("\"'\\") or not text.isprintable() else f'"{text}"'


def writable_places(env: Mapping[str, str], config: Config | None = None, root: Path | None = None) -> list[str]:
    """Folders outside the workspace that an agent may write to, each as written and as resolved on disk."""
    folders = {env.get("TMPDIR") or "/tmp", "/tmp", "/var/tmp", "/dev/null"}
    folders |= set(allowed_folders(config, root or Path.cwd(), env) if config else ())
    return sorted(folders | {os.path.realpath(folder) for folder in folders})


def allowed_folders(config: Config, root: Path, env: Mapping[str, str]) -> list[str]:
    """`allow_paths` as absolute paths, relative ones resolved from the workspace. Never the file system root."""
    own = str(home(env))
    expanded = [own + path[1:] if path == "~" or path.startswith("~/") else path for path in config.allow_paths]
    return [folder for path in expanded if (folder := os.path.normpath(root / path)) != "/"]


def protected_places(ref: PlanRef, where: Locations, config: Config) -> list[str]:
    requirements = [f"./{os.path.relpath(where.requirements, ref.root)}"] if where.requirements else []
    return [*PROTECTED, *requirements, *config.protected]


def guard_section(config: Config) -> dict[str, Any]:
    guard = config.guard
    return {
        "enabled": guard.enabled,
        "allow": [msgspec.to_builtins(rule) for rule in guard.allow],
        "deny": [msgspec.to_builtins(rule) for rule in guard.deny],
    }


def rights_of(config: Config) -> Rights:
    traits = traits_of(find_agent(config.agent.name))
    return Rights(
        mode=config.permissions,
        agent=config.agent.name,
        has_hooks=find_agent(config.agent.name).HOOKS,
        web=config.web == "allow",
        allow_paths=config.allow_paths,
        guards_commands=config.guard.enabled,
        allowed_tools=config.agent.allowed_tools,
        unguarded=traits.unguarded,
        own_rules=traits.own_rules,
    )


def stop_command() -> list[str]:
    """The command of the Stop hook: the loop's own rules, in a separate process."""
    return [sys.executable, "-I", "-m", "ralph", "hooks", "at-stop"]


def as_json(policy: Mapping[str, Any]) -> bytes:
    """As ASCII, because a path may have bytes that are not UTF-8."""
    return json.dumps(msgspec.to_builtins(policy)).encode()
