"""Repositories inside the working tree: submodules, and those that an agent made.

Git does not look into either. The files of a new repository are saved before a rollback removes it. Of a submodule the
repository around it records only the commit.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.core.text import one_line
from ralph.host.git.checkpoint import Checkpoint, submodule, submodule_index, undo_tampering
from ralph.host.git.command import ask, git, line, names, printable
from ralph.host.git.objects import SUBMODULE, TreeEntry, changes, entries, folders, set_entries
from ralph.host.git.repo import Repo
from ralph.host.git.shadow import Shadow
from ralph.host.git.snapshot import snapshot

SAVED_GIT = b".git-saved"
"""The name under which a nested `.git` is saved: no tree can hold one that is called `.git`."""
_SLACK = 0.1
"""Seconds by which a file system's clock may lag."""
_FEW = 3


def new_repositories(
    root: Path,
    checkpoint: Checkpoint,
    before: Mapping[bytes, TreeEntry],
    now: Mapping[bytes, TreeEntry],
    seen: Iterable[bytes],
) -> list[bytes]:
    """Folders that became repositories since the checkpoint, including new submodules and project folders."""
    links = {path for path, entry in now.items() if entry.mode == SUBMODULE and path not in before}
    found = {*seen, *links, *(f for f in folders([*now, *before]) if os.path.lexists(_dot_git(root, f)))}
    found -= {*checkpoint.nested, *(path for path, entry in before.items() if entry.mode == SUBMODULE)}
    return sorted(path for path in found if _is_young(_dot_git(root, path), checkpoint.taken_at - _SLACK))


def _dot_git(root: Path, path: bytes) -> bytes:
    return os.fsencode(root) + b"/" + path + b"/.git"


def _is_young(dot_git: bytes, since: float) -> bool:
    """Whether all of it was created since then. A folder that was moved here is older, and is left alone."""
    try:
        if not stat.S_ISDIR(os.lstat(dot_git).st_mode):
            return os.lstat(dot_git).st_ctime >= since
        with os.scandir(dot_git) as entries:
            times = [entry.stat(follow_symlinks=False).st_ctime for entry in entries]
        return min(times, default=os.lstat(dot_git).st_ctime) >= since
    except OSError:
        return False


def files_of(shadow: Shadow, folder: bytes, limit: int) -> dict[bytes, bytes]:
    """All files a nested repository does not ignore, and its git folder: path in the tree → path on disk."""
    root = os.fsencode(shadow.root)
    inner = msgspec.structs.replace(shadow, root=shadow.root / os.fsdecode(folder), index=shadow.git_dir / "no-index")
    found: dict[bytes, bytes] = {}
    for name in names(ask(inner, "ls-files", "-z", "--others", "--exclude-standard").out):
        if name.endswith(b"/"):
            found |= files_of(shadow, folder + b"/" + name[:-1], limit)
        else:
            found[folder + b"/" + name] = root + b"/" + folder + b"/" + name
    for path in _walk(root + b"/" + folder + b"/.git"):
        inside = os.path.relpath(path, root + b"/" + folder)
        found[folder + b"/" + SAVED_GIT + inside.removeprefix(b".git")] = path
    return {name: path for name, path in found.items() if _can_be_saved(path, limit)}


def _walk(path: bytes) -> Iterator[bytes]:
    if not os.path.isdir(path) or os.path.islink(path):  # noqa: PTH112, PTH114 - bytes
        yield path
    for where, inner, files in os.walk(path):
        links = [name for name in inner if os.path.islink(where + b"/" + name)]  # noqa: PTH114
        yield from (where + b"/" + name for name in (*files, *links))


def _can_be_saved(path: bytes, limit: int) -> bool:
    try:
        found = os.lstat(path)
    except OSError:
        return False
    is_file = stat.S_ISREG(found.st_mode) and found.st_size <= limit and os.access(path, os.R_OK)
    return is_file or stat.S_ISLNK(found.st_mode)


def all_files_below(root: Path, folder: bytes, limit: int) -> dict[bytes, bytes]:
    """Every file in a folder, ignored or not."""
    base = os.fsencode(root) + b"/"
    paths = (path for path in _walk(base + folder) if b".git" not in path.removeprefix(base).split(b"/"))
    return {path.removeprefix(base): path for path in paths if _can_be_saved(path, limit)}


def add_files(shadow: Shadow, index: Path, files: dict[bytes, bytes]) -> None:
    """Add files to an index under given names, as they are on disk."""
    wanted = {}
    plain = [name for name, path in files.items() if not os.path.islink(path)]  # noqa: PTH114 - bytes
    if plain:
        asked = b"".join(_quoted(files[name]) + b"\n" for name in plain)
        ids = line(git(shadow, "hash-object", "-w", "--no-filters", "--stdin-paths", stdin=asked)).split("\n")
        for name, object_id in zip(plain, ids, strict=True):
            is_program = os.access(files[name], os.X_OK)
            wanted[name] = TreeEntry("100755" if is_program else "100644", object_id)
    for name in files.keys() - set(plain):
        target = os.readlink(files[name])  # noqa: PTH115 - bytes
        object_id = line(git(shadow, "hash-object", "-w", "--no-filters", "--stdin", stdin=target))
        wanted[name] = TreeEntry("120000", object_id)
    set_entries(shadow, wanted, index)


def _quoted(path: bytes) -> bytes:
    """A line for `--stdin-paths`. Git takes a carriage return at the end of a line for part of the line break."""
    if not path.startswith(b'"') and not path.endswith(b"\r") and b"\n" not in path:
        return path
    escapes = ((b"\\", b"\\\\"), (b'"', b'\\"'), (b"\n", b"\\n"), (b"\r", b"\\r"))
    for character, escape in escapes:
        path = path.replace(character, escape)
    return b'"' + path + b'"'


class Inside(Struct, frozen=True):
    objections: tuple[str, ...] = ()
    """Edits that no commit has: a clone would not have them either."""
    notices: tuple[str, ...] = ()


def look_inside(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> Inside:
    objections: list[str] = []
    notices: list[str] = []
    for path, before in checkpoint.submodules:
        name = one_line(printable(path), 100)
        try:
            inner = submodule(repo, path)
            own_index = submodule_index(index_file, path)
            undo_tampering(inner, before, own_index)
            edited = list(_uncommitted(inner, before, own_index))
        except SetupError as error:
            objections.append(f"the submodule {name} is not usable any more: {error}")
            continue
        if edited:
            some = ", ".join(one_line(each, 60) for each in edited[:_FEW])
            objections.append(
                f"changes inside the submodule {name} are not committed, so a clone would not have them: {some};"
                " commit them inside the submodule, or undo them"
            )
        if _is_only_here(inner, before):
            notices.append(f"the submodule {name} is at a new commit that none of its remotes has: push it")
        deeper = look_inside(inner, before, own_index)
        objections += deeper.objections
        notices += deeper.notices
    return Inside(tuple(objections), tuple(notices))


def _uncommitted(repo: Repo, before: Checkpoint, index_file: Path) -> Iterator[str]:
    now = snapshot(repo, index_file, unreadable_before=before.unreadable).tree
    changed = changes(repo, before.tree, now)
    committed = entries(repo, "HEAD") if changed else {}
    for change in changed:
        known = committed.get(change.raw)
        if (known.mode, known.id) != (change.new_mode, change.new_id) if known else change.status != "D":
            yield change.path


def _is_only_here(repo: Repo, before: Checkpoint) -> bool:
    head = ask(repo, "rev-parse", "--verify", "--quiet", "HEAD").out.decode().strip()
    if not head or head == before.head:
        return False
    return ask(repo, "for-each-ref", "--count=1", f"--contains={head}", "refs/remotes").out == b""
