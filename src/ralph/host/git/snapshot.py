"""The working tree as one tree object: tracked, staged and untracked files, byte for byte, without the ignored ones.

A private index remembers what it saw, so only files that changed are read. The user's own index is not touched.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from ralph.host.files import disk_trouble, is_special
from ralph.host.git.command import Answer, Call, GitFailed, ask, ask_together, git, line, names
from ralph.host.git.repo import Repo
from ralph.host.git.shadow import Shadow, shadow_of
from ralph.host.removal import make_readable

LARGEST_FILE = 100 * 1024 * 1024
"""Bytes. An untracked file larger than this is left in place and not read; the same limit as GitHub's."""

_LOOK = ("ls-files", "-z", "-t", "--modified", "--deleted", "--others", "--exclude-standard")
_IGNORED = ("ls-files", "-z", "--cached", "--ignored", "--exclude-standard")
_ADD = ("update-index", "-z", "--add", "--remove", "--replace", "--stdin")
_DROP = ("update-index", "-z", "--force-remove", "--stdin")
_CLOSED = re.compile(rb"could not open directory '(.*?)/?': Permission denied", re.DOTALL)
_FEW = 100
"""Number of paths per command line."""
_ROUNDS = 5
_NO_LIMIT = 1 << 62

Signature = tuple[int, int, int, int]


class Snapshot(Struct, frozen=True):
    """A tree, and what is in the folder but not in the tree. Paths are bytes, relative to the root."""

    tree: str
    nested: tuple[bytes, ...] = ()
    """Repositories in the folder that are not submodules. Git does not look into them."""
    large: tuple[bytes, ...] = ()
    unreadable: tuple[bytes, ...] = ()
    empty_folders: tuple[bytes, ...] = ()
    """Only when requested."""


class _Known(Struct):
    """Cached in this process. Not written to disk: between two runs `git gc` may remove objects."""

    index: Signature | None = None
    """The private index as it was when `tree` was made from it."""
    tree: str = ""
    real_index: Signature | None = None
    tracked: frozenset[bytes] = frozenset()
    """Entries of the user's index that a rule ignores."""


_KNOWN: dict[Path, _Known] = {}


class _Seen(Struct):
    """The pending changes to the private index, and what stays out of it."""

    add: list[bytes] = []
    drop: list[bytes] = []
    submodules: list[bytes] = []
    nested: list[bytes] = []
    large: list[bytes] = []
    unreadable: list[bytes] = []
    empty_folders: list[bytes] = []
    troubled: bool = False
    """Something could not be read."""
    again: bool = False
    """There is more to see once this is in the index."""


def snapshot_tree(repo: Repo, index_file: Path) -> str:
    return snapshot(repo, index_file).tree


@disk_trouble()
def snapshot(
    repo: Repo,
    index_file: Path,
    *,
    unreadable_before: Iterable[bytes] | None = None,
    rules_changed: bool = False,
) -> Snapshot:
    """Take a snapshot. `rules_changed`: ignore rules changed and the private index already reflects it.

    `unreadable_before` are the paths that were unreadable at the checkpoint. If given, everything else that is
    unreadable became so since then, and is made readable: what cannot be read cannot be saved.
    """
    shadow = shadow_of(repo, index_file)
    seen = _look(repo, shadow, rules_changed)
    if seen.troubled and unreadable_before is not None:
        make_readable(repo.root, frozenset((*unreadable_before, b".git")))
        seen = _look(repo, shadow, rules_changed)
    return _recorded(repo, shadow, seen)


def full_snapshot(repo: Repo, index_file: Path, also: Sequence[Call]) -> tuple[Snapshot, list[Answer]]:
    """A snapshot for a checkpoint: rereads all ignore rules, and records the empty folders.

    `also` are other commands, run in parallel; their answers come second.
    """
    shadow = shadow_of(repo, index_file, refresh=True)
    calls = [Call(shadow, (*_LOOK, "--directory")), Call(shadow, _IGNORED), *_question(repo, shadow)]
    looked, ignored, *others = ask_together([*calls, *also])
    answers = others[len(others) - len(also) :]
    if looked.code or ignored.code:
        seen = _look(repo, shadow)
        looked = ask(shadow, *_LOOK, "--directory")
        seen.empty_folders = _empty_folders(repo.root, looked.out)[0]
    else:
        empty, is_all = _empty_folders(repo.root, looked.out)
        listing = looked.out if is_all else git(shadow, *_LOOK)
        now_ignored = set(names(ignored.out))
        tracked = _tracked(repo, shadow, others[: len(calls) - 2], rules_changed=bool(now_ignored))
        seen = _sort(repo, shadow, listing, tracked, now_ignored)
        seen.empty_folders = empty
    seen.unreadable += _CLOSED.findall(looked.err)
    return _recorded(repo, shadow, seen), answers


def _question(repo: Repo, shadow: Shadow) -> list[Call]:
    """Entries of the user's index that a rule ignores. Not asked again while the index is unchanged.

    Runs in the shadow: no configuration is read, and the rules are those of the checkpoint.
    """
    index = _real_index(repo, shadow)
    known = _KNOWN.get(shadow.index)
    if known and known.real_index is not None and known.real_index == _signature(index):
        return []
    return [Call(shadow, _IGNORED, index)]


def _tracked(repo: Repo, shadow: Shadow, answers: Sequence[Answer], *, rules_changed: bool) -> frozenset[bytes]:
    """The answer to `_question`, or the cached one if there was nothing to ask."""
    known = _KNOWN.setdefault(shadow.index, _Known())
    if not answers and not rules_changed:
        return known.tracked
    index = _real_index(repo, shadow)
    signature = _signature(index)
    answer = answers[0] if answers else ask(shadow, *_IGNORED, index=index)
    if answer.code:  # a split index has its other half in the git folder, where only git itself finds it
        answer = ask(repo, *_IGNORED)
    known.real_index, known.tracked = signature, frozenset(names(answer.out))
    return known.tracked


def _real_index(repo: Repo, shadow: Shadow) -> Path:
    """The user's index; a path that does not exist if it is a pipe, on which git would hang."""
    path = repo.git_dir / "index"
    return shadow.git_dir / "no-index" if is_special(path) else path


def _signature(path: Path) -> Signature | None:
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def _look(repo: Repo, shadow: Shadow, rules_changed: bool = False) -> _Seen:
    looked, *others = ask_together([Call(shadow, _LOOK), *_question(repo, shadow)])
    if looked.code:  # a damaged index; it is only a cache
        shadow.index.unlink(missing_ok=True)
        looked = ask(shadow, *_LOOK)
    if looked.code:
        raise GitFailed(_LOOK, looked)
    rules_changed = rules_changed or b".gitignore\0" in looked.out
    ignored = set(names(git(shadow, *_IGNORED))) if rules_changed else set()
    tracked = _tracked(repo, shadow, others, rules_changed=rules_changed)
    seen = _sort(repo, shadow, looked.out, tracked, ignored)
    seen.unreadable += _CLOSED.findall(looked.err)
    seen.troubled = bool(seen.unreadable)
    return seen


def _sort(repo: Repo, shadow: Shadow, listing: bytes, tracked_anyway: frozenset[bytes], ignored: set[bytes]) -> _Seen:
    paths = {item[2:] for item in names(listing)}
    seen = _Seen(drop=list(ignored - tracked_anyway))
    folders, large = [], []
    for path in paths | (tracked_anyway - ignored):
        if path.endswith(b"/"):
            if _is_repository(repo.root, path[:-1]):
                folders.append(path[:-1])
        elif (kind := _kind(repo.root, path)) == "large":
            large.append(path)
        else:
            getattr(seen, kind).append(path)
    _sort_by_index(repo, shadow, seen, folders, large)
    return seen


def _kind(root: Path, path: bytes, limit: int = LARGEST_FILE) -> str:
    full = os.fsencode(root) + b"/" + path
    try:
        found = os.lstat(full)
    except PermissionError:
        return "unreadable"
    except OSError:
        return "drop"
    is_file = stat.S_ISREG(found.st_mode)
    if _is_beyond_link(root, path) or any(part.lower() == b".git" for part in path.split(b"/")):
        return "drop"  # not in the working tree, or a name that git does not take
    if stat.S_ISDIR(found.st_mode):
        return "submodules" if _is_repository(root, path) else "drop"
    if not is_file and not stat.S_ISLNK(found.st_mode):
        return "drop"  # a pipe or a socket
    if is_file and not os.access(full, os.R_OK):
        return "unreadable"
    return "large" if is_file and found.st_size > limit else "add"


def _is_beyond_link(root: Path, path: bytes) -> bool:
    """Whether a folder on the path is a link, so that the file is elsewhere."""
    base, parts = os.fsencode(root), path.split(b"/")[:-1]
    return any(os.path.islink(base + b"/" + b"/".join(parts[: n + 1])) for n in range(len(parts)))  # noqa: PTH114


def _is_repository(root: Path, path: bytes) -> bool:
    return os.path.lexists(os.fsencode(root) + b"/" + path + b"/.git")


def _sort_by_index(repo: Repo, shadow: Shadow, seen: _Seen, folders: Sequence[bytes], large: Sequence[bytes]) -> None:
    """Nested repositories and large files: their entries in the user's index belong to the tree."""
    modes: dict[bytes, bytes] = {}
    asked = [*folders, *large]
    for start in range(0, len(asked), _FEW):
        question: tuple[str | bytes, ...] = ("ls-files", "-z", "--stage", "--", *asked[start : start + _FEW])
        answer = ask(shadow, *question, index=_real_index(repo, shadow))
        out = answer.out if answer.code == 0 else git(repo, *question)
        modes |= {item.partition(b"\t")[2]: item.partition(b" ")[0] for item in names(out)}
    for path in large:
        (seen.add if path in modes else seen.large).append(path)
    seen.drop += seen.large
    for folder in folders:
        if modes.get(folder) == b"160000":
            seen.submodules.append(folder)
        elif inner := [p for p in modes if p.startswith(folder + b"/") and _kind(repo.root, p, _NO_LIMIT) == "add"]:
            seen.add += inner  # someone ran `git init` inside a project; its files are still the project's
            seen.again = True
        else:
            seen.nested.append(folder)


def _recorded(repo: Repo, shadow: Shadow, seen: _Seen) -> Snapshot:
    for _ in range(_ROUNDS):
        try:
            tree = _record(shadow, seen)
        except GitFailed:
            # The index names objects that a `git gc` has removed, or files came and went meanwhile. From scratch.
            shadow.index.unlink(missing_ok=True)
        else:
            if not seen.again:
                return _result(tree, seen)
        empty = seen.empty_folders
        seen = _look(repo, shadow)
        seen.empty_folders = empty
    return _result(_record(shadow, seen), seen)


def _result(tree: str, seen: _Seen) -> Snapshot:
    nested, large, unreadable = (tuple(sorted(paths)) for paths in (seen.nested, seen.large, seen.unreadable))
    return Snapshot(tree, nested, large, unreadable, tuple(seen.empty_folders))


def _record(shadow: Shadow, seen: _Seen) -> str:
    if drop := [*seen.drop, *seen.unreadable]:
        git(shadow, *_DROP, stdin=_joined(drop))
    if seen.add:
        git(shadow, *_ADD, stdin=_joined(seen.add))
    for path in seen.submodules:
        ask(shadow, *_ADD, stdin=_joined([path]))  # one without a commit is left out
    known = _KNOWN.setdefault(shadow.index, _Known())
    if known.index is not None and known.index == _signature(shadow.index) and _exists(shadow, known.tree):
        return known.tree
    known.tree = line(git(shadow, "write-tree"))
    known.index = _signature(shadow.index)
    return known.tree


def _exists(shadow: Shadow, name: str) -> bool:
    """Most trees that were just written are loose objects."""
    return (shadow.objects / name[:2] / name[2:]).exists() or ask(shadow, "cat-file", "-e", name).code == 0


def _joined(paths: Iterable[bytes]) -> bytes:
    return b"".join(path + b"\0" for path in paths)


def _empty_folders(root: Path, listing: bytes) -> tuple[list[bytes], bool]:
    """The empty folders among the untracked ones, and whether nothing else is untracked."""
    base = os.fsencode(root)
    empty: list[bytes] = []
    is_all = True
    for item in names(listing):
        if not item.startswith(b"? "):
            continue
        if not item.endswith(b"/"):
            is_all = False
        elif not _is_repository(root, item[2:-1]):
            for where, folders, files in os.walk(base + b"/" + item[2:-1]):
                is_all = is_all and not files and not any(os.path.islink(where + b"/" + f) for f in folders)  # noqa: PTH114
                if not folders and not files:
                    empty.append(os.path.relpath(where, base))
                folders[:] = [f for f in folders if f != b".git"]
    return sorted(empty), is_all
