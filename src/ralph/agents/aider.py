"""aider: `aider --message-file`. One answer of the model a session, which edits files by its text; no tools, no shell.

It is told not to commit: it would ask the model once more for a message, and skip the hooks of git. The loop commits.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ralph.agents.aider_output import LOG, AiderOutput
from ralph.agents.program import argument, find_client, host_of
from ralph.core.agent_traits import AgentTraits, Rehearsal
from ralph.core.errors import RalphError
from ralph.core.ports import Launch, Login, Reader, Session
from ralph.host.git.command import try_ask

NAME = "aider"
TITLE = "aider"
HOOKS = False
REPORTS_CALLS = True
_SERVICES = {
    "OPENAI": "api.openai.com",
    "ANTHROPIC": "api.anthropic.com",
    "GEMINI": "generativelanguage.googleapis.com",
    "OPENROUTER": "openrouter.ai",
    "DEEPSEEK": "api.deepseek.com",
    "GROQ": "api.groq.com",
    "MISTRAL": "api.mistral.ai",
    "XAI": "api.x.ai",
}
ENV = (
    "AIDER_*",
    *(f"{name}_*" for name in _SERVICES),
    *("AZURE_API_*", "OLLAMA_API_*", "SSL_CERT_FILE"),
    *("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)
LOGIN = (
    Login(".aider.conf.yml"),
    Login(".aider.model.settings.yml"),
    Login(".aider.model.metadata.json"),
)
"""Its settings, which may hold a key."""
_ONCE = "the session of aider is one answer of the model"
_NO_SHELL = "aider runs no commands by itself"
TRAITS = AgentTraits(
    program="aider",
    install="python -m pip install aider-install && aider-install",
    tried="0.86.2",
    log_in="set the key of the model's service, such as OPENAI_API_KEY, or put it into ~/.aider.conf.yml",
    keys=tuple(f"{name}_API_KEY" for name in _SERVICES),
    reports_cost=True,
    cannot={
        "tools": _NO_SHELL,
        "signal": _NO_SHELL,
        "leftovers": _NO_SHELL,
        "limit": "aider does not pass on when a limit ends",
        "late": f"{_ONCE}, and files are edited when it has ended",
    },
    notes=(
        "It edits files and runs no commands: the checks run after the session, and the next one is told what failed.",
        "It sees the files that the prompt names, and those that the model then asks for.",
        "It gets its map of the repository only if git ignores `.aider*`, because it keeps a cache in the project.",
    ),
)
_ADDRESSES = ("OPENAI_API_BASE", "ANTHROPIC_API_BASE", "AIDER_OPENAI_API_BASE", "OLLAMA_API_BASE", "AZURE_API_BASE")
_MESSAGE, _FILES = "message.md", "files.txt"
_MOST_FILES = 1000
_CACHE = ".aider.tags.cache.v4"
_HOW = """\
You cannot run commands, and this session is one answer: put every edit into it, {request}. To see a file that is not \
in the chat, answer with its path alone, without edits, and you are asked again. Do not commit."""
_OPTIONS = (
    *("--yes-always", "--no-pretty", "--no-fancy-input", "--no-stream", "--no-suggest-shell-commands"),
    *("--no-auto-commits", "--no-dirty-commits", "--no-gitignore", "--add-gitignore-files"),
    *("--no-analytics", "--no-check-update", "--no-show-release-notes", "--no-show-model-warnings"),
    *("--no-detect-urls", "--disable-playwright", "--no-restore-chat-history"),
)
"""Without streaming it reports the tokens that the service counted, not an estimate."""


def find(session: Session, path: str) -> str:
    return find_client(session, path, TITLE, TRAITS)


def hosts(env: Mapping[str, str]) -> tuple[str, ...]:
    if given := tuple(host_of(env[name]) for name in _ADDRESSES if env.get(name)):
        return given
    chosen = tuple(host for name, host in _SERVICES.items() if env.get(f"{name}_API_KEY"))
    return chosen or tuple(_SERVICES.values())


def rehearse(address: str) -> Rehearsal:
    service = {"OPENAI_API_BASE": f"{address}/v1", "OPENAI_API_KEY": "test-key", "AIDER_EDIT_FORMAT": "diff"}
    return Rehearsal(env=service, model="openai/scripted-text")


def launch(session: Session, program: str) -> Launch:
    folder = session.folder
    argv = [program, *session.command[1:], *_OPTIONS, "--message-file", str(folder / _MESSAGE)]
    argv += ["--analytics-log", str(folder / LOG)]
    argv += [f"--{name}-history-file={os.devnull}" for name in ("input", "chat")]
    if session.model:
        argv += ["--model", argument(session.model)]
    told = ""
    if session.request is not None:
        # Git ignores this file, and so does aider unless it is in the chat.
        argv += ["--file", str(session.request)]
        told = f"also those of {session.request.name}"
    text = "\n\n".join(filter(None, (_HOW.format(request=told or "and explain it"), session.system, session.prompt)))
    files = {_MESSAGE: text.replace("\0", "")}
    if not _has_map(session.cwd):
        argv += ["--map-tokens", "0", "--read", str(folder / _FILES)]
        files[_FILES] = _listed(session.cwd)
    env = {"COLUMNS": "1000000", "BROWSER": "true"}
    return Launch(tuple(argv), b"", env, files)


def _has_map(cwd: Path) -> bool:
    try:
        magic = {"GIT_LITERAL_PATHSPECS": "0"}  # check-ignore refuses literal pathspecs
        return try_ask(cwd, "check-ignore", "--quiet", "--", _CACHE, env_extra=magic).code == 0
    except RalphError:
        return False


def _listed(cwd: Path) -> str:
    """The files of the project, instead of the map."""
    try:
        answer = try_ask(cwd, "ls-files", "-z")
    except RalphError:
        return ""
    names = answer.out.decode("utf-8", "replace").split("\0")[:_MOST_FILES] if answer.code == 0 else []
    return "The files of this repository:\n\n" + "\n".join(name for name in names if name.isprintable()) + "\n"


def reader() -> Reader:
    return AiderOutput()
