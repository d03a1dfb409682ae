"""What `ralph init` and a run do to the repository: create it, find rules that hide the plan, ignore what runs and
checks leave behind."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host.files import read_bytes, read_plain, write_bytes
from ralph.host.git.command import ask
from ralph.host.git.command import line as first_line
from ralph.host.git.repo import Repo, identify
from ralph.host.git.situation import Kind, situation
from ralph.plans.registry import LAYOUTS, traits
from ralph.setup.project_files import RealTree
from ralph.workspace.find import repository_of

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

_USUAL = {
    "__pycache__": ("*.py", "pyproject.toml", "setup.cfg", "requirements.txt"),
    "node_modules": ("package.json",),
    "target": ("Cargo.toml", "pom.xml"),
    ".gradle": ("build.gradle", "build.gradle.kts"),
    "_build": ("mix.exs",),
    "deps": ("mix.exs",),
    ".stack-work": ("stack.yaml",),
}
"""Caches of each kind of project → the files that show this kind."""
_MOST_FOLDERS = 50


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
        if line.removeprefix("/").encode() in present or (covered and line.startswith(".ralph/")):
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
    added = {line.decode("utf-8", "replace").strip() for line in after[len(before) :].splitlines()}
    return all(line in known or (line[0] == "/" and f"{PurePosixPath(line).name}/" in known) for line in added)


_HIDES = lazy_pattern(rb"^/?\.ralph(?:/|/\*{1,2})?\s*$")


class Hidden(Struct, frozen=True):
    """A rule that keeps the plan out of git."""

    file: str
    line: str
    pattern: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ignores {self.pattern}"


def create_repository(folder: Path) -> None:
    answer = ask(folder, "init", "-q")
    if answer.code:
        raise SetupError(f"git init: {answer.complaint}", hint="run `git init` in that folder to see the error")


def uncommitted(root: Path, env: Mapping[str, str]) -> frozenset[str]:
    """Paths with uncommitted work, relative to the repository; empty if there is no repository."""
    if (folder := repository_of(root, env)) is None:
        return frozenset()
    return frozenset(entry.path for entry in situation(identify(folder)).dirty)


def hidden_by(plan: Path, root: Path, env: Mapping[str, str]) -> Hidden | None:
    repository = repository_of(root, env)
    if repository is None or not plan.is_relative_to(repository):
        return None
    # check-ignore refuses literal pathspecs, and takes no patterns anyway
    magic = {"GIT_LITERAL_PATHSPECS": "0"}
    answer = ask(repository, "check-ignore", "--verbose", "--no-index", "--", str(plan), env_extra=magic)
    source, _, _ = first_line(answer.out).partition("\t")
    parts = source.split(":")
    if answer.code or len(parts) < 3 or parts[-1].startswith("!"):
        return None
    return Hidden(one_line(":".join(parts[:-2])), parts[-2], one_line(parts[-1], 80))


def unhide(root: Path) -> str:
    """Make git track `.ralph/`: remove the rules that ignore it, or add an exception. Returns what was done."""
    path = root / ".gitignore"
    before = read_bytes(path, within=root, limit=1024 * 1024) if path.exists() else b""
    kept = [text for text in before.splitlines(keepends=True) if not _HIDES.match(text)]
    if len(kept) < len(before.splitlines()):
        write_bytes(path, b"".join(kept))
        return "removed the line that ignores .ralph/ from .gitignore"
    start = before + b"\n" if before and not before.endswith(b"\n") else before
    write_bytes(path, start + b"!/.ralph/\n")
    return "added !/.ralph/ to .gitignore"


def cache_lines(root: Path, before: frozenset[str], env: Mapping[str, str]) -> tuple[str, ...]:
    """Ignore lines for tool caches in the tree. `before`: what was uncommitted before the checks ran."""
    repository = repository_of(root, env)
    if repository is None:
        return ()
    untracked = [entry.path for entry in situation(identify(repository)).dirty if entry.kind is Kind.UNTRACKED]
    return tuple(dict.fromkeys(line for path in untracked if (line := cache_line(path, is_new=path not in before))))


def usual_cache_lines(root: Path) -> tuple[str, ...]:
    """Ignore lines for the caches that this kind of project creates sooner or later, unless git ignores them already.

    Running the checks does not show them all: with PYTHONDONTWRITEBYTECODE=1 there is no `__pycache__`, but the sandbox
    does not have that variable. A folder called `target` is ignored only beside its `Cargo.toml`.
    """
    tree = RealTree(root)
    inside = [name for name in sorted(tree.names("")) if name.endswith("/") and not cache_line(name, is_new=True)]
    lines: dict[str, None] = {}
    for folder in ["", *[name for name in inside if not name.startswith(".")][:_MOST_FOLDERS]]:
        names = tree.names(folder)
        for cache, shown_by in _USUAL.items():
            if any(fnmatch.filter(names, pattern) for pattern in shown_by) and not _is_settled(
                root, f"{folder}{cache}"
            ):
                lines[f"/{folder}{cache}/" if cache in _COMMON_WORDS else f"{cache}/"] = None
    return tuple(lines)


def _is_settled(root: Path, cache: str) -> bool:
    """Whether git ignores what is in this folder of the project, or has some of it. The user's own rules do not count:
    a sandbox has another HOME."""
    free = {"GIT_LITERAL_PATHSPECS": "0"}
    inside = f"{cache}/x.pyc"
    ignored = ask(root, "-c", "core.excludesFile=", "check-ignore", "-q", "--no-index", "--", inside, env_extra=free)
    return ignored.code == 0 or bool(ask(root, "ls-files", "--", cache).out)
