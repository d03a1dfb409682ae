"""Probes of this machine: programs, agent clients and their login, disk, terminal, sandbox. They use no network."""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from ralph.agents.claude_version import advice
from ralph.agents.registry import agent as find_agent
from ralph.core.agent_traits import login_of, traits_of
from ralph.core.errors import SetupError
from ralph.core.ports import Session
from ralph.core.text import one_line
from ralph.doctor.findings import Finding, Subject, at_once, fail, ok, warn
from ralph.host.git.command import ask
from ralph.host.git.repo import OLDEST_GIT
from ralph.host.process.programs import which
from ralph.host.process.start import run
from ralph.state.places import home, state_home

_SAME_NAME = "claude codex gemini opencode qwen copilot droid goose aider amp cline"
CLIENTS = {name: name for name in _SAME_NAME.split()} | {"cursor": "cursor-agent"}
"""Agent → its program."""
_ANSWER_WITHIN = 1.8
_PATIENCE = 2.3
"""Longer than the time a program gets, so that none is left running, and shorter than `findings.PATIENCE`."""
NO_ANSWER = "(did not answer in time)"
_SCARCE, _TIGHT = 100 * 1024**2, 1024**3
_FEW_FILES = 1000


def python(_subject: Subject) -> Iterator[Finding]:
    yield ok(f"Python {platform.python_version()} ({sys.executable})")
    if sys.platform == "win32":
        yield warn("agents cannot run on Windows yet", "use WSL, Linux or macOS for `ralph run`")


def git(subject: Subject) -> Iterator[Finding]:
    said = ask(subject.folder, "version", timeout=_ANSWER_WITHIN).out.decode(errors="replace")
    numbers = re.search(r"(\d+)\.(\d+)[.\d]*", said)
    oldest = ".".join(map(str, OLDEST_GIT))
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST_GIT:
        yield fail(f"git {numbers[0]} is too old", f"install git {oldest} or newer")
    else:
        yield ok(f"git {numbers[0]}" if numbers else f"git: {said}")


def identity(subject: Subject) -> Iterator[Finding]:
    answer = ask(subject.folder, "var", "GIT_COMMITTER_IDENT", timeout=_ANSWER_WITHIN)
    names = [ask(subject.folder, "config", key, timeout=_ANSWER_WITHIN).out for key in ("user.name", "user.email")]
    if answer.code == 0 and all(names):
        yield ok(f"git commits as {answer.out.decode(errors='replace').rpartition('>')[0]}>")
    else:
        yield warn(
            "git has no user.name and user.email; the loop would commit as Ralph Loop <ralph@localhost>",
            'git config --global user.name "Your Name" && git config --global user.email you@example.com',
        )


def clients(subject: Subject) -> Iterator[Finding]:
    """The installed agent clients. `agent` checks the configured one."""
    here = {name: found for name, program in CLIENTS.items() if (found := _which(program, subject))}
    versions = at_once({name: partial(version_of, found, subject.env) for name, found in here.items()}, _PATIENCE)
    for name, found in here.items():
        said = versions.get(name, NO_ANSWER)
        if name == "claude" and (known := advice(said)) and not said.startswith("("):
            yield warn(f"claude {said} ({found}): {known}", _INSTALL)
        elif said.startswith("("):
            yield warn(f"{name} {said} ({found})", f"check the output of `{found} --version`")
        else:
            yield ok(f"{name} {said} ({found})")


def version_of(program: str, env: Mapping[str, str], within: float = _ANSWER_WITHIN) -> str:
    """The first line of `PROGRAM --version`, run with an empty home and without network access."""
    with tempfile.TemporaryDirectory(prefix="ralph-doctor-", ignore_cleanup_errors=True) as home:
        try:
            said = run(
                [program, "--version"],
                cwd=Path(home),
                env=_bare(env, home),
                timeout=within,
                limit=4096,
                grace=0.1,
            )
        except SetupError as error:
            return f"({error.message})"
    if said.timed_out:
        return NO_ANSWER
    if said.code != 0:
        return f"(--version exited with code {said.code})"
    text = (said.out or said.err).decode(errors="replace")
    numbers = re.search(r"\d+(\.\d+)+\S*", text)
    return numbers[0].rstrip(",;.") if numbers else one_line(text, 60)


def _which(program: str, subject: Subject) -> str | None:
    return which(program, subject.env.get("PATH", ""), outside=subject.folder)


def _bare(env: Mapping[str, str], home: str) -> dict[str, str]:
    nowhere = "http://127.0.0.1:9"
    kept = {name: env[name] for name in ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT") if name in env}
    return kept | {
        "HOME": home,
        "TERM": "dumb",
        "NO_COLOR": "1",
        "CI": "1",
        "DISABLE_AUTOUPDATER": "1",
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "ALL_PROXY": nowhere,
        "http_proxy": nowhere,
        "https_proxy": nowhere,
    }


def disk(subject: Subject) -> Iterator[Finding]:
    for what, wanted in (("the workspace", subject.folder), ("the state folder", state_home(subject.env))):
        folder = wanted
        while not folder.exists() and folder != folder.parent:
            folder = folder.parent
        free = shutil.disk_usage(folder).free
        text = f"{free / 1024**3:.1f} GB free for {what} ({wanted})"
        if free < _SCARCE:
            yield fail(text, "free up disk space: a run needs room for checkpoints and logs")
        elif free < _TIGHT:
            yield warn(text, "free up disk space before a long run")
        else:
            yield ok(text)
        if _is_out_of_inodes(folder):
            yield fail(f"{what} is almost out of inodes ({wanted})", "remove files there")
        if not os.access(folder, os.W_OK | os.X_OK):
            yield fail(f"{what} is not writable ({folder})", f"make {folder} writable")


def _is_out_of_inodes(folder: Path) -> bool:
    if not hasattr(os, "statvfs"):
        return False
    found = os.statvfs(folder)
    return found.f_files > 0 and found.f_favail < _FEW_FILES  # some file systems have no fixed number and report 0


def terminal(subject: Subject) -> Iterator[Finding]:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if not sys.stdout.isatty():
        yield ok("stdout is not a terminal: plain lines, no colour, no questions")
    else:
        size = shutil.get_terminal_size()
        text = f"{size.columns} × {size.lines} characters, TERM={subject.env.get('TERM', '')}"
        colour = "no colour (NO_COLOR)" if subject.env.get("NO_COLOR") else "colour"
        if size.columns < 60 or size.lines < 15:
            yield warn(f"{text}, {colour}", "enlarge the window: 80 × 24 is enough")
        else:
            yield ok(f"{text}, {colour}")
    if encoding != "utf8":
        yield warn(f"the encoding is {encoding or 'unknown'}, not UTF-8", "export LC_ALL=C.UTF-8")


# The agent of a workspace

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
    """Look for the credentials that the client uses. Whether they are still valid shows when a run starts."""
    found = find_agent(name)
    state = login_of(found, env, home(env))
    if state.by:
        yield ok(f"by {state.by}")
    elif state.is_known:
        yield warn(f"{found.TITLE} does not appear to be logged in", traits_of(found).log_in)


# Ralph may itself be started inside a container.

_MARKERS = ("/.dockerenv", "/run/.containerenv")
"""Files that docker and podman create in every container."""
_VARIABLES = ("container", "IS_SANDBOX")
"""`container` is set by podman and systemd-nspawn, `IS_SANDBOX` by users of Claude Code."""


def container(env: Mapping[str, str]) -> str:
    """The evidence that this is a container; empty if there is none."""
    found = [path for path in _MARKERS if os.path.exists(path)]  # noqa: PTH110 - no Path is needed
    return next(iter([*found, *(name for name in _VARIABLES if env.get(name))]), "")
