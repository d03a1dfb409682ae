"""`ralph memory add`: from the user, for the plan or the whole repository; from an agent, as part of its request."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ralph.core.errors import BadData, SetupError, UsageError
from ralph.core.learning import in_notes, learned, news
from ralph.core.names import plain_path
from ralph.core.problems import Place
from ralph.host.files import read_bytes, write_bytes
from ralph.host.git.command import ask, line
from ralph.journal.sinks.progress import listed
from ralph.journal.sinks.sink import iso
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.memory.store import Kept, keep, memory_of
from ralph.state.locks import is_at_work
from ralph.state.places import plan_state
from ralph.workspace.find import OpenPlan, find_repo
from ralph.workspace.trust import is_inside_loop

_TITLE = "## Learned\n\n"
_LARGEST = 1_000_000
LASTING_FILES = ("CLAUDE.md", "AGENTS.md")
"""File names of a repository's rules for clients, in any folder."""


def learn(opened: OpenPlan, texts: Sequence[str], story: str, now: float, env: Mapping[str, str]) -> Kept:
    memory = memory_of(opened.ref, opened.layout.locations(opened.ref), env)
    commit = _head(opened, env)
    learnings = [learned(text, day=iso(now), story=story, commit=commit) for text in texts]
    return keep(opened.ref, memory, learnings, env)


def _head(opened: OpenPlan, env: Mapping[str, str]) -> str:
    """The current commit, if there is a repository."""
    try:
        answer = ask(find_repo(opened.ref, opened.settings, env), "rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    except SetupError:
        return ""
    return line(answer.out) if answer.code == 0 else ""


def learn_for_repository(
    opened: OpenPlan, texts: Sequence[str], now: float, env: Mapping[str, str]
) -> tuple[Path, int]:
    """Append to CLAUDE.md or AGENTS.md, for every session of every plan. Returns the file and how many were new."""
    if is_at_work(plan_state(opened.ref, env)):
        raise SetupError(
            "a run is active and would mistake a change to this file for its agent's",
            hint="try again when the run has ended, or pause it with `ralph pause`",
        )
    path = opened.root / _lasting_file(opened)
    text = read_bytes(path, within=opened.root, limit=_LARGEST).decode("utf-8", "replace") if path.exists() else ""
    new = news([learned(one, day=iso(now)) for one in texts], in_notes(text))
    if new:
        files = WorkspaceFiles(opened.root)
        lead = "" if _TITLE.strip() in text.splitlines()[-60:] else f"\n{_TITLE}" if text else _TITLE
        files.append(path, lead + listed(new))
        if files.failures:
            raise SetupError(files.failures[0], hint="check what is at that path")
    return path, len(new)


def _lasting_file(opened: OpenPlan) -> str:
    """The file from the settings, else the one that exists, else the one that the agent reads."""
    config = opened.settings.config
    if config.memory.repo_file:
        return plain_path(config.memory.repo_file, "memory.repo_file")
    there = next((name for name in LASTING_FILES if (opened.root / name).is_file()), "")
    return there or LASTING_FILES[config.agent.name != "claude"]


def learn_in_session(texts: Sequence[str], story: str, env: Mapping[str, str]) -> Path | None:
    """Add an agent's learnings to its request file; the loop records them. None: the caller is not a run's agent."""
    request = env.get("RALPH_REQUEST_FILE", "")
    if not request or not is_inside_loop(env):
        return None
    if story and story != env.get("RALPH_STORY", ""):
        raise UsageError("a session's learnings belong to its own story", hint="leave out --story")
    path = Path(request)
    entries: dict[str, object] = {}
    if path.exists():
        entries = _entries(path)
    before = entries.get("learn")
    known = [before] if isinstance(before, str) else before if isinstance(before, list) else []
    entries["learn"] = [*known, *(text for text in texts if text not in known)]
    write_bytes(path, msgspec.json.format(msgspec.json.encode(entries)) + b"\n", durable=False)
    return path


def _entries(path: Path) -> dict[str, object]:
    try:
        return msgspec.json.decode(read_bytes(path, limit=_LARGEST), type=dict[str, object])
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise BadData(
            "not a JSON object", where=Place(os.fspath(path)), hint='rewrite it as {"claim": "done", "learn": []}'
        ) from None
