"""Return to a checkpoint: HEAD, refs, stash, index, unfinished operations and files.

Removes and rewrites only what is saved elsewhere, and never through a link.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ralph.core.errors import SetupError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.host.file_copies import kept
from ralph.host.files import disk_trouble, read_plain, special_in, write_bytes
from ralph.host.git.checkpoint import Checkpoint, branches_of, head_of, real_index, stashed, undo_tampering
from ralph.host.git.command import ask, git, line, names, printable
from ralph.host.git.config_files import Tampering
from ralph.host.git.index_files import is_valid_index
from ralph.host.git.locks import clear_stale_locks
from ralph.host.git.nested import SAVED_GIT, all_files_below, files_of, new_repositories
from ralph.host.git.objects import Changed, TreeEntry, changes, entries, folders, set_entries
from ralph.host.git.refs import (
    BRANCHES,
    STASH,
    MovedMeanwhile,
    checked_out_elsewhere,
    commit_in,
    displaced,
    missing_objects,
    recorded_refs,
    remove_pipes,
    restore_reflogs,
    restore_refs,
    saved_stash_entries,
    stash_entries,
    stash_log,
    write_reflog,
)
from ralph.host.git.repo import Repo
from ralph.host.git.shadow import Shadow, moments_of, shadow_of
from ralph.host.git.snapshot import Snapshot, snapshot
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

_MOVES = lazy_pattern(r"\tcheckout: moving from (\S+) to (\S+)")
# A commit, or a branch whose name git takes: otherwise git says that this is no repository.
_HEAD = lazy_pattern(
    rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\n?"
    rb"|ref: refs/(?!.*(?:\.\.|//|/\.|\.lock(?:/|\n?\Z)|@\{|[/.]\n?\Z))[^\0-\x20~^:?*\[\\\x7f]+\n?"
)
_LEFTOVERS = (
    *("MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "MERGE_RR", "AUTO_MERGE", "MERGE_AUTOSTASH", "SQUASH_MSG"),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "rebase-merge", "rebase-apply", "sequencer"),
    *("BISECT_LOG", "BISECT_START", "BISECT_TERMS", "BISECT_NAMES", "BISECT_EXPECTED_REV", "BISECT_RUN", "refs/bisect"),
)
_AUTOSTASHES = ("MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash")
_EVERYTHING = 1 << 62
_ROUNDS = 3
_SLACK = 0.1


class Moved(Struct, frozen=True):
    """How HEAD and refs differ from a checkpoint."""

    head: str | None
    branch: str | None
    undo: dict[str, str]
    """Ref → what it is restored to; empty means that it is deleted."""
    now: dict[str, str]
    """All refs as they are."""
    tips: tuple[str, ...]
    """Commits that are reachable only from these branches, HEAD or the stash."""


class RestoredHead(Struct, frozen=True):
    refs: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """Sentences about what could not be restored."""
    kept: tuple[str, ...] = ()
    """Refs with the commits that restored refs had been moved to."""


def moved(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> Moved:
    repair_head(repo, checkpoint)
    repair_index(repo, checkpoint, index_file)
    before, now = branches_of(checkpoint, index_file), recorded_refs(repo)
    branch, head = head_of(repo, now)
    elsewhere = checked_out_elsewhere(repo)
    undo = displaced(repo, before, now, elsewhere)
    undo |= {ref: "" for ref in _visited(repo, checkpoint, branch) - elsewhere if ref in now and ref not in before}
    tips = [now[ref] for ref in undo if ref in now and ref.startswith((BRANCHES, "refs/remotes/"))]
    if head and head != checkpoint.head:
        tips.append(head)
    tips += _stashed_since(repo, checkpoint).values()
    return Moved(head, branch, undo, now, tuple(dict.fromkeys(tip for tip in tips if not tip.startswith("ref: "))))


def restore_lost(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> RestoredHead:
    """Restore lost refs, stashes and reflogs when the work is kept. The branches that the agent was on stay."""
    repaired = ["HEAD"] if repair_head(repo, checkpoint) else []
    repaired += ["the index"] if repair_index(repo, checkpoint, index_file) else []
    before, now = branches_of(checkpoint, index_file), recorded_refs(repo)
    spared = {*checked_out_elsewhere(repo), *_visited(repo, checkpoint, head_of(repo, now)[0])}
    done = restore_refs(repo, displaced(repo, before, now, spared), now, keep=True)
    stashes = stashed(repo)
    failed = (*done.failed, *restore_stash(repo, checkpoint, index_file))
    restored = (*repaired, *done.restored, *((STASH,) if stashed(repo) != stashes else ()))
    logs = restore_reflogs(repo, index_file, frozenset({*now, *done.restored}))
    restored += tuple(f"the reflog of {name}" for name in logs if name not in done.restored)
    return RestoredHead(restored, failed, done.kept)


def repair_head(repo: Repo, checkpoint: Checkpoint) -> bool:
    """Repair HEAD: without a valid one git does not recognize the repository. True if it was rewritten."""
    remove_pipes(repo)
    path = repo.git_dir / "HEAD"
    is_valid = bool(_HEAD.fullmatch(read_plain(path) or b""))
    if not is_valid:
        remove_tree(path)
        wanted = checkpoint.head if checkpoint.branch is None else f"ref: {BRANCHES}{checkpoint.branch}"
        write_bytes(path, os.fsencode(f"{wanted}\n"))
    return not is_valid


def repair_index(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> bool:
    """Repair the index: git reads it even to compare two trees, and fails if it is damaged. True if restored."""
    data = real_index(repo)
    is_valid = (
        is_valid_index(repo.object_format, data) if data is not None else not os.path.lexists(repo.git_dir / "index")
    )
    return not is_valid and restore_index(repo, checkpoint, index_file)


def _visited(repo: Repo, checkpoint: Checkpoint, branch: str | None) -> set[str]:
    """The branches that HEAD was on since the checkpoint, according to its reflog."""
    log = read_plain(repo.git_dir / "logs" / "HEAD") or b""
    new = log[checkpoint.history_size :] if len(log) >= checkpoint.history_size else log  # it may be rewritten
    names = {name for move in _MOVES.findall(os.fsdecode(new)) for name in move}
    return {f"{BRANCHES}{name}" for name in (branch, checkpoint.branch, *names) if name}


def restore_heads(repo: Repo, checkpoint: Checkpoint, index_file: Path, saved: str | None) -> RestoredHead:
    """Restore refs, HEAD, stash, reflogs and index. Raises MovedMeanwhile if `saved` does not have all commits."""
    clear_stale_locks(repo)
    found = moved(repo, checkpoint, index_file)
    if any(not _has(repo, saved or checkpoint.head, tip) for tip in found.tips):
        raise MovedMeanwhile("somebody committed while the work was being undone", hint="run again")
    if found.branch != checkpoint.branch or (checkpoint.branch is None and found.head != checkpoint.head):
        if checkpoint.branch is not None:
            git(repo, "symbolic-ref", "-m", "ralph: back to the checkpoint", "HEAD", f"{BRANCHES}{checkpoint.branch}")
        elif checkpoint.head:
            git(repo, "update-ref", "--no-deref", "-m", "ralph: back to the checkpoint", "HEAD", checkpoint.head)
    done = restore_refs(repo, found.undo, found.now, keep=False)
    if not checkpoint.in_progress:
        end_operations(repo)
    for number in sorted(_stashed_since(repo, checkpoint), reverse=True):
        git(repo, "stash", "drop", "--quiet", f"stash@{{{number}}}")
    failed = (*done.failed, *restore_stash(repo, checkpoint, index_file))
    gone = {ref for ref, name in found.undo.items() if not name}
    restore_reflogs(repo, index_file, frozenset({*found.now, *done.restored} - gone))
    restore_index(repo, checkpoint, index_file)
    return RestoredHead(tuple(sorted(ref.removeprefix(BRANCHES) for ref in done.restored)), failed)


def _has(repo: Repo, commit: str | None, tip: str) -> bool:
    return bool(commit) and ask(repo, "merge-base", "--is-ancestor", tip, commit or "").code == 0


def end_operations(repo: Repo) -> None:
    """Abandon an unfinished merge, rebase, pick, revert or bisect. Work it had set aside is stashed."""
    for name in _AUTOSTASHES:
        path = repo.git_dir / name
        if path.is_file():
            _stash(repo, line(path.read_bytes()), "set aside by an operation that was not finished")
    for name in _LEFTOVERS:
        if os.path.lexists(repo.git_dir / name):
            remove_tree(repo.git_dir / name)


def restore_stash(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> tuple[str, ...]:
    """Put dropped stashes back in their place, with their messages. Returns sentences about those that are lost."""
    now = stashed(repo)
    lost = [name for name in checkpoint.stash if name not in now]
    gone = missing_objects(repo, lost)
    failed = tuple(f"the stash {name[:12]} could not be restored: it no longer exists" for name in lost if name in gone)
    if len(gone) == len(lost):
        return failed
    saved = [entry for entry in saved_stash_entries(index_file) if commit_in(entry) not in gone]
    if (repo.common_dir / "reftable").exists() or not {*lost} - gone <= {commit_in(entry) for entry in saved}:
        for name in lost:
            _stash(repo, name, "kept from before an iteration")
        return failed
    known = {commit_in(entry) for entry in saved}
    entries = [*saved, *(entry for entry in stash_entries(repo) if commit_in(entry) not in {"", *known})]
    remove_tree(stash_log(repo))  # without it git writes no entry of its own
    git(repo, "update-ref", "--no-deref", STASH, commit_in(entries[-1]))
    write_reflog(stash_log(repo), b"".join(entry + b"\n" for entry in entries))
    return failed


def _stashed_since(repo: Repo, checkpoint: Checkpoint) -> dict[int, str]:
    """Stash entries made on the checkpoint's branch since then: position and commit.

    All worktrees share the stash, but a branch belongs to one: an entry of another branch is not the agent's.
    """
    if stashed(repo) == checkpoint.stash:
        return {}
    subjects = line(git(repo, "stash", "list", "--format=%H %s")).split("\n")
    ours = tuple(f"{word} {checkpoint.branch or '(no branch)'}: " for word in ("WIP on", "On"))
    entries = enumerate(subject.partition(" ")[::2] for subject in subjects)
    return {n: commit for n, (commit, said) in entries if commit not in checkpoint.stash and said.startswith(ours)}


def _stash(repo: Repo, commit: str, why: str) -> None:
    if re.fullmatch("[0-9a-f]{40,64}", commit):
        ask(repo, "stash", "store", "-m", why, commit)


def restore_index(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> bool:
    """Restore the user's index byte for byte. False if it was unchanged."""
    wanted = kept(moments_of(index_file), checkpoint.index) if checkpoint.index else None
    return put_index(repo, wanted, checkpoint.index_time)


def put_index(repo: Repo, wanted: bytes | None, time_ns: int = 0) -> bool:
    if real_index(repo) == wanted:
        return False
    path = repo.git_dir / "index"
    if wanted is None:
        remove_tree(path)
        return True
    if path.is_symlink() or not path.is_file():
        remove_tree(path)
    lock = _lock_index(repo)
    with lock.open("wb") as stream:
        stream.write(wanted)
    if time_ns:
        os.utime(lock, ns=(time_ns, time_ns))
    lock.replace(path)
    return True


def _lock_index(repo: Repo) -> Path:
    """Take git's own lock, so that the user's git waits or fails instead of being overwritten."""
    lock = repo.git_dir / "index.lock"
    for _ in range(40):
        try:
            os.close(os.open(lock, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        except FileExistsError:
            clear_stale_locks(repo)
            time.sleep(0.05)
        else:
            return lock
    raise SetupError(
        f"the index of {repo.root} is still locked", hint="let the other git process finish, then run again"
    )


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
    leave: Collection[bytes] = (),
) -> Restored:
    """Restore HEAD, branches, index and files to `checkpoint`, without those in `leave`: the caller writes them.

    `saved` is the tree or commit that holds the work of the agent. A file that is not in it, as it is now, stays.
    Without `saved` nothing that the checkpoint does not have is removed and nothing is overwritten.
    """
    tampering = undo_tampering(repo, checkpoint, index_file)
    heads = restore_heads(repo, checkpoint, index_file, saved)
    safe = entries(repo, saved) if saved else {}
    work = _Work(repo, shadow_of(repo, index_file), checkpoint, safe)
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
    rest = [change for change in changes(repo, work.look().tree, checkpoint.tree) if change.raw not in leave]
    return replace(work.result(rest), branches=heads.refs, lost_refs=heads.failed, tampering=tampering)


@disk_trouble()
def restore_some(
    repo: Repo,
    checkpoint: Checkpoint,
    index_file: Path,
    saved: str | None,
    is_wanted: Callable[[str], bool],
) -> Restored:
    """Restore only the files selected by `is_wanted`. HEAD, branches and index stay as they are."""
    safe = entries(repo, saved) if saved else {}
    work = _Work(repo, shadow_of(repo, index_file), checkpoint, safe)
    rest: list[Changed] = []
    for _ in range(_ROUNDS):  # an ignore rule that is put back can show files that it had hidden
        current = work.look()
        work.remove_repositories(current, lambda folder: is_wanted(printable(folder)))
        rest = [change for change in changes(repo, current.tree, checkpoint.tree) if is_wanted(change.path)]
        todo = [change for change in rest if change.raw not in work.unsaved]
        if not todo:
            break
        work.apply(todo)
    return work.result(rest)


class _Work:
    """One restore in progress."""

    def __init__(self, repo: Repo, shadow: Shadow, checkpoint: Checkpoint, saved: Mapping[bytes, TreeEntry]) -> None:
        self.repo = repo
        self.shadow = shadow
        self.checkpoint = checkpoint
        self.saved = saved
        self.before = entries(repo, checkpoint.tree)
        self.kept_folders = folders([*self.before, *(f + b"/" for f in checkpoint.empty_folders)])
        self.removed: list[bytes] = []
        self.rewritten: list[bytes] = []
        self.unsaved: set[bytes] = set()

    def result(self, rest: Iterable[Changed]) -> Restored:
        """`rest`: what still differs from the checkpoint."""
        unsaved = {printable(path) for path in self.unsaved}
        return Restored(
            removed=tuple(map(printable, self.removed)),
            rewritten=tuple(map(printable, self.rewritten)),
            unsaved=tuple(sorted(unsaved)),
            left=tuple(change.path for change in rest if change.path not in unsaved),
        )

    def look(self) -> Snapshot:
        unreadable = self.checkpoint.unreadable
        return snapshot(self.repo, self.shadow.index, unreadable_before=unreadable, rules_changed=True)

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
            return self.saved.get(change.raw) == change.old
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
    set_entries(shadow, {change.raw: change.new for change in wanted})
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
