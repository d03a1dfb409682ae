"""Which files of a workspace are Ralph's own bookkeeping: not work, and no reason to refuse a run. Pure."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from ralph.config.schema import Config
from ralph.core.ports import Locations, PlanRef
from ralph.plans.registry import traits

_FILES = (
    "WAITING",
    "COMPLETE",
    "run_state.json",
    "aggregate.json",
    "current-story",
    ".checkpoint",
    "session.log",
    "sessions.log",
    "failure-context.log",
    "failure-context.log.1",
    "activity.log",
)
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
