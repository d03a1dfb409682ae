"""Ralph's own files in a workspace: its bookkeeping, and the files by which an agent talks to the loop.

The bookkeeping is not work, and no reason to refuse a run. An agent writes the request file, WAITING and COMPLETE.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.config.schema import Config
from ralph.core.errors import BadData
from ralph.core.ports import Locations, PlanRef
from ralph.core.requests import Request, read_request
from ralph.core.text import clean
from ralph.host.files import make_folder, read_bytes, write_text
from ralph.host.removal import remove_tree
from ralph.plans.registry import traits

_FILES = (
    "WAITING", "COMPLETE", "run_state.json", "aggregate.json", "current-story", ".checkpoint", "session.log",
    "sessions.log", "failure-context.log", "failure-context.log.1", "activity.log",
)  # fmt: skip
_FOLDERS = ("runs", "logs")
_CACHES = frozenset({
    "__pycache__", ".pytest_cache", ".ruff_cache", ".mypy_cache", ".hypothesis", ".tox", ".nox", ".coverage",
    ".nyc_output", ".eslintcache", ".stylelintcache", ".parcel-cache", ".turbo", ".gradle",
})  # fmt: skip
"""Folders and files that tools write beside the code."""


class Bookkeeping(Struct, frozen=True):
    """Paths relative to the repository, with `/`."""

    files: frozenset[str]
    folders: tuple[str, ...]
    """Each ends with a `/`."""
    own: tuple[str, ...]
    """Folders where uncommitted edits do not stop a run: `.ralph/`, the plan's own."""
    made_by_checks: frozenset[str] = frozenset()
    """Untracked files left by the checks of an earlier start."""
    from_init: frozenset[str] = frozenset()
    """Files of the plan outside those folders, such as the prompt, and a `.gitignore` that only Ralph extended."""
    commits: bool = True
    """False: a pipeline without `git-commit` leaves every story's work uncommitted, and the next run builds on it."""

    def covers(self, path: str) -> bool:
        return path in self.files or path.startswith(self.folders)

    def paths_in(self, repo: Path) -> list[str]:
        """What `covers` covers, as absolute paths; folders end with a `/`."""
        return [f"{repo}/{name}" for name in (*sorted(self.files), *self.folders)]

    def is_ours(self, path: str) -> bool:
        return self.covers(path) or path.startswith(self.own) or path in self.from_init or not self.commits

    def is_left_by_tools(self, path: str) -> bool:
        """Whether an untracked file was written by a check or is in a tool's cache."""
        return path in self.made_by_checks or any(part in _CACHES for part in path.split("/"))


def bookkeeping(ref: PlanRef, where: Locations, repo: Path, config: Config) -> Bookkeeping:
    """Paths outside the repository need no rule: git does not see them."""
    dot_ralph = ref.root / ".ralph"
    files = [where.plan, where.progress, where.learnings, ref.folder / "request.json", ref.root / ".ralph-active"]
    files += [dot_ralph / name for name in _FILES]
    files += [ref.root / str(marker) for step in config.steps if (marker := step.config.get("marker_file"))]
    folders = [folder / name for folder in {dot_ralph, ref.folder} for name in _FOLDERS]
    pages = (where.prompt, where.readme, where.requirements)
    if traits(ref.layout).has_tracker:
        folders.append(ref.root / ".beads")  # the steps' own tracker
    return Bookkeeping(
        frozenset(filter(None, (_inside(path, repo) for path in files if path))),
        tuple(f"{name}/" for name in (_inside(folder, repo) for folder in folders) if name),
        tuple(f"{name}/" for name in (_inside(folder, repo) for folder in (dot_ralph, ref.folder)) if name),
        from_init=frozenset(filter(None, (_inside(page, repo) for page in pages if page))),
        commits=not config.steps or any(step.enabled and step.type == "git-commit" for step in config.steps),
    )


def _inside(path: Path, repo: Path) -> str:
    relative = os.path.relpath(path, repo)
    return "" if relative.startswith("..") else Path(relative).as_posix()


_LIMIT = 64 * 1024
_LONGEST = 4000


class RequestFiles:
    """`folder` is the plan's own; the sentinels are in the workspace's `.ralph/`, where users expect them."""

    def __init__(self, root: Path, folder: Path, *, asks_by_file: bool = False) -> None:
        self._root = root
        self.asks_by_file = asks_by_file
        """The layout has WAITING: it holds every question, and removing the file also counts as an answer."""
        self.request = folder / "request.json"
        self._waiting = root / ".ralph" / "WAITING"
        self._complete = root / ".ralph" / "COMPLETE"

    @property
    def files(self) -> tuple[Path, ...]:
        return (self.request, self._waiting, self._complete)

    def clear(self) -> None:
        for path in (self.request, self._complete):
            self._remove(path)

    def take(self) -> Request:
        request = self._request()
        complete = self._complete.is_file()
        waiting = self.waiting()
        self.clear()
        self._remove(self._waiting)
        return msgspec.structs.replace(request, complete=complete, waiting=waiting)

    def _request(self) -> Request:
        try:
            data = read_bytes(self.request, within=self._root, limit=_LIMIT)
        except BadData as error:
            return Request(problem=f"the request file could not be read: {error}" if self.request.exists() else "")
        return read_request(data) if data.strip() else Request()

    def waiting(self) -> str:
        """An empty WAITING file still blocks the run: the reason is unknown, so the user has to check."""
        if not self._waiting.is_file():
            return ""
        return clean(self._read(self._waiting)).strip()[:_LONGEST] or ".ralph/WAITING is empty"

    def keep_waiting(self, text: str) -> None:
        make_folder(self._waiting.parent)
        write_text(self._waiting, text.rstrip() + "\n")

    def says_complete(self) -> bool:
        return self._complete.is_file()

    def answered(self) -> None:
        """The user has answered: remove WAITING so that the run can continue."""
        self._remove(self._waiting)

    def complete(self) -> None:
        make_folder(self._complete.parent)
        write_text(self._complete, "")

    def _read(self, path: Path) -> str:
        try:
            return read_bytes(path, within=self._root, limit=_LIMIT).decode("utf-8", "replace")
        except BadData:
            return ""

    def _remove(self, path: Path) -> None:
        """Remove a file, or a folder that an agent put in its place; git ignores both, so a rollback does not see them.

        A link in place of a parent folder may point outside the workspace; its target is not removed.
        """
        if Path(os.path.realpath(path.parent)).is_relative_to(os.path.realpath(self._root)) and os.path.lexists(path):
            remove_tree(path)
