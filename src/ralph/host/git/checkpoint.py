"""A checkpoint: everything needed to restore a repository to this moment, as a value for the journal."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import time
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.host.file_copies import forget_oldest, keep, kept
from ralph.host.files import disk_trouble, is_special, read_plain
from ralph.host.git.command import ask, git, line
from ralph.host.git.config_files import Tampering, record_config_files, restore_config_files
from ralph.host.git.ignored import KeepIgnored, keep_ignored, listing_call
from ralph.host.git.object_links import forget_objects, link_objects, restore_objects
from ralph.host.git.objects import SUBMODULE, entries
from ralph.host.git.ref_files import NotPlain
from ralph.host.git.refs import BRANCHES, LISTING, copy_reflogs, is_recorded, listing, parse_refs, plain_refs
from ralph.host.git.repo import Repo, RepositoryReplaced, identify, still_the_same
from ralph.host.git.shadow import ignored_of, moments_of, shadow_of, store_of
from ralph.host.git.situation import in_progress
from ralph.host.git.snapshot import full_snapshot
from ralph.host.removal import make_readable, remove_tree

_PINS = "refs/ralph/checkpoint"
_REMEMBERED = 20
"""Copies of the index and lists of refs and ignored files. Only those of the last checkpoint are ever needed."""


class Checkpoint(Struct, frozen=True, kw_only=True):
    """`index`, `branches` and `guarded` name copies in the store next to the private index. Paths are bytes."""

    head: str | None
    """The commit, or None on a branch without commits."""
    branch: str | None
    """None when HEAD was detached."""
    tree: str
    """All files: tracked, staged, untracked. Ignored files are not included."""
    index: str
    """The user's index, byte for byte. Empty when there was none."""
    index_time: int
    """Its mtime in nanoseconds: git compares it with the mtimes of files that changed right after staging."""
    branches: str
    """Every ref and its object."""
    guarded: dict[str, str]
    """Configuration, attributes and hooks of the repository."""
    taken_at: float
    git_inode: int
    objects_inode: int = 0
    history_size: int = 0
    """Length in bytes of HEAD's reflog: everything after that was added since."""
    stash: tuple[str, ...] = ()
    in_progress: str = ""
    nested: tuple[bytes, ...] = ()
    large: tuple[bytes, ...] = ()
    unreadable: tuple[bytes, ...] = ()
    empty_folders: tuple[bytes, ...] = ()
    ignored: str = ""
    """The list of ignored files of which there are copies."""
    submodules: tuple[tuple[bytes, Checkpoint], ...] = ()
    """Those that are checked out."""


@disk_trouble()
def take(repo: Repo, index_file: Path, *, ignored: KeepIgnored | None = None, before: str = "") -> Checkpoint:
    """Record the repository as it is now. The objects it needs are protected from `git gc` until `release`.

    `ignored`: which ignored files are copied; `before` is the list of the last checkpoint.
    """
    still_the_same(repo)
    taken_at = time.time()
    pins, moments = _pins(index_file), moments_of(index_file)
    listed = listing_call(shadow_of(repo, index_file)) if ignored else None
    snapshot, ignored_files = full_snapshot(repo, index_file, listed)
    try:
        known = plain_refs(repo)
    except NotPlain:
        known = parse_refs(git(repo, *LISTING))
    branches = {ref: name for ref, name in known.items() if is_recorded(ref)}
    branch, head = head_of(repo, branches)
    if branch is not None and not branch.isprintable():  # the journal holds text
        raise SetupError(f"the branch name {branch!r} is not valid UTF-8", hint="rename it with `git branch -m NAME`")
    checkpoint = Checkpoint(
        head=head,
        branch=branch,
        tree=snapshot.tree,
        index=keep(moments, index, durable=False) if (index := real_index(repo)) is not None else "",
        index_time=written_at(repo.git_dir / "index"),
        branches=keep(moments, listing(branches), durable=False),
        guarded=record_config_files(repo, store_of(index_file)),
        taken_at=taken_at,
        git_inode=repo.git_dir_id.inode,
        objects_inode=_inode(repo.common_dir / "objects"),
        history_size=_size(repo.git_dir / "logs" / "HEAD"),
        stash=stashed(repo),
        in_progress=in_progress(repo.git_dir),
        nested=snapshot.nested,
        large=snapshot.large,
        unreadable=snapshot.unreadable,
        empty_folders=snapshot.empty_folders,
        ignored=keep_ignored(repo, index_file, ignored_files, before, ignored) if ignored else "",
        submodules=_take_submodules(repo, index_file, snapshot.tree),
    )
    link_objects(repo, index_file)
    copy_reflogs(repo, index_file)
    wanted = {f"{pins}/tree": snapshot.tree} | ({f"{pins}/head": head} if head else {})
    wanted |= {f"{pins}/index": snapshot.base} if snapshot.base != snapshot.tree else {}
    _pin(repo, {ref: name for ref, name in wanted.items() if known.get(ref) != name})
    forget_oldest(moments, _REMEMBERED)
    return checkpoint


def _take_submodules(repo: Repo, index_file: Path, tree: str) -> tuple[tuple[bytes, Checkpoint], ...]:
    found = []
    for path in submodules_of(repo, tree):
        with contextlib.suppress(SetupError):  # a folder that is not usable as a repository has nothing to restore
            found.append((path, take(submodule(repo, path), submodule_index(index_file, path))))
    return tuple(found)


def submodules_of(repo: Repo, tree: str) -> list[bytes]:
    """The submodules of a tree that are checked out."""
    if not (repo.root / ".gitmodules").exists():
        return []
    links = [path for path, entry in entries(repo, tree).items() if entry.mode == SUBMODULE]
    return [path for path in links if os.path.lexists(repo.root / os.fsdecode(path) / ".git")]


def submodule(repo: Repo, path: bytes) -> Repo:
    return identify(repo.root / os.fsdecode(path))


def submodule_index(index_file: Path, path: bytes) -> Path:
    return index_file.with_name(f"{index_file.name}.sub-{hashlib.sha256(path).hexdigest()[:12]}")


def _pin(repo: Repo, refs: dict[str, str]) -> None:
    """Our own refs that keep objects alive. Written as files, which is 2 ms faster per iteration than git."""
    if (repo.common_dir / "reftable").exists():
        script = "".join(f"update {ref} {name}\n" for ref, name in refs.items())
        git(repo, "update-ref", "--stdin", stdin=script.encode())
        return
    for ref, name in refs.items():
        path = repo.common_dir / ref
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except (FileExistsError, NotADirectoryError):  # an agent made a ref of a part of the name
            remove_tree(repo.common_dir / _PINS)
            path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            remove_tree(path)
        temporary = path.with_name(f"{path.name}.lock")  # the name under which git would write it, too
        temporary.write_text(f"{name}\n")
        temporary.replace(path)


def pin_tree(repo: Repo, index_file: Path, name: str, tree: str) -> None:
    """Protect a tree from a `git gc --prune=now` of the user's while it is judged."""
    _pin(repo, {f"{_pins(index_file)}/{name}": tree})


def is_pinned(repo: Repo, index_file: Path, checkpoint: Checkpoint) -> bool:
    """Whether our refs name the objects of this checkpoint. True also if they are gone: an agent may have removed them.

    A journal that names others was not written by the run that pinned them.
    """
    pins = _pins(index_file)
    known = parse_refs(ask(repo, "for-each-ref", "--format=%(objectname) %(refname)", pins).out)
    same_head = known.get(f"{pins}/head", checkpoint.head) == checkpoint.head or checkpoint.head is None
    return same_head and known.get(f"{pins}/tree", checkpoint.tree) == checkpoint.tree


def has_tree(repo: Repo, index_file: Path, checkpoint: Checkpoint) -> bool:
    """Whether the repository has the files of the checkpoint. What an agent pruned is linked back first.

    A copy of the repository from before the run lacks them, too, but has another folder for objects.
    """
    look = ("cat-file", "-e", f"{checkpoint.tree}^{{tree}}")
    if ask(repo, *look).code == 0:
        return True
    is_same = checkpoint.objects_inode == _inode(repo.common_dir / "objects")
    return is_same and restore_objects(repo, index_file) and ask(repo, *look).code == 0


@disk_trouble()
def release(repo: Repo, index_file: Path) -> None:
    """The run is over and will not return to its last checkpoint. What the next run can reuse is kept."""
    pins = _pins(index_file)
    for ref in parse_refs(ask(repo, *LISTING, pins).out):
        git(repo, "update-ref", "-d", ref)
    forget_oldest(moments_of(index_file), 0)
    forget_objects(repo, index_file)
    remove_tree(ignored_of(index_file))
    for path in submodules_of(repo, "HEAD"):
        with contextlib.suppress(SetupError):
            release(submodule(repo, path), submodule_index(index_file, path))


@disk_trouble()
def undo_tampering(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> tuple[Tampering, ...]:
    """Restore configuration, hooks and objects. Git is not safe to use after an agent has run until this was called."""
    _require_rights(repo)
    still_the_same(repo)
    if repo.git_dir_id.inode != checkpoint.git_inode:
        raise RepositoryReplaced(
            f"the git folder {repo.git_dir} is not the one the checkpoint was made in",
            hint="the repository was replaced since then, so the unfinished iteration cannot be rolled back",
        )
    found = restore_config_files(repo, checkpoint.guarded, store_of(index_file))
    restore_objects(repo, index_file)
    return found


def _require_rights(repo: Repo) -> None:
    """Restore permissions on the git folder, in case the agent removed them."""
    places = [repo.git_dir, *(repo.common_dir / name for name in ("", "objects", "refs", "refs/heads", "hooks"))]
    if any(place.exists() and not os.access(place, os.R_OK | os.W_OK | os.X_OK) for place in places):
        make_readable(repo.common_dir, frozenset())


def branches_of(checkpoint: Checkpoint, index_file: Path) -> dict[str, str]:
    return parse_refs(kept(moments_of(index_file), checkpoint.branches))


def head_of(repo: Repo, branches: dict[str, str] | None = None) -> tuple[str | None, str | None]:
    """Branch and commit of HEAD. Read from its file; git is only asked for what is not in files.

    `branches` are the local branches, if already known.
    """
    data = read_plain(repo.git_dir / "HEAD")
    if data is None:
        return None, None
    text = line(data).strip()
    if text == f"ref: {BRANCHES}.invalid":
        text = f"ref: {line(git(repo, 'symbolic-ref', 'HEAD'))}"
    if not text.startswith("ref: "):
        return None, text
    ref = text.removeprefix("ref: ").strip()
    return ref.removeprefix(BRANCHES), branches.get(ref) if branches is not None else commit_at(repo, ref)


def commit_at(repo: Repo, ref: str) -> str | None:
    """The commit of a ref, given by its full name. Git is only asked for what is not in a file of its own."""
    if is_special(repo.common_dir / ref):
        return None
    text = (read_plain(repo.common_dir / ref) or b"").decode("ascii", "replace").strip()
    if re.fullmatch("[0-9a-f]{40,64}", text):
        return text
    found = ask(repo, "rev-parse", "--verify", "-q", f"{ref}^{{commit}}")
    return line(found.out) if found.code == 0 else None


def real_index(repo: Repo) -> bytes | None:
    return read_plain(repo.git_dir / "index")


def stashed(repo: Repo) -> tuple[str, ...]:
    """The commits of the user's stash, oldest first."""
    lines = (read_plain(repo.common_dir / "logs" / "refs" / "stash") or b"").splitlines()
    return tuple(parts[1].decode("ascii", "replace") for item in lines if len(parts := item.split(b" ", 2)) == 3)


def _inode(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_ino
    return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def written_at(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _pins(index_file: Path) -> str:
    """Refs that keep the objects of the open checkpoint alive. Two runs in one repository use different ones."""
    return f"{_PINS}/{hashlib.sha256(os.fsencode(index_file)).hexdigest()[:12]}"
