"""Work that was not accepted, kept as commits under `refs/ralph/rescue/`: a rollback never destroys work."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ralph.core.errors import SetupError, UsageError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import clean, one_line
from ralph.host.files import disk_trouble
from ralph.host.git.checkpoint import (
    Checkpoint,
    real_index,
    submodule,
    submodule_index,
    undo_tampering,
)
from ralph.host.git.command import ask, git, identity, line, printable
from ralph.host.git.ignored import RestoredIgnored, restore_ignored
from ralph.host.git.nested import add_files, all_files_below, files_of, new_repositories
from ralph.host.git.objects import Changed, changes, diff_text, entries, no_entry, set_entries
from ralph.host.git.refs import KEEP, recorded_refs, restore_refs
from ralph.host.git.repo import Repo
from ralph.host.git.restore import Restored, moved, restore, write_files
from ralph.host.git.shadow import Shadow, shadow_of
from ralph.host.git.situation import situation
from ralph.host.git.snapshot import LARGEST_FILE, Snapshot, snapshot
from ralph.host.removal import is_file, is_folder, remove_file

PREFIX = "refs/ralph/rescue/"
AUTHOR = identity("Ralph Loop", "ralph@localhost")
_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*){0,3}")
_FORMAT = "%(refname)%00%(objectname)%00%(tree)%00%(parent)%00%(committerdate:unix)%00%(contents:subject)"


class Rescue(Struct, frozen=True, kw_only=True):
    """One saved working tree. `base` is the commit with the tree before: the difference is the agent's work."""

    name: str
    """`<run>/<iteration>`"""
    commit: str
    tree: str
    base: str
    saved_at: int
    subject: str
    left: tuple[str, ...] = ()
    """Files and repositories that were too large to save and are left in place."""

    @property
    def ref(self) -> str:
        return f"{PREFIX}{self.name}"


class Shown(Struct, frozen=True):
    rescue: Rescue
    changes: tuple[Changed, ...]
    diff: str
    is_cut: bool


class RolledBack(Struct, frozen=True):
    rescue: Rescue | None
    restored: Restored
    ignored: RestoredIgnored = RestoredIgnored()
    """Ignored files."""
    submodules: tuple[str, ...] = ()
    """Sentences about submodules."""


def roll_back(
    repo: Repo,
    name: str,
    index_file: Path,
    checkpoint: Checkpoint,
    message: str,
    leave: Collection[bytes] = (),
) -> RolledBack:
    """Save everything, then return to the checkpoint, except for the files in `leave`.

    Can be repeated after a crash at any point.
    """
    tampering = undo_tampering(repo, checkpoint, index_file)
    rescue = save(repo, name, index_file, checkpoint, message)
    submodules = tuple(_roll_back_submodules(repo, name, index_file, checkpoint, message))
    for _ in range(3):
        saved = rescue.commit if rescue else None
        restored = restore(repo, checkpoint, index_file, saved, leave=leave)
        # Putting the ignore rules back can show files that the agent's rules had hidden: save those too.
        if not restored.unsaved:
            break
        rescue = save(repo, name, index_file, checkpoint, message)
    ignored = restore_ignored(repo, index_file, checkpoint.ignored)
    restored = restored if not tampering else replace(restored, tampering=tampering)
    return RolledBack(rescue, restored, ignored, submodules)


def _roll_back_submodules(
    repo: Repo, name: str, index_file: Path, checkpoint: Checkpoint, message: str
) -> Iterator[str]:
    """Each submodule is a repository of its own, with its own rescue refs. Yields sentences."""
    for path, before in checkpoint.submodules:
        shown = one_line(printable(path), 100)
        try:
            done = roll_back(submodule(repo, path), name, submodule_index(index_file, path), before, message)
        except SetupError as error:
            yield f"the submodule {shown} could not be restored: {error}"
            continue
        if done.rescue is not None:
            yield f"restored the submodule {shown}; the agent's work is in its {done.rescue.ref}"
        yield from (f"{shown}/{left} could not be restored" for left in (*done.restored.unsaved, *done.restored.left))
        yield from done.submodules


@disk_trouble()
def save(repo: Repo, name: str, index_file: Path, checkpoint: Checkpoint, message: str) -> Rescue | None:
    """Keep the working tree, what is staged, and the commits made since. None if there is nothing to keep.

    What an earlier call saved under the same name is kept: after a crash the tree may be half restored.
    """
    ref = f"{PREFIX}{checked_name(name)}"
    undo_tampering(repo, checkpoint, index_file)
    shadow = shadow_of(repo, index_file)
    current = snapshot(repo, index_file, unreadable_before=checkpoint.unreadable)
    where = moved(repo, checkpoint, index_file)
    known = find(repo, name)
    extra, left = _outside_of_git(repo, shadow, checkpoint, current)
    tree = _with_extra(repo, shadow, checkpoint, current, extra, known)
    parents = [*where.tips, *_staged(repo, shadow, checkpoint, where.head, current)]
    if known and tree == known.tree and _reaches(repo, known, parents):
        return replace(known, left=left)
    if not known and tree == checkpoint.tree and not parents:
        return None
    base = known.base if known else base_of(repo, shadow, checkpoint)
    parents = [base, *parents, *([known.commit] if known else [])]
    now = int(time.time())
    commit = _commit(shadow, tree, parents, message, now)
    named = ask(repo, "update-ref", "-m", "ralph: rescue", ref, commit, known.commit if known else repo.no_object)
    if named.code:  # an agent deleted it, or made a ref that is in its way
        done = restore_refs(repo, {ref: commit}, recorded_refs(repo), keep=True)
        if done.failed:
            raise SetupError(
                f"the work could not be saved: {done.failed[0]}", hint="check `git for-each-ref refs/ralph`"
            )
    subject = " ".join(_text(message).partition("\n\n")[0].split("\n"))
    return Rescue(name=name, commit=commit, tree=tree, base=base, saved_at=now, subject=subject, left=left)


def checked_name(name: str) -> str:
    parts = name.split("/")
    if not _NAME.fullmatch(name) or ".." in name or any(part.endswith((".lock", ".")) for part in parts):
        shown = one_line(repr(name), 80)
        raise UsageError(f"{shown} is not a valid rescue name", hint="run `ralph rescue list`")
    return name


def _outside_of_git(
    repo: Repo, shadow: Shadow, checkpoint: Checkpoint, current: Snapshot
) -> tuple[dict[bytes, bytes], tuple[str, ...]]:
    """Files that a rollback would touch although the snapshot lacks them, and what is left in place."""
    before, now = entries(repo, checkpoint.tree), entries(repo, current.tree)
    root = os.fsencode(repo.root)
    extra: dict[bytes, bytes] = {}
    nested = new_repositories(repo.root, checkpoint, before, now, current.nested)
    for folder in nested:
        extra |= files_of(shadow, folder, LARGEST_FILE)
    for path in before.keys() - now.keys():
        if is_file(repo.root, path):  # ignored now, or too large now
            extra[path] = root + b"/" + path
        elif is_folder(repo.root, path):
            extra |= all_files_below(repo.root, path, LARGEST_FILE)  # a folder took the place of a file
    left = {*current.large, *current.nested} - {*extra, *nested, *checkpoint.large, *checkpoint.nested}
    extra = {name: path for name, path in extra.items() if name not in now}
    return extra, tuple(sorted(printable(path) for path in left))


def _with_extra(
    repo: Repo,
    shadow: Shadow,
    checkpoint: Checkpoint,
    current: Snapshot,
    extra: dict[bytes, bytes],
    known: Rescue | None,
) -> str:
    """The tree to save: the snapshot, the extra files, and what was saved before and is no longer on disk."""
    if not extra and not known:
        return current.tree
    scratch = shadow.index.with_name(f"{shadow.index.name}.scratch")
    scratch.unlink(missing_ok=True)
    git(shadow, "read-tree", current.tree, index=scratch)
    try:
        add_files(shadow, scratch, extra)
        mine = {change.raw for change in changes(repo, checkpoint.tree, current.tree)} | extra.keys()
        earlier = changes(repo, checkpoint.tree, known.commit) if known else ()
        set_entries(shadow, {change.raw: change.new for change in earlier if change.raw not in mine}, scratch)
        return line(git(shadow, "write-tree", index=scratch))
    finally:
        scratch.unlink(missing_ok=True)


def _staged(repo: Repo, shadow: Shadow, checkpoint: Checkpoint, head: str | None, current: Snapshot) -> list[str]:
    """A commit of what is staged, if it exists nowhere else."""
    data = real_index(repo)
    if data is None or hashlib.sha256(data).hexdigest() == checkpoint.index:
        return []
    scratch = shadow.index.with_name(f"{shadow.index.name}.scratch")
    scratch.write_bytes(data)
    written = ask(shadow, "write-tree", index=scratch)  # fails for a merge with conflicts: the files have it all
    scratch.unlink(missing_ok=True)
    tree = line(written.out)
    if written.code or tree in (current.tree, checkpoint.tree, _tree_of(repo, head)):
        return []
    return [_commit(shadow, tree, [head] if head else [], "what was staged", checkpoint.taken_at)]


def base_of(repo: Repo, shadow: Shadow, checkpoint: Checkpoint) -> str:
    """A commit with the tree of the checkpoint."""
    if checkpoint.head and _tree_of(repo, checkpoint.head) == checkpoint.tree:
        return checkpoint.head
    parents = [checkpoint.head] if checkpoint.head else []
    return _commit(shadow, checkpoint.tree, parents, "the files before the agent ran", checkpoint.taken_at)


def _tree_of(repo: Repo, commit: str | None) -> str:
    return line(git(repo, "rev-parse", "--verify", "--end-of-options", f"{commit}^{{tree}}")) if commit else ""


def _commit(shadow: Shadow, tree: str, parents: Sequence[str], message: str, at: float) -> str:
    """The same `at` produces the same commit."""
    dates = {f"GIT_{who}_DATE": f"{int(at)} +0000" for who in ("AUTHOR", "COMMITTER")}
    flags = [part for parent in dict.fromkeys(parents) for part in ("-p", parent)]
    text = _text(message).encode("utf-8", "replace")
    return line(git(shadow, "commit-tree", tree, *flags, "-F", "-", stdin=text, env_extra=AUTHOR | dates))


def _text(message: str) -> str:
    return clean(message).strip() or "saved by Ralph"


def _reaches(repo: Repo, known: Rescue, commits: Sequence[str]) -> bool:
    return all(ask(repo, "merge-base", "--is-ancestor", commit, known.commit).code == 0 for commit in commits)


def list_refs(repo: Repo, below: str = "") -> tuple[Rescue, ...]:
    """All rescues, oldest first. `below` is a run, or one name."""
    pattern = f"{PREFIX}{checked_name(below)}" if below else PREFIX
    found = []
    for text in git(repo, "for-each-ref", f"--format={_FORMAT}", pattern).decode("utf-8", "replace").split("\n")[:-1]:
        ref, commit, tree, parents, at, subject = text.split("\0")
        base = parents.split(" ")[0] or commit
        name = ref.removeprefix(PREFIX)
        found.append(Rescue(name=name, commit=commit, tree=tree, base=base, saved_at=int(at or 0), subject=subject))
    return tuple(sorted(found, key=lambda rescue: rescue.saved_at))


def find(repo: Repo, name: str) -> Rescue | None:
    return next((rescue for rescue in list_refs(repo, name) if rescue.name == name), None)


def _require(repo: Repo, name: str) -> Rescue:
    if rescue := find(repo, name):
        return rescue
    raise UsageError(f"unknown rescue {one_line(name, 80)}", hint="run `ralph rescue list`")


def show(repo: Repo, name: str) -> Shown:
    rescue = _require(repo, name)
    diff, is_cut = diff_text(repo, rescue.base, rescue.commit)
    return Shown(rescue, changes(repo, rescue.base, rescue.commit), diff, is_cut)


@disk_trouble()
def reapply(
    repo: Repo, name: str, index_file: Path, is_ours: Callable[[str], bool] = lambda path: False
) -> tuple[str, ...]:
    """Apply the saved work to the working tree. Nothing is staged or committed.

    Refuses a tree with uncommitted changes, and files that have changed since; then nothing is touched. `is_ours`: the
    plan and other files of Ralph's, which stay as they are.
    """
    rescue = _require(repo, name)
    if dirty := [entry.path for entry in situation(repo).dirty if not is_ours(entry.path)]:
        some = ", ".join(one_line(path, 60) for path in dirty[:3])
        raise SetupError(f"there are uncommitted changes: {some}", hint="commit or stash them first")
    saved = changes(repo, rescue.base, rescue.commit)
    todo = [change for change in saved if not change.is_submodule and not is_ours(change.path)]
    shadow = shadow_of(repo, index_file, refresh=True)
    now = entries(repo, snapshot(repo, index_file).tree)
    missing = no_entry(repo)
    if clashes := [c.path for c in todo if now.get(c.raw, missing) not in (c.old, c.new)]:
        some = ", ".join(one_line(path, 60) for path in clashes[:3])
        raise SetupError(
            f"{len(clashes)} of the saved files changed since then: {some}",
            hint=f"restore single files with `git show {rescue.ref}:PATH`, or `git switch -c look {rescue.ref}`",
        )
    for change in todo:
        if change.status == "D":
            remove_file(repo.root, change.raw)
    write_files(shadow, [change for change in todo if change.status != "D"])
    return tuple(change.path for change in todo)


def drop(repo: Repo, name: str) -> Rescue:
    """Delete a rescue. Git removes its objects at the next cleanup."""
    rescue = _require(repo, name)
    git(repo, "update-ref", "-d", rescue.ref, rescue.commit)
    return rescue


def keep_uncommitted(
    repo: Repo, index_file: Path, checkpoint: Checkpoint, tree: str, is_ours: Callable[[str], bool]
) -> tuple[str, tuple[str, ...]]:
    """The ref that has them, and their paths; empty if there are none. `tree`: the working tree as it is kept."""
    if not checkpoint.head or tree == checkpoint.tree:
        return "", ()
    mine = {change.raw for change in changes(repo, checkpoint.head, checkpoint.tree)}
    later = changes(repo, checkpoint.tree, tree) if mine else ()
    found = tuple(change.path for change in later if change.raw in mine and not is_ours(change.path))
    if not found:
        return "", ()
    commit = base_of(repo, shadow_of(repo, index_file), checkpoint)
    ref = f"{KEEP}{commit[:16]}"
    git(repo, "update-ref", "-m", "ralph: uncommitted files", ref, commit)
    return ref, found
