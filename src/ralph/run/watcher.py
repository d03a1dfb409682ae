"""What agents must not change is watched: recorded before each iteration, compared and restored after it.

| watched | a change by an agent |
|---|---|
| settings, prompts, requirements, agents' configuration, trust | is undone, unless the story names a client's file |
| the user's own client settings | is undone if it permits something; the client writes other keys itself |
| the progress log | additions stay; changed and removed entries are restored |
| learnings | is reported if some are missing; the previous file is kept |
| rules that every later session reads, such as `CLAUDE.md` | is reported |
| `protected` globs | is undone by `engine.protect`, from git |

An agent that could write its reviewer's prompt could approve its own work. Files count also where git ignores them or
does not see them. A change between iterations is the user's. The plan is restored by the verdict, git's own files by
`host.git.config_files`.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from ralph.config.layers import Settings
from ralph.config.schema import Config
from ralph.core.errors import BadData
from ralph.core.events import IterationEnded, RunEnded
from ralph.core.events import Record as JournalRecord
from ralph.core.fallback import reviewer_parts
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.learning import Learning, entries_of, in_log, in_notes, is_same, with_entries
from ralph.core.plan import Story
from ralph.core.ports import Locations, PlanRef
from ralph.core.run_ports import PageBack
from ralph.core.text import one_line
from ralph.hooks.globs import is_protected
from ralph.host.file_copies import Entry, Record, differences, keep_copy, record, restore
from ralph.host.files import make_folder, read_state, write_bytes
from ralph.host.redaction import redacted_lines
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.memory.learn import LASTING_FILES
from ralph.memory.store import Memory, memory_text
from ralph.prompts.templates import REVIEWERS
from ralph.session.choice import known_agents
from ralph.state.names import MEMORY, RULES, RULES_BEFORE
from ralph.state.places import home, state_home, trust_file, user_config
from ralph.workspace.own_files import Bookkeeping

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
_SETTINGS, _GRANTED = "settings", "client settings of the user"
_LASTING_FOLDER = ".claude/rules/"
_BULLET = lazy_pattern(r"\s*(?:[-*+]|\d{1,3}[.)])\s")


def protection(
    patterns: tuple[str, ...], workspace: Path, repo: Path, own: Bookkeeping
) -> Callable[[str], bool] | None:
    """Returns a predicate for paths in the repository, or None if nothing is protected."""
    roots, own_paths = (str(workspace), str(repo)), own.paths_in(repo)
    return (lambda path: is_protected(f"{repo}/{path}", patterns, roots, own_paths)) if patterns else None


class Watched(msgspec.Struct, frozen=True):
    """One row of the table: what is restored."""

    what: str
    files: tuple[Path, ...] = ()
    folders: tuple[Path, ...] = ()


def watched(ref: PlanRef, where: Locations, settings: Settings, env: Mapping[str, str], repo: Path) -> list[Watched]:
    """The files that exist and those that would take effect if an agent created them."""
    dot_ralph, own, tops = ref.root / ".ralph", user_config(env), tuple(dict.fromkeys((ref.root, repo)))
    used = (Path(layer.file) for layer in settings.layers if layer.file)
    client = Path(env.get("CLAUDE_CONFIG_DIR") or home(env) / ".claude")
    return [
        Watched(_SETTINGS, (dot_ralph / "config.yaml", own, *used), (dot_ralph / "configs",)),
        Watched("requirements", (where.requirements,) if where.requirements else ()),
        Watched("prompts", tuple(_prompts(ref, where, settings.config))),
        Watched(
            "agents' configuration",
            tuple(top / name for top in tops for name in _AGENT_FILES),
            tuple(top / name for top in tops for name in _AGENT_FOLDERS),
        ),
        Watched(_GRANTED, tuple(client / name for name in _OWN_SETTINGS)),
        Watched("trust", (trust_file(ref.root, env),)),
        Watched("the user's own folder", (), () if own.parent == dot_ralph else (own.parent,)),
    ]


class Watcher:
    """`folder` is the run's own: it keeps the record, for a killed run, and the agents' versions."""

    def __init__(
        self,
        ref: PlanRef,
        where: Locations,
        settings: Settings,
        env: Mapping[str, str],
        repo: Path,
        folder: Path,
        memory: Memory | None = None,
        is_protected: Callable[[str], bool] | None = None,
        *,
        only_inside: bool = False,
    ) -> None:
        """`only_inside`: agents reach nothing outside the workspace, so what changes there is the user's."""
        self.is_protected = is_protected
        self._root, self._repo, self._home, self._folder = ref.root, repo, home(env), folder
        self._tops = dict.fromkeys((ref.root, repo))
        rows = {row.what: row for row in watched(ref, where, settings, env, repo)}
        self._settings, self._granted = rows[_SETTINGS], frozenset(map(str, rows[_GRANTED].files))
        self._files = tuple(dict.fromkeys(file for row in rows.values() for file in row.files))
        self._folders = tuple(folder for row in rows.values() for folder in row.folders)
        if only_inside:
            self._files = tuple(file for file in self._files if any(map(file.is_relative_to, self._tops)))
            self._folders = tuple(folder for folder in self._folders if any(map(folder.is_relative_to, self._tops)))
        bases = (ref.root / ".ralph", *self._tops, state_home(env), self._home)
        self._bases = {base: os.path.realpath(base) for base in bases}
        """Folders that are not restored: nothing is written to one that an agent has replaced by a link."""
        self._allowed: set[str] = set()
        """Changed by an agent because its story says so."""
        self._skip = {state_home(env), *(top / name for top in self._tops for name in _SKIPPED)}
        self._before = self._saved() or self._read()
        self._memory = MemoryWatch(memory, folder / MEMORY) if memory else None
        self._may_add_to = settings.config.memory.repo_file
        self._news: list[str] = []

    def begin(self) -> list[str]:
        """Before an iteration: what changed since the last one is the user's. Returns messages about changes."""
        if self._memory is not None:
            self._memory.look()
        now, news = self._read(), self._news
        changed = differences(self._before, now)
        told = [self._changed_by_user(path, now) for path in changed if path not in self._allowed]
        self._before, self._allowed, self._news = now, set(), []
        make_folder(self._folder, private=True)
        kept = {os.fsencode(path): entry for path, entry in now.items()}
        write_bytes(self._folder / RULES_BEFORE, msgspec.msgpack.encode(kept), mode=0o600, durable=False)
        return [*told, *news]

    def accept(self, paths: Iterable[str]) -> None:
        """During an iteration: the user committed these files."""
        now, before = self._read(), dict(self._before)
        for path in (str(self._repo / path) for path in paths):
            before.pop(path, None)
            if path in now:
                before[path] = now[path]
        self._before = before

    def listen(self, record: JournalRecord) -> None:
        event = record.event
        if isinstance(event, RunEnded):  # the record is for a killed run; settings may hold secrets
            (self._folder / RULES_BEFORE).unlink(missing_ok=True)
        if not isinstance(event, IterationEnded) or not event.kind.keeps_work:
            return
        for path in event.files:
            is_lasting = path.rpartition("/")[2] in LASTING_FILES or path.startswith(_LASTING_FOLDER)
            if is_lasting and path != self._may_add_to:
                where = f": `git show {event.commit[:9]} -- {one_line(path, 80)}`" if event.commit else ""
                self._news.append(
                    f"an agent changed {one_line(path, 80)} in {event.story or 'the set-up'}, which every later "
                    f"session of every plan reads; make sure this is intended{where}"
                )

    def is_rule(self, path: str) -> bool:
        file = self._repo / path
        return file in self._files or any(map(file.is_relative_to, self._folders))

    def changed(self) -> tuple[str, ...]:
        """For a killed run: it may have read other settings files than the run that closes it."""
        now = record((*self._files, *map(Path, self._before)), self._folders, self._skip)
        return tuple(self._name(Path(path)) for path in differences(self._before, now))

    def put_back(self, iteration: int, story: Story | None = None) -> PageBack:
        """After an agent: restore what it changed, removed or added."""
        rules = self._put_back_rules(iteration, story)
        return rules + self._memory.put_back(iteration, story) if self._memory is not None else rules

    def _put_back_rules(self, iteration: int, story: Story | None) -> PageBack:
        told: dict[str, str] = {}
        for _ in range(_ROUNDS):
            changed = self._changed(story)
            for path in map(Path, changed):
                if text := self._restore(path, iteration):
                    told.setdefault(str(path), text)
            if not changed:
                break
        if left := [self._name(Path(path)) for path in self._changed(story)] if changed else []:
            return PageBack(
                left=f"agents do not change the rules, but {', '.join(left[:_FEW])} could not be restored", wrote=True
            )
        more = [f"and {len(told) - _FEW} more files"] if len(told) > _FEW else []
        return PageBack("; ".join((*list(told.values())[:_FEW], *more)), wrote=bool(told))

    def _changed(self, story: Story | None) -> list[str]:
        now = self._read()
        different = differences(self._before, now)
        self._allowed.update(path for path in different if self._is_allowed(path, story))
        mine = self._granted.intersection(different)
        self._allowed.update(path for path in mine if _grants(self._before.get(path)) == _grants(now.get(path)))
        return [path for path in different if path not in self._allowed]

    def _restore(self, path: Path, iteration: int) -> str:
        is_known = str(path) in self._before
        if not is_known and not os.path.lexists(path):  # it went with the folder around it
            return ""
        copy = self._folder / RULES / f"{iteration:04}" / self._name(path).replace("~", "home").lstrip("/")
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
            kept = msgspec.msgpack.decode(read_state(self._folder / RULES_BEFORE), type=dict[bytes, Entry])
            return {os.fsdecode(path): entry for path, entry in kept.items()}
        return None

    def _changed_by_user(self, path: str, now: Record) -> str:
        done = "removed" if path not in now else "written" if path not in self._before else "changed"
        settings = self._settings
        is_setting = Path(path) in settings.files or any(map(Path(path).is_relative_to, settings.folders))
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
    pages = [reviewer_parts(name, known_agents(config))[0] for name in config.review.reviewers]
    named += [name for name in pages if name not in REVIEWERS]
    for name in filter(None, named):
        page = ref.root / name
        if page.is_relative_to(ref.root) and ".." not in page.parts:
            yield page


class MemoryWatch:
    """`aside` is a folder that only the run uses."""

    def __init__(self, memory: Memory, aside: Path) -> None:
        self._memory = memory
        self._aside = aside
        self._before = ""

    def look(self) -> None:
        """Remember the file before an agent starts."""
        self._before = self._read()

    def put_back(self, iteration: int, story: Story | None) -> PageBack:
        before, now = self._before, self._read()
        origin = story.id if story else ""
        if now != before and (marked := self._with_origins(before, now, origin)) != now and self._write(marked):
            now = marked
        known = set(before.splitlines())
        added = (line for line in now.splitlines() if line.strip() and line not in known)
        logged = "\n".join(added) if self._memory.is_log else ""
        if now == before or not before.strip():
            return PageBack(logged=logged, wrote=now != before)
        told = []
        if self._memory.is_log and (not now.strip() or entries_of(before) not in now):
            self._keep(iteration, now, "changed")
            done = "and restored" if self._write(with_entries(now, before)) else "and could not be restored"
            told.append(f"entries of {self._memory.name} were changed {done}: entries may only be added")
        if gone := self._gone(before, self._read()):
            kept = self._keep(iteration, before, "before")
            listed = "; ".join(one.text[:80] for one in gone[:3])
            told.append(
                f"learnings removed ({len(gone)}) from {self._memory.name} ({listed}); the previous version is in "
                f"{kept}"
            )
        self._before = self._read()
        return PageBack("; ".join(told), logged=logged, wrote=True)

    def _with_origins(self, before: str, now: str, story: str) -> str:
        """What the agent added, without secrets; among the learnings with the story and the date: readers must not
        take it for a person's."""
        parse = in_log if self._memory.is_log else in_notes
        known = {one.text for one in parse(before)}
        new = [one for one in parse(now) if not one.date and one.text not in known and one.line]
        lines = now.split("\n")
        origin = ", ".join(filter(None, (one_line(story, 60) or "an agent", time.strftime("%Y-%m-%d", time.gmtime()))))
        for one in new:
            last = one.line - 1
            while last + 1 < len(lines) and lines[last + 1][:1] in (" ", "\t") and not _BULLET.match(lines[last + 1]):
                last += 1
            if one.curated or not self._memory.is_log:
                lines[last] = f"{lines[last].rstrip()} ({origin})"
        old, redactor = set(before.split("\n")), redacted_lines()
        return "\n".join(line if line in old else redactor.text(line) for line in lines)

    def _write(self, text: str) -> bool:
        files = WorkspaceFiles(self._memory.root)
        if not self._memory.path.is_file() or self._memory.path.is_symlink():
            files.remove(self._memory.path)  # a symlink or a pipe in its place
        files.replace(self._memory.path, text.encode("utf-8", "surrogateescape"))
        return not files.failures

    def _gone(self, before: str, now: str) -> list[Learning]:
        parse = in_log if self._memory.is_log else in_notes
        left = parse(now)
        known = {one.text for one in left}
        lost = [one for one in parse(before) if one.text not in known]
        return [one for one in lost if not any(is_same(one.text, other.text) for other in left)]

    def _keep(self, iteration: int, text: str, word: str) -> Path:
        path = make_folder(self._aside, private=True) / f"{iteration:04}-{word}-{self._memory.path.name}"
        write_bytes(path, text.encode("utf-8", "surrogateescape"), mode=0o600, durable=False)
        return path

    def _read(self) -> str:
        try:
            return "" if self._memory.path.is_symlink() else memory_text(self._memory, errors="surrogateescape")
        except BadData:
            return ""
