"""Files that a run leaves in a workspace and that do not belong in git, and how they get into a `.gitignore`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from ralph.core.ports import PlanRef
from ralph.host.files import read_plain, write_bytes
from ralph.host.git.repo import Repo
from ralph.plans.registry import LAYOUTS, traits

_EVERY = (".ralph/WAITING",)

CACHES = (
    "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", ".nox", ".coverage", "htmlcov",
    "*.egg-info", ".eggs", ".venv", "node_modules", ".nyc_output", "coverage", ".eslintcache", ".turbo", ".next",
    "target", ".gradle", "_build", "deps", ".stack-work", "*.tsbuildinfo",
)  # fmt: skip
"""Files and folders that a project's own tools create when its checks run."""
_FILES = frozenset({".coverage", ".eslintcache", "*.tsbuildinfo"})
CACHE_LINES = tuple(name if name in _FILES else f"{name}/" for name in CACHES)


_COMMON_WORDS = frozenset({"coverage", "target", "_build", "deps"})


def cache_line(path: str, *, is_new: bool = False) -> str:
    """The line that ignores a tool's cache, for a path inside one; empty for any other path.

    A folder called `target` counts only if a check has just created it (`is_new`).
    """
    for part in PurePosixPath(path).parts:
        for name, line in zip(CACHES, CACHE_LINES, strict=True):
            if PurePosixPath(part).match(name) and (is_new or name not in _COMMON_WORDS):
                return line
    return ""


def ignore_lines(layout: str) -> tuple[str, ...]:
    return (*traits(layout).ignored, *_EVERY)


TITLE = "# Ralph: files that runs leave behind"
CACHES_TITLE = "# Created by the project's own checks"
_FORMER_TITLES = ("# Ralph: what a run leaves behind and nobody needs in git", "# Made by the project's own checks")


def keep_out_of_commits(ref: PlanRef, repo: Repo) -> None:
    """Make git ignore the loop's own files in this repository, whatever the project's `.gitignore` says.

    An agent may commit with `git add -A` while they exist. Git's own list for one clone is `info/exclude`.
    """
    inside = os.path.relpath(ref.root, repo.root)
    if inside.startswith(".."):  # a repository inside of the workspace: the files are not in it
        return
    before = "" if inside == "." else f"{Path(inside).as_posix()}/"
    path = repo.common_dir / "info" / "exclude"
    text = read_plain(path) or b""
    ignored = read_plain(repo.root / ".gitignore") or b""
    present = {line.strip().removeprefix(b"/") for line in ignored.splitlines()}
    request = (ref.folder / "request.json").relative_to(ref.root).as_posix()
    lines = [f"{before}{line}" for line in (*ignore_lines(ref.layout), request)]
    wanted = with_lines(text, [line for line in lines if line.encode() not in present])
    if wanted != text and (path.is_file() or not os.path.lexists(path)) and not path.is_symlink():
        path.parent.mkdir(exist_ok=True)
        write_bytes(path, wanted)


def with_lines(text: bytes, lines: Iterable[str], title: str = TITLE) -> bytes:
    """A `.gitignore` with the missing lines appended, with its own line endings. Nothing else changes."""
    ending = b"\r\n" if b"\r\n" in text else b"\n"
    present = {line.strip().removeprefix(b"/") for line in text.splitlines()}
    covered = any(whole in present for whole in (b".ralph", b".ralph/", b".ralph/*", b".ralph/**"))
    missing = []
    for line in lines:
        if line.encode() in present or (covered and line.startswith(".ralph/")):
            continue
        missing.append(line.encode())
    if not missing:
        return text
    start = text + ending if text and not text.endswith(b"\n") else text
    return start + (ending if start else b"") + ending.join([title.encode(), *missing]) + ending


def is_only_added(before: bytes, after: bytes) -> bool:
    """Whether the second `.gitignore` is the first one with only Ralph's lines appended."""
    if not after.startswith(before):
        return False
    known = {TITLE, CACHES_TITLE, *_FORMER_TITLES, "", *_EVERY, *CACHE_LINES}
    known.update(line for layout in LAYOUTS.built_in() for line in traits(layout).ignored)
    return {line.decode("utf-8", "replace").strip() for line in after[len(before) :].splitlines()} <= known
