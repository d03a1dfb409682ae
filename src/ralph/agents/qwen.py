"""Qwen Code: `qwen --output-format stream-json`, a stream like Claude Code's."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ralph.agents.program import argument, find_client, host_of
from ralph.agents.qwen_events import QwenEvents
from ralph.core.agent_traits import AgentTraits, Rehearsal
from ralph.core.ports import HookFiles, Launch, Login, Reader, Session

NAME = "qwen"
TITLE = "Qwen Code"
HOOKS = True
REPORTS_CALLS = True
ENV = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "ANTHROPIC_MODEL",
    "BAILIAN_*",
    "DASHSCOPE_*",
    "GEMINI_API_KEY",
    "GEMINI_MODEL",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "NO_PROXY",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "OPENAI_MODEL",
    "QWEN_API_KEY",
    "QWEN_BASE_URL",
    "QWEN_CODE_API_TIMEOUT_MS",
    "QWEN_CODE_MAX_OUTPUT_TOKENS",
    "QWEN_CUSTOM_API_KEY_*",
    "QWEN_HOME",
    "QWEN_MODEL",
    "http_proxy",
    "https_proxy",
    "no_proxy",
)
LOGIN = (
    Login(".qwen/settings.json", variable="QWEN_HOME"),
    Login(".qwen/oauth_creds.json", comes_back=True, variable="QWEN_HOME"),
    Login(".qwen/.env", variable="QWEN_HOME"),
)
"""Its settings list the providers of models, with their keys."""
TRAITS = AgentTraits(
    program="qwen",
    install="npm install -g @qwen-code/qwen-code",
    tried="0.24.4",
    log_in="run `qwen` once and use /auth, or set OPENAI_API_KEY, OPENAI_BASE_URL and OPENAI_MODEL",
    keys=("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"),
    cannot={"limit": "it passes on the service's message, without the time of the reset"},
    notes=(
        "Version 0.24 needs Node.js 22; npm on an older one installs 0.15 without a word.",
        "Hooks of your own run beside Ralph's; extensions and MCP servers are switched off.",
        "It retries a failed request for about 75 seconds before it reports anything.",
    ),
)
_HOSTS = (
    *("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com", "dashscope-us.aliyuncs.com"),
    *("coding.dashscope.aliyuncs.com", "coding-intl.dashscope.aliyuncs.com", "chat.qwen.ai", "portal.qwen.ai"),
)
_ADDRESSES = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "QWEN_BASE_URL")

_SETTINGS = "qwen-settings.json"
_RUNTIME = "runtime"
_RETRIES = {"maxRetries": 0}
"""The client makes seven attempts by itself, in about 75 seconds. Its defaults multiply that by up to thirty; the loop
retries."""
_UNUSABLE = ("ask_user_question", "exit_plan_mode", "enter_plan_mode", "enter_worktree", "exit_worktree", "save_memory")
"""Tools that wait for the user (questions go into the request file), leave the workspace, or write into the user's own
folder."""
_EVENTS = ("SessionStart", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop", "SessionEnd")
"""Without UserPromptSubmit, which it reports for every result of a tool, too."""
_TIMEOUTS = {"Stop": 30, "SessionEnd": 5}
_TIMEOUT = 15
"""Seconds."""


def find(session: Session, path: str) -> str:
    return find_client(session, path, TITLE, TRAITS)


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    """The hosts that the client contacts, for a sandbox: with a gateway of the user's, only that one."""
    given = tuple(host_of(env[name]) for name in _ADDRESSES if env.get(name))
    if given or not env.get("OPENAI_API_KEY"):
        return given or _HOSTS
    return ("api.openai.com", *_HOSTS)


def rehearse(address: str) -> Rehearsal:
    env = {"OPENAI_API_KEY": "test-key", "OPENAI_BASE_URL": f"{address}/v1", "OPENAI_MODEL": "scripted-1"}
    return Rehearsal(env=env)


def launch(session: Session, program: str) -> Launch:
    """Ralph's settings take the place of the system's, which override the user's and the project's."""
    argv = [program, *session.command[1:], "--output-format", "stream-json", "--extensions", "none"]
    if session.model:
        argv += ["--model", argument(session.model)]
    if session.system:
        argv += ["--append-system-prompt", argument(session.system)]
    if session.fallback_model:
        argv += ["--fallback-model", argument(session.fallback_model)]
    if session.rights.permissions != "client":
        argv += ["--approval-mode", "yolo"]
    for folder in (*session.rights.folders, *([str(session.checkout)] if session.checkout else ())):
        argv += ["--add-dir", argument(folder)]
    env = {
        "QWEN_CODE_SUPPRESS_YOLO_WARNING": "1",
        "QWEN_CODE_SYSTEM_SETTINGS_PATH": str(session.folder / _SETTINGS),
        "QWEN_CODE_UNATTENDED_RETRY": "0",
        "QWEN_DISABLE_AUTO_TITLE": "1",
        "QWEN_RUNTIME_DIR": str(session.folder / _RUNTIME),
        "QWEN_TELEMETRY_ENABLED": "0",
        "QWEN_USAGE_STATISTICS_ENABLED": "0",
    }
    if session.hooks is not None:
        env |= session.hooks.env
    files = {_SETTINGS: json.dumps(_settings(session), indent=2) + "\n"}
    return Launch(tuple(argv), session.prompt.encode("utf-8", "replace"), env, files)


def _settings(session: Session) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "general": {
            "chatRecording": session.keep,
            "enableAutoUpdate": False,
            "gitCoAuthor": {"commit": False, "pr": False},
        },
        "mcp": {"allowed": ["-"]},  # none has this name
        "memory": {"enableManagedAutoMemory": False, "enableManagedAutoDream": False, "enableAutoSkill": False},
        "model": {"generationConfig": _RETRIES},
        "permissions": {
            "allow": _rules(session.rights.allowed_tools),
            "deny": [*_UNUSABLE, *_rules(session.rights.disallowed_tools)],
        },
        "privacy": {"usageStatisticsEnabled": False},
        "security": {"folderTrust": {"enabled": False}},  # `ralph trust` has asked
        "telemetry": {"enabled": False},
    }
    if session.hooks is not None:
        settings |= {"disableAllHooks": False, "hooks": {event: [_hook(event, session.hooks)] for event in _EVENTS}}
    return settings


def _rules(given: str) -> list[str]:
    """The client understands Claude Code's rules for tools, and its names for them."""
    return [rule.replace(":*)", " *)") for rule in re.findall(r"\w+(?:\([^)]*\))?", given)]


def _hook(event: str, hooks: HookFiles) -> dict[str, Any]:
    call = {"type": "command", "name": f"ralph-{event}", "command": hooks.call(event, NAME)}
    return {"hooks": [call | {"timeout": _TIMEOUTS.get(event, _TIMEOUT)}]}


def reader() -> Reader:
    return QwenEvents()
