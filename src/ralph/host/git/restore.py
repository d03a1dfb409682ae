"""Return to a checkpoint. Removes and rewrites only what is saved elsewhere, and never through a link."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from ralph.host.git.checkpoint import Checkpoint, undo_tampering
from ralph.host.git.command import ask, git, names, printable
from ralph.host.git.guarded import Tampering
from ralph.host.git.heads import restore_heads
from ralph.host.git.nested import SAVED_GIT, all_files_below, files_of, new_repositories
from ralph.host.git.repo import Repo
from ralph.host.git.shadow import Shadow, shadow_of
from ralph.host.git.snapshot import LARGEST_FILE, Snapshot, snapshot
from ralph.host.git.tree_diff import Changed, TreeEntry, changes, entries, folders, index_line
from ralph.host.plain_file import disk_trouble, special_in
from ralph.host.removal import (
    is_file,
    is_folder,
    make_folders,
    make_readable,
    remove_empty_folders,
    remove_file,
    remove_tree,
    set_permissions,
)

_EVERYTHING = 1 << 62
_ROUNDS = 3
_SLACK = 0.1


class Restored(Struct, frozen=True, kw_only=True):
    """What was restored. Paths are printable."""

    removed: tuple[str, ...] = ()
    rewritten: tuple[str, ...] = ()
    branches: tuple[str, ...] = ()
    lost_refs: tuple[str, ...] = ()
    """Sentences about refs and stashes that could not be restored."""
    tampering: tuple[Tampering, ...] = ()
    unsaved: tuple[str, ...] = ()
    """Left as the agent left it, because it is not in the saved tree."""
    left: tuple[str, ...] = ()
    """Still different for another reason: a file that cannot be removed, a submodule."""

    @property
    def is_complete(self) -> bool:
        return not self.unsaved and not self.left and not self.lost_refs


@disk_trouble()
def restore(
    repo: Repo,
    checkpoint: Checkpoint,
    index_file: Path,
    saved: str | None,
    *,
    limit: int = LARGEST_FILE,
    leave: Collection[bytes] = (),
) -> Restored:
    """Restore HEAD, branches, index and files to `checkpoint`, without those in `leave`: the caller writes them.

    `saved` is the tree or commit that holds the work of the agent. A file that is not in it, as it is now, stays.
    Without `saved` nothing that the checkpoint does not have is removed and nothing is overwritten.
    """
    tampering = undo_tampering(repo, checkpoint, index_file)
    heads = restore_heads(repo, checkpoint, index_file, saved)
    safe = entries(repo, saved) if saved else {}
    work = _Work(repo, shadow_of(repo, index_file), checkpoint, safe, limit)
    current = work.look()
    todo = [change for change in changes(repo, current.tree, checkpoint.tree) if change.raw not in leave]
    # The ignore rules first: they say which of the other files count as ignored, and those are not touched.
    if rules := [change for change in todo if change.raw.rpartition(b"/")[2] == b".gitignore"]:
        work.apply(rules)
        current = work.look()
        todo = [change for change in changes(repo, current.tree, checkpoint.tree) if change.raw not in leave]
    work.apply(todo)
    work.remove_repositories(current)
    work.remove_pipes()
    work.restore_empty_folders()
    rest = changes(repo, work.look().tree, checkpoint.tree)
    unsaved = {printable(path) for path in work.unsaved}
    return Restored(
        removed=tuple(printable(path) for path in work.removed),
        rewritten=tuple(printable(path) for path in work.rewritten),
        branches=heads.refs,
        lost_refs=heads.failed,
        tampering=tampering,
        unsaved=tuple(sorted(unsaved)),
        left=tuple(change.path for change in rest if change.path not in unsaved and change.raw not in leave),
    )


@disk_trouble()
def restore_some(
    repo: Repo,
    checkpoint: Checkpoint,
    index_file: Path,
    saved: str | None,
    is_wanted: Callable[[str], bool],
    *,
    limit: int = LARGEST_FILE,
) -> Restored:
    """Restore only the files selected by `is_wanted`. HEAD, branches and index stay as they are."""
    safe = entries(repo, saved) if saved else {}
    work = _Work(repo, shadow_of(repo, index_file), checkpoint, safe, limit)
    rest: list[Changed] = []
    for _ in range(_ROUNDS):  # an ignore rule that is put back can show files that it had hidden
        current = work.look()
        work.remove_repositories(current, lambda folder: is_wanted(printable(folder)))
        rest = [change for change in changes(repo, current.tree, checkpoint.tree) if is_wanted(change.path)]
        todo = [change for change in rest if change.raw not in work.unsaved]
        if not todo:
            break
        work.apply(todo)
    unsaved = {printable(path) for path in work.unsaved}
    return Restored(
        removed=tuple(printable(path) for path in work.removed),
        rewritten=tuple(printable(path) for path in work.rewritten),
        unsaved=tuple(sorted(unsaved)),
        left=tuple(change.path for change in rest if change.path not in unsaved),
    )


class _Work:
    """One restore in progress."""

    def __init__(
        self, repo: Repo, shadow: Shadow, checkpoint: Checkpoint, saved: Mapping[bytes, TreeEntry], limit: int
    ) -> None:
        self.repo = repo
        self.shadow = shadow
        self.checkpoint = checkpoint
        self.saved = saved
        self.limit = limit
        self.before = entries(repo, checkpoint.tree)
        self.kept_folders = folders([*self.before, *(f + b"/" for f in checkpoint.empty_folders)])
        self.removed: list[bytes] = []
        self.rewritten: list[bytes] = []
        self.unsaved: set[bytes] = set()

    def look(self) -> Snapshot:
        unreadable = self.checkpoint.unreadable
        return snapshot(
            self.repo, self.shadow.index, limit=self.limit, unreadable_before=unreadable, rules_changed=True
        )

    def apply(self, todo: Sequence[Changed]) -> None:
        """Make these paths match the right side of each change."""
        todo = [change for change in todo if not change.is_submodule]
        unsafe = {change.raw for change in todo if not self._is_saved(change)}
        unsafe |= {c.raw for c in todo if c.status in "AT" and not self._is_folder_saved(c.raw)}
        self.unsaved |= unsafe
        remove = [change.raw for change in todo if change.status == "D" and change.raw not in unsafe]
        self.removed += [path for path in remove if remove_file(self.repo.root, path)]
        for folder in {path.rpartition(b"/")[0] for path in remove}:
            remove_empty_folders(self.repo.root, folder, self._stays)
        write = [change for change in todo if change.status != "D" and change.raw not in unsafe]
        write_files(self.shadow, write, self.checkpoint.unreadable)
        self.rewritten += [change.raw for change in write]

    def _is_saved(self, change: Changed) -> bool:
        """Whether the version on disk is saved, or there is none."""
        if change.status != "A":
            return self.saved.get(change.raw) == TreeEntry(change.old_mode, change.old_id)
        # Not in the snapshot, but perhaps on disk: a file that is too large now, or ignored.
        return change.raw in self.saved or not is_file(self.repo.root, change.raw)

    def _is_folder_saved(self, path: bytes) -> bool:
        """A folder in place of a file is removed with its content, so all of that must be saved."""
        if not is_folder(self.repo.root, path):
            return True
        return all(name in self.saved for name in all_files_below(self.repo.root, path, _EVERYTHING))

    def _stays(self, folder: bytes) -> bool:
        return folder in self.kept_folders

    def remove_repositories(self, current: Snapshot, is_wanted: Callable[[bytes], bool] = lambda folder: True) -> None:
        """Remove nested repositories made since the checkpoint, if they are saved."""
        now = entries(self.repo, current.tree)
        made = new_repositories(self.repo.root, self.checkpoint, self.before, now, current.nested)
        for folder in filter(is_wanted, made):
            files = files_of(self.shadow, folder, _EVERYTHING)
            if any(name not in self.saved and name not in self.before for name in files):
                self.unsaved |= {folder}
                continue
            repositories = {folder}  # others can be inside it
            for name in files:
                inner, is_git, _ = name.partition(b"/" + SAVED_GIT + b"/")
                if is_git:
                    repositories.add(inner)
                elif name not in self.before and remove_file(self.repo.root, name):
                    self.removed.append(name)
            for inner in repositories:
                remove_tree(self.repo.root / os.fsdecode(inner) / ".git")
            for name in sorted(files, reverse=True):
                remove_empty_folders(self.repo.root, name.rpartition(b"/")[0], self._stays)
            remove_empty_folders(self.repo.root, folder, self._stays)

    def remove_pipes(self) -> None:
        """Remove pipes and sockets made since the checkpoint: they hold nothing, but opening one in a test would
        hang."""
        for folder in {b"", *self.kept_folders, *self._untracked_folders()}:
            place = self.repo.root / os.fsdecode(folder)
            for path in special_in(place) if not place.is_symlink() else ():
                if path.lstat().st_ctime >= self.checkpoint.taken_at - _SLACK:
                    name = os.path.relpath(os.fsencode(path), os.fsencode(self.repo.root))
                    self.removed += [name] if remove_file(self.repo.root, name) else []

    def _untracked_folders(self) -> Iterator[bytes]:
        listing = ask(self.shadow, "ls-files", "-z", "--others", "--directory", "--exclude-standard").out
        root = os.fsencode(self.repo.root)
        for item in names(listing):
            for where, _, _ in os.walk(root + b"/" + item[:-1] if item.endswith(b"/") else b"", topdown=False):
                folder = os.path.relpath(where, root)
                if b".git" not in folder.split(b"/"):
                    yield folder

    def restore_empty_folders(self) -> None:
        """Remove empty folders made or emptied since the checkpoint; recreate those that existed."""
        for folder in list(self._untracked_folders()):
            with contextlib.suppress(OSError):
                changed_at = (self.repo.root / os.fsdecode(folder)).lstat().st_mtime
                if changed_at >= self.checkpoint.taken_at - _SLACK:
                    remove_empty_folders(self.repo.root, folder, self._stays)
        for folder in self.checkpoint.empty_folders:
            make_folders(self.repo.root, folder)


def write_files(shadow: Shadow, wanted: Iterable[Changed], unreadable: Iterable[bytes] = ()) -> None:
    """Write the new side of changes to disk. What is in the way is replaced; a link is never followed."""
    wanted = list(wanted)
    if not wanted:
        return
    modes = {change.raw: _permissions(shadow.root, change) for change in wanted}
    lines = b"".join(index_line(change.raw, change.new_mode, change.new_id) for change in wanted)
    git(shadow, "update-index", "-z", "--index-info", stdin=lines)
    checkout = ("checkout-index", "--force", "--index", "-z", "--stdin")
    paths = b"".join(change.raw + b"\0" for change in wanted)
    if ask(shadow, *checkout, stdin=paths).code:
        make_readable(shadow.root, frozenset((*unreadable, b".git")))
        ask(shadow, *checkout, stdin=paths)  # what still cannot be written shows as a difference
    for path, mode in modes.items():
        if mode is not None:
            set_permissions(shadow.root, path, mode)


def _permissions(root: Path, change: Changed) -> int | None:
    """The permissions of a file that is rewritten, which git does not record, such as those of a private file."""
    try:
        found = os.lstat(os.fsencode(root) + b"/" + change.raw)
    except OSError:
        return None
    is_same_kind = stat.S_ISREG(found.st_mode) and change.new_mode in ("100644", "100755")
    if is_same_kind and bool(found.st_mode & stat.S_IXUSR) == (change.new_mode == "100755"):
        return stat.S_IMODE(found.st_mode)
    return None
