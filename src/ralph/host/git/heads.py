"""Restore HEAD, refs, stash, index and unfinished operations to a checkpoint."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.host.file_copies import kept
from ralph.host.files import write_bytes
from ralph.host.git.checkpoint import Checkpoint, branches_of, head_of, moments_of, real_index, stashed
from ralph.host.git.command import ask, git, line
from ralph.host.git.locks import clear_stale_locks
from ralph.host.git.reflogs import (
    STASH,
    commit_in,
    restore_reflogs,
    saved_stash_entries,
    stash_entries,
    stash_log,
    write_reflog,
)
from ralph.host.git.refs import (
    BRANCHES,
    MovedMeanwhile,
    checked_out_elsewhere,
    displaced,
    missing_objects,
    put_back,
    recorded_refs,
    remove_pipes,
)
from ralph.host.git.repo import Repo
from ralph.host.git.situation import is_valid_index
from ralph.host.plain_file import read_plain
from ralph.host.removal import remove_tree

_MOVES = re.compile(r"\tcheckout: moving from (\S+) to (\S+)")
# A commit, or a branch whose name git takes: otherwise git says that this is no repository.
_HEAD = re.compile(
    rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\n?"
    rb"|ref: refs/(?!.*(?:\.\.|//|/\.|\.lock(?:/|\n?\Z)|@\{|[/.]\n?\Z))[^\0-\x20~^:?*\[\\\x7f]+\n?"
)
_LEFTOVERS = (
    *("MERGE_HEAD", "MERGE_MODE", "MERGE_MSG", "MERGE_RR", "AUTO_MERGE", "MERGE_AUTOSTASH", "SQUASH_MSG"),
    *("CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD", "rebase-merge", "rebase-apply", "sequencer"),
    *("BISECT_LOG", "BISECT_START", "BISECT_TERMS", "BISECT_NAMES", "BISECT_EXPECTED_REV", "BISECT_RUN", "refs/bisect"),
)
_AUTOSTASHES = ("MERGE_AUTOSTASH", "rebase-merge/autostash", "rebase-apply/autostash")


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


class Restored(Struct, frozen=True):
    refs: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()
    """Sentences about what could not be restored."""
    kept: tuple[str, ...] = ()
    """Refs with the commits that restored refs had been moved to."""


def moved(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> Moved:
    mend_head(repo, checkpoint)
    mend_index(repo, checkpoint, index_file)
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


def put_back_lost(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> Restored:
    """Restore what is no part of accepted work: refs, stashes and reflogs. The branches the agent was on stay."""
    mended = ["HEAD"] if mend_head(repo, checkpoint) else []
    mended += ["the index"] if mend_index(repo, checkpoint, index_file) else []
    before, now = branches_of(checkpoint, index_file), recorded_refs(repo)
    spared = {*checked_out_elsewhere(repo), *_visited(repo, checkpoint, head_of(repo, now)[0])}
    done = put_back(repo, displaced(repo, before, now, spared), now, keep=True)
    stashes = stashed(repo)
    failed = (*done.failed, *restore_stash(repo, checkpoint, index_file))
    restored = (*mended, *done.restored, *((STASH,) if stashed(repo) != stashes else ()))
    logs = restore_reflogs(repo, index_file, frozenset({*now, *done.restored}))
    restored += tuple(f"the reflog of {name}" for name in logs if name not in done.restored)
    return Restored(restored, failed, done.kept)


def mend_head(repo: Repo, checkpoint: Checkpoint) -> bool:
    """Repair HEAD: without a valid one git does not recognize the repository. True if it was rewritten."""
    remove_pipes(repo)
    path = repo.git_dir / "HEAD"
    is_valid = bool(_HEAD.fullmatch(read_plain(path) or b""))
    if not is_valid:
        remove_tree(path)
        wanted = checkpoint.head if checkpoint.branch is None else f"ref: {BRANCHES}{checkpoint.branch}"
        write_bytes(path, os.fsencode(f"{wanted}\n"))
    return not is_valid


def mend_index(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> bool:
    """Repair the index: git reads it even to compare two trees, and fails if it is damaged. True if restored."""
    data = real_index(repo)
    is_valid = is_valid_index(repo, data) if data is not None else not os.path.lexists(repo.git_dir / "index")
    return not is_valid and restore_index(repo, checkpoint, index_file)


def _visited(repo: Repo, checkpoint: Checkpoint, branch: str | None) -> set[str]:
    """Branches that HEAD was on since the checkpoint, according to its reflog."""
    log = read_plain(repo.git_dir / "logs" / "HEAD") or b""
    new = log[checkpoint.history_size :] if len(log) >= checkpoint.history_size else log  # it may be rewritten
    names = {name for move in _MOVES.findall(os.fsdecode(new)) for name in move}
    return {f"{BRANCHES}{name}" for name in (branch, checkpoint.branch, *names) if name}


def restore_heads(repo: Repo, checkpoint: Checkpoint, index_file: Path, saved: str | None) -> Restored:
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
    done = put_back(repo, found.undo, found.now, keep=False)
    if not checkpoint.in_progress:
        end_operations(repo)
    for number in sorted(_stashed_since(repo, checkpoint), reverse=True):
        git(repo, "stash", "drop", "--quiet", f"stash@{{{number}}}")
    failed = (*done.failed, *restore_stash(repo, checkpoint, index_file))
    gone = {ref for ref, name in found.undo.items() if not name}
    restore_reflogs(repo, index_file, frozenset({*found.now, *done.restored} - gone))
    restore_index(repo, checkpoint, index_file)
    return Restored(tuple(sorted(ref.removeprefix(BRANCHES) for ref in done.restored)), failed)


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
