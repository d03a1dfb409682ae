"""The state of a repository before a run touches it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.host.files import read_plain
from ralph.host.git.command import BAD_INDEX, Call, git, git_together, names, printable
from ralph.host.git.index_files import NotPlainIndex, is_valid_index, read_index
from ralph.host.git.repo import Repo

# What git leaves in its folder while an operation waits for the user, in the order git itself looks at it.
_MARKS = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("MERGE_HEAD", "merge"),
    ("sequencer", "cherry-pick"),  # several picks or reverts, between two of them
    ("BISECT_LOG", "bisect"),
)
_SERIES = Path("sequencer", "todo")


class Kind(StrEnum):
    STAGED = "staged"
    CHANGED = "changed"
    UNTRACKED = "untracked"
    CONFLICT = "conflict"


class Entry(Struct, frozen=True):
    """A path with uncommitted changes. `path` is printable; a name that is not UTF-8 contains escapes."""

    path: str
    kind: Kind


class Situation(Struct, frozen=True, kw_only=True):
    head: str | None
    branch: str | None
    """None when HEAD is detached."""
    in_progress: str = ""
    """"merge", "rebase", "am", "cherry-pick", "revert", "bisect", or empty."""
    submodules: tuple[str, ...] = ()
    dirty: tuple[Entry, ...] = ()
    nested_repositories: tuple[str, ...] = ()
    """Repositories inside the working tree that are neither submodules nor ignored."""

    @property
    def unborn(self) -> bool:
        return self.head is None

    @property
    def detached(self) -> bool:
        return self.branch is None


def situation(repo: Repo) -> Situation:
    data = read_plain(repo.git_dir / "index")
    if data is not None and not is_valid_index(repo.object_format, data):
        raise SetupError(f"the index of {repo.root} is damaged", hint=BAD_INDEX)
    status = ("status", "--porcelain=v2", "--branch", "-z", "--no-renames", "--untracked-files=all")
    status_call = Call(repo, (*status, "--ignore-submodules=dirty"))
    try:
        links = read_index(repo.git_dir / "index", repo.object_format).links
        listed = git(repo, *status_call.args)
    except NotPlainIndex:
        listed, staged = git_together([status_call, Call(repo, ("ls-files", "-z", "--stage"))])
        links = tuple(item.split(b"\t", 1)[1] for item in names(staged) if item.startswith(b"160000 "))
    fields = names(listed)
    headers = dict(f[2:].decode("utf-8", "surrogateescape").split(" ", 1) for f in fields if f.startswith(b"# "))
    head, branch = headers.get("branch.oid", "(initial)"), headers.get("branch.head", "(detached)")
    entries = [entry for field in fields if not field.startswith(b"#") for entry in _entries(field)]
    nested = tuple(e.path.rstrip("/") for e in entries if e.path.endswith("/"))
    return Situation(
        head=None if head == "(initial)" else head,
        branch=None if branch == "(detached)" else branch,
        in_progress=in_progress(repo.git_dir),
        submodules=tuple(printable(path) for path in links),
        dirty=tuple(e for e in entries if not e.path.endswith("/")),
        nested_repositories=nested,
    )


def untracked(repo: Repo) -> frozenset[str]:
    """Files that git neither tracks nor ignores."""
    out = git(repo, "ls-files", "-z", "--others", "--exclude-standard")
    return frozenset(printable(path) for path in names(out))


def _entries(field: bytes) -> list[Entry]:
    match field[:1]:
        case b"?":
            return [Entry(printable(field[2:]), Kind.UNTRACKED)]
        case b"u":
            return [Entry(printable(field.split(b" ", 10)[10]), Kind.CONFLICT)]
        case b"1":
            parts = field.split(b" ", 8)
            path, staged, changed = printable(parts[8]), parts[1][:1] != b".", parts[1][1:2] != b"."
            return [Entry(path, kind) for kind, is_so in ((Kind.STAGED, staged), (Kind.CHANGED, changed)) if is_so]
        case _:
            return []


def in_progress(git_dir: Path) -> str:
    found = next((name for mark, name in _MARKS if (git_dir / mark).exists()), "")
    if found == "cherry-pick" and (read_plain(git_dir / _SERIES) or b"").startswith(b"revert "):
        return "revert"
    return found


def phrase(operation: str) -> str:
    return "an am session" if operation == "am" else f"a {operation}"


def abort_command(operation: str) -> str:
    return "git bisect reset" if operation == "bisect" else f"git {operation} --abort"
