"""What `ralph init` does to the repository: create it, detect rules that hide the plan, ignore tool caches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.core.text import one_line
from ralph.host.files import read_bytes, write_bytes
from ralph.host.git.command import ask
from ralph.host.git.command import line as first_line
from ralph.host.git.repo import identify
from ralph.host.git.situation import Kind, situation
from ralph.setup.ignore_lines import cache_line
from ralph.workspace.find import repository_of

_HIDES = re.compile(rb"^/?\.ralph(?:/|/\*{1,2})?\s*$")


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
