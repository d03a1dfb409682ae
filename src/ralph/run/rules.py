"""The rules of a run, which agents do not change: settings, prompts, requirements, agents' configuration, trust.

They are recorded before each iteration and restored after it, also where git ignores them or does not see them. An
agent that could write its reviewer's prompt could approve its own work. A change between iterations is the user's.

Restored elsewhere: `protected` files by `engine.protect`, entries of the log by `memory_watch`, the plan by the
verdict, git's own files by `host.guarded`.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ralph.config.layers import Settings
from ralph.config.schema import Config
from ralph.core.events import Record as JournalRecord
from ralph.core.events import RunEnded
from ralph.core.plan import Story
from ralph.core.ports import Locations, PlanRef
from ralph.core.run_ports import PageBack
from ralph.host.file_copies import Entry, Record, differences, keep_copy, record, restore
from ralph.host.files import make_folder, read_state, write_bytes
from ralph.prompts.templates import REVIEWERS
from ralph.state.places import home, state_home, trust_file, user_config

_AGENT_FOLDERS = (".claude", ".codex", ".gemini", ".cursor", ".opencode")
"""Settings, hooks, commands and sub-agents of the clients."""
_AGENT_FILES = (".mcp.json",)
_SKIPPED = (".claude/worktrees",)
_NEVER = ("settings*.json", "hooks/*", "hooks.json", "config.toml")
"""Inside such a folder: what a story cannot allow to change either."""
_OWN_SETTINGS = ("settings.json", "settings.local.json")
"""In the client's folder in the user's home."""
_GRANTS = (
    "hooks", "permissions", "env", "sandbox", "apiKeyHelper", "statusLine", "disableAllHooks", "enabledPlugins",
    "extraKnownMarketplaces", "enableAllProjectMcpServers", "enabledMcpjsonServers",
)  # fmt: skip
"""What runs a program or permits something. The client writes other keys itself, also for the user's other sessions."""
_FEW = 5
_ROUNDS = 3
"""Removing a link shows what it hid."""
_RECORD = "rules.before"


class Rules:
    """`folder` is the run's own: it keeps the record, for a killed run, and the agents' versions."""

    def __init__(
        self, ref: PlanRef, where: Locations, settings: Settings, env: Mapping[str, str], repo: Path, folder: Path
    ) -> None:
        self._root, self._repo, self._home, self._folder = ref.root, repo, home(env), folder
        self._tops = dict.fromkeys((ref.root, repo))
        used = [Path(layer.file) for layer in settings.layers if layer.file]
        self._settings = {str(path) for path in (ref.root / ".ralph" / "config.yaml", user_config(env), *used)}
        pages = filter(None, (where.requirements, *_prompts(ref, where, settings.config)))
        files = [top / name for top in self._tops for name in _AGENT_FILES]
        client = Path(env.get("CLAUDE_CONFIG_DIR") or self._home / ".claude")
        self._own_settings = {str(client / name) for name in _OWN_SETTINGS}
        files += map(Path, sorted(self._own_settings))
        self._files = tuple(dict.fromkeys((*map(Path, self._settings), *pages, *files, trust_file(ref.root, env))))
        self._folders = [
            ref.root / ".ralph" / "configs",
            *(top / name for top in self._tops for name in _AGENT_FOLDERS),
        ]
        if user_config(env).parent != ref.root / ".ralph":
            self._folders.append(user_config(env).parent)
        bases = (ref.root / ".ralph", *self._tops, state_home(env), self._home)
        self._bases = {base: os.path.realpath(base) for base in bases}
        """Folders that are not restored: nothing is written to one that an agent has replaced by a link."""
        self._allowed: set[str] = set()
        """Changed by an agent because its story says so."""
        self._skip = {state_home(env), *(top / name for top in self._tops for name in _SKIPPED)}
        self._before = self._saved() or self._read()

    def by_people(self) -> list[str]:
        """Between iterations: accept what changed since the last one as the user's change, and record it."""
        now = self._read()
        changed = differences(self._before, now)
        told = [self._changed_by_user(path, now) for path in changed if path not in self._allowed]
        self._before, self._allowed = now, set()
        make_folder(self._folder, private=True)
        kept = {os.fsencode(path): entry for path, entry in now.items()}
        write_bytes(self._folder / _RECORD, msgspec.msgpack.encode(kept), mode=0o600, durable=False)
        return told

    def accept(self, paths: Iterable[str]) -> None:
        """During an iteration: the user committed these files."""
        now, before = self._read(), dict(self._before)
        for path in (str(self._repo / path) for path in paths):
            before.pop(path, None)
            if path in now:
                before[path] = now[path]
        self._before = before

    def listen(self, record: JournalRecord) -> None:
        """The record is for a run that is killed. Settings may hold secrets, so it does not outlive its run."""
        if isinstance(record.event, RunEnded):
            (self._folder / _RECORD).unlink(missing_ok=True)

    def covers(self, path: Path) -> bool:
        return path in self._files or any(path.is_relative_to(folder) for folder in self._folders)

    def changed(self) -> tuple[str, ...]:
        """For a killed run: it may have read other settings files than the run that closes it."""
        now = record((*self._files, *map(Path, self._before)), self._folders, self._skip)
        return tuple(self._name(Path(path)) for path in differences(self._before, now))

    def put_back(self, iteration: int, story: Story | None = None) -> PageBack:
        """After an agent: restore what it changed, removed or added."""
        told: dict[str, str] = {}
        for _ in range(_ROUNDS):
            changed = self._changed(story)
            for path in map(Path, changed):
                if text := self._restore(path, iteration):
                    told.setdefault(str(path), text)
            if not changed:
                break
        if left := [self._name(Path(path)) for path in self._changed(story)] if changed else []:
            return PageBack(left=f"agents do not change the rules, but {', '.join(left[:_FEW])} could not be restored")
        more = [f"and {len(told) - _FEW} more files"] if len(told) > _FEW else []
        return PageBack("; ".join((*list(told.values())[:_FEW], *more)))

    def _changed(self, story: Story | None) -> list[str]:
        now = self._read()
        different = differences(self._before, now)
        self._allowed.update(path for path in different if self._is_allowed(path, story))
        own = self._own_settings.intersection(different)
        self._allowed.update(path for path in own if _grants(self._before.get(path)) == _grants(now.get(path)))
        return [path for path in different if path not in self._allowed]

    def _restore(self, path: Path, iteration: int) -> str:
        is_known = str(path) in self._before
        if not is_known and not os.path.lexists(path):  # it went with the folder around it
            return ""
        copy = self._folder / "rules" / f"{iteration:04}" / self._name(path).replace("~", "home").lstrip("/")
        base = next((base for base in self._bases if path.is_relative_to(base)), path.parent)
        if base in self._bases and os.path.realpath(base) != self._bases[base]:
            return ""
        kept = f"; the changed version is in {copy}" if keep_copy(path, copy) else ""
        restore(path, self._before, base)
        return f"{'restored' if is_known else 'removed'} {self._name(path)}: agents do not change the rules{kept}"

    def _read(self) -> Record:
        return record(self._files, self._folders, self._skip)

    def _saved(self) -> Record | None:
        """What was recorded by the same run before it was killed."""
        with contextlib.suppress(OSError, msgspec.MsgspecError):
            kept = msgspec.msgpack.decode(read_state(self._folder / _RECORD), type=dict[bytes, Entry])
            return {os.fsdecode(path): entry for path, entry in kept.items()}
        return None

    def _changed_by_user(self, path: str, now: Record) -> str:
        done = "removed" if path not in now else "written" if path not in self._before else "changed"
        is_setting = path in self._settings or Path(path).is_relative_to(self._root / ".ralph" / "configs")
        effect = "this run keeps the settings it started with" if is_setting else "agents use it as it is now"
        return f"{self._name(Path(path))} was {done} outside the run: {effect}"

    def _name(self, path: Path) -> str:
        if path.is_relative_to(self._root):
            return path.relative_to(self._root).as_posix()
        return f"~/{path.relative_to(self._home).as_posix()}" if path.is_relative_to(self._home) else str(path)

    def _is_allowed(self, path: str, story: Story | None) -> bool:
        """A file in a client's folder that the story names may change: it is part of the product."""
        for top in self._tops if story is not None and path not in map(str, self._files) else ():
            inside = os.path.relpath(path, top)
            folder, _, rest = inside.partition("/")
            if folder in _AGENT_FOLDERS and story is not None:
                return not any(fnmatch.fnmatch(rest, pattern) for pattern in _NEVER) and _names(story, inside, folder)
        return False


def _grants(entry: Entry | None) -> object:
    """What client settings permit; the whole entry if they cannot be read."""
    if entry is None or entry.link is not None or entry.data is None:
        return entry or {}
    try:
        values = msgspec.json.decode(entry.data, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return entry
    return {key: values[key] for key in _GRANTS if values.get(key)}


def _names(story: Story, path: str, folder: str) -> bool:
    text = "\n".join((story.title, story.description, *story.criteria))  # notes are the agent's
    named = [word.rstrip("./*") for word in re.findall(rf"(?<![\w/.]){re.escape(folder)}(?![\w-])[\w./*-]*", text)]
    return any(path == word or path.startswith(f"{word}/") for word in named)


def _prompts(ref: PlanRef, where: Locations, config: Config) -> Iterator[Path]:
    """Includes files that do not exist yet: one that an agent creates would take effect."""
    yield from filter(None, (where.prompt, *where.other_prompts))
    named = [config.prompt, config.agent.script, *(str(step.config.get("prompt_file") or "") for step in config.steps)]
    named += [name for name in config.review.reviewers if name not in REVIEWERS]
    for name in filter(None, named):
        page = ref.root / name
        if page.is_relative_to(ref.root) and ".." not in page.parts:
            yield page
