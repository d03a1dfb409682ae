"""What an attempt changed, file by file: from the tree it started with to its candidate, commit or rescued work.

The journal names the trees; git has their content. Where the repository is gone, the journal still has the names.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import RalphError
from ralph.core.events import RunStarted
from ralph.core.text import revealed
from ralph.host.git.command import ask
from ralph.host.git.objects import diff_text, empty_tree
from ralph.host.git.repo import Repo, find_repository, identify
from ralph.host.redaction import redact
from ralph.state.places import home
from ralph.views.attempts import Attempt

_MOST_BYTES = 2_000_000
_LONGEST_LINE = 2000
_HEADER = re.compile(r"^diff --git ")
_HUNK = re.compile(r"^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)")


class DiffLine(Struct, frozen=True, array_like=True):
    """`old` and `new` are line numbers; 0: the line is not in that file."""

    sign: str
    old: int
    new: int
    text: str


class Hunk(Struct, frozen=True):
    head: str
    lines: tuple[DiffLine, ...]


class FileDiff(Struct, frozen=True):
    path: str
    status: str
    """added, removed, changed, binary."""
    added: int
    removed: int
    hunks: tuple[Hunk, ...]


class Diff(Struct, frozen=True):
    files: tuple[FileDiff, ...] = ()
    of: str = ""
    """What it shows: `commit 4f54606`, `rescued work`, `candidate`."""
    is_cut: bool = False
    why_not: str = ""
    """Why there is nothing to show."""


def diff_of(run: RunStarted, attempt: Attempt, env: Mapping[str, str]) -> Diff:
    of, old, new = _candidate(attempt)
    if not new:
        return Diff(why_not="this attempt changed no files" if attempt.ended else "there is no candidate yet")
    repo = find_repo(run, env)
    if repo is None:
        return Diff(of=of, why_not="the repository was not found here; the journal has only the names of the files")
    old = old if _has(repo, old) else f"{new}^"
    old = old if _has(repo, old) or not attempt.commit else empty_tree(repo)  # the first commit of its branch
    if not _has(repo, new) or not _has(repo, old):
        return Diff(of=of, why_not="these objects are no longer in the repository")
    text, is_cut = diff_text(repo, old, new, limit=_MOST_BYTES)
    return Diff(tuple(parse(text)), of, is_cut)


def _candidate(attempt: Attempt) -> tuple[str, str, str]:
    """What it is, and the two trees to compare. Commits leave the user's uncommitted files out; snapshots do not."""
    if attempt.commit:
        return f"commit {attempt.commit[:9]}", attempt.head, attempt.commit
    if attempt.rescue_commit:
        return "work that was rolled back, and is kept", attempt.base, attempt.rescue_commit
    if attempt.tree or attempt.proof is None:
        return "candidate", attempt.base, attempt.tree
    proven = attempt.proof
    return "candidate", attempt.head if proven.where == "checkout" else attempt.base, proven.tree


def _has(repo: Repo, name: str) -> bool:
    return bool(name) and ask(repo, "cat-file", "-e", f"{name}^{{tree}}").code == 0


def find_repo(run: RunStarted, env: Mapping[str, str]) -> Repo | None:
    """Where the run worked, else the user's checkout, which has the same objects."""
    for place in filter(None, (run.workspace, run.checkout)):
        with contextlib.suppress(RalphError, OSError):
            if Path(place).is_dir():
                return identify(find_repository(Path(place), home=home(env)))
    return None


def parse(text: str) -> Iterator[FileDiff]:
    """The files of a patch by git. Invisible characters are shown as `<U+202E>`: a reader has to see them."""
    block: list[str] = []
    for line in redact(text).split("\n"):
        if _HEADER.match(line) and block:
            yield _file(block)
            block = []
        if block or _HEADER.match(line):
            block.append(line[:_LONGEST_LINE])
    if block:
        yield _file(block)


def _file(block: list[str]) -> FileDiff:
    status, path = "changed", ""
    hunks: list[Hunk] = []
    lines: list[DiffLine] = []
    head, old, new = "", 0, 0
    for line in block[1:]:
        if match := _HUNK.match(line):
            if head:
                hunks.append(Hunk(head, tuple(lines)))
            head, lines, old, new = line, [], int(match[1]), int(match[2])
        elif head:
            sign, rest = line[:1] or " ", revealed(line[1:])
            if sign not in " +-\\" or (not line and line is block[-1]):
                continue
            lines.append(DiffLine(sign, old if sign in " -" else 0, new if sign in " +" else 0, rest))
            old, new = old + (sign in " -"), new + (sign in " +")
        elif line.startswith("new file mode"):
            status = "added"
        elif line.startswith("deleted file mode"):
            status = "removed"
        elif line.startswith(("Binary files", "GIT binary patch")):
            status = "binary"
        elif line.startswith(("--- ", "+++ ")) and not line.endswith("/dev/null"):
            path = _path(line[4:])
    if head:
        hunks.append(Hunk(head, tuple(lines)))
    if not path:  # of a binary or an empty file: both names are the same, as renames are not looked for
        names = block[0].removeprefix("diff --git ")
        path = _path(names[: len(names) // 2])
    signs = [each.sign for hunk in hunks for each in hunk.lines]
    return FileDiff(revealed(path), status, signs.count("+"), signs.count("-"), tuple(hunks))


def _path(text: str) -> str:
    """Git quotes a name with unusual characters, and ends one with spaces by a tab."""
    text = text.rstrip("\t")
    if text.startswith('"') and text.endswith('"'):
        raw = text[1:-1].encode("latin-1", "backslashreplace").decode("unicode_escape", "replace")
        text = raw.encode("latin-1", "replace").decode("utf-8", "replace")
    return text.removeprefix("a/").removeprefix("b/")
