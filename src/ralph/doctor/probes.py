"""What `ralph doctor` checks on this machine: programs, disk, terminal. Does not use the network."""

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
from ralph.core.errors import SetupError
from ralph.core.text import one_line
from ralph.doctor.doctor import Finding, Patient, at_once, fail, ok, warn
from ralph.host.git.command import ask
from ralph.host.git.repo import OLDEST_GIT
from ralph.host.process.programs import which
from ralph.host.process.start import run
from ralph.state.places import state_home

CLIENTS = {
    "claude": "claude",
    "codex": "codex",
    "gemini": "gemini",
    "opencode": "opencode",
    "qwen": "qwen",
    "copilot": "copilot",
    "cursor": "cursor-agent",
    "droid": "droid",
    "goose": "goose",
    "aider": "aider",
    "amp": "amp",
    "cline": "cline",
}
"""Agent → its program."""
_ANSWER_WITHIN = 1.8
_PATIENCE = 2.3
"""Longer than the time a program gets, so that none is left running, and shorter than `doctor.PATIENCE`."""
NO_ANSWER = "(did not answer in time)"
_SCARCE, _TIGHT = 100 * 1024**2, 1024**3
_FEW_FILES = 1000


def python(_patient: Patient) -> Iterator[Finding]:
    yield ok(f"Python {platform.python_version()} ({sys.executable})")
    if sys.platform == "win32":
        yield warn("agents cannot run on Windows yet", "use WSL, Linux or macOS for `ralph run`")


def git(patient: Patient) -> Iterator[Finding]:
    said = ask(patient.folder, "version", timeout=_ANSWER_WITHIN).out.decode(errors="replace")
    numbers = re.search(r"(\d+)\.(\d+)[.\d]*", said)
    oldest = ".".join(map(str, OLDEST_GIT))
    if numbers and (int(numbers[1]), int(numbers[2])) < OLDEST_GIT:
        yield fail(f"git {numbers[0]} is too old", f"install git {oldest} or newer")
    else:
        yield ok(f"git {numbers[0]}" if numbers else f"git: {said}")


def identity(patient: Patient) -> Iterator[Finding]:
    answer = ask(patient.folder, "var", "GIT_COMMITTER_IDENT", timeout=_ANSWER_WITHIN)
    names = [ask(patient.folder, "config", key, timeout=_ANSWER_WITHIN).out for key in ("user.name", "user.email")]
    if answer.code == 0 and all(names):
        yield ok(f"git commits as {answer.out.decode(errors='replace').rpartition('>')[0]}>")
    else:
        yield warn(
            "git has no user.name and user.email; the loop would commit as Ralph Loop <ralph@localhost>",
            'git config --global user.name "Your Name" && git config --global user.email you@example.com',
        )


def clients(patient: Patient) -> Iterator[Finding]:
    """The installed agent clients. `agent` checks the configured one."""
    here = {name: found for name, program in CLIENTS.items() if (found := _which(program, patient))}
    versions = at_once({name: partial(version_of, found, patient.env) for name, found in here.items()}, _PATIENCE)
    for name, found in here.items():
        said = versions.get(name, NO_ANSWER)
        if name == "claude" and (known := advice(said)) and not said.startswith("("):
            yield warn(f"claude {said} ({found}): {known}", "npm install -g @anthropic-ai/claude-code")
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
    return numbers[0].rstrip(",;") if numbers else one_line(text, 60)


def _which(program: str, patient: Patient) -> str | None:
    return which(program, patient.env.get("PATH", ""), outside=patient.folder)


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


def disk(patient: Patient) -> Iterator[Finding]:
    for what, wanted in (("the workspace", patient.folder), ("the state folder", state_home(patient.env))):
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


def terminal(patient: Patient) -> Iterator[Finding]:
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    if not sys.stdout.isatty():
        yield ok("stdout is not a terminal: plain lines, no colour, no questions")
    else:
        size = shutil.get_terminal_size()
        text = f"{size.columns} × {size.lines} characters, TERM={patient.env.get('TERM', '')}"
        colour = "no colour (NO_COLOR)" if patient.env.get("NO_COLOR") else "colour"
        if size.columns < 60 or size.lines < 15:
            yield warn(f"{text}, {colour}", "enlarge the window: 80 × 24 is enough")
        else:
            yield ok(f"{text}, {colour}")
    if encoding != "utf8":
        yield warn(f"the encoding is {encoding or 'unknown'}, not UTF-8", "export LC_ALL=C.UTF-8")
