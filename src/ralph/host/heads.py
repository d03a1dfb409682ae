"""Restore HEAD, branches, stash, index and unfinished operations to a checkpoint.

Only what the agent can have moved in this working tree: HEAD, the branches it was on, and deleted refs.
Other branches may belong to another run in another worktree.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.host.checkpoint import (
    NAMED,
    Checkpoint,
    branches_of,
    head_of,
    moments_of,
    parse_refs,
    real_index,
    stashed,
)
from ralph.host.files import write_bytes
from ralph.host.git import ask, git, line
from ralph.host.git_locks import clear_stale_locks
from ralph.host.kept import kept
from ralph.host.plain_file import read_plain, special_in
from ralph.host.removal import remove_tree
from ralph.host.repo import Repo

_PREFIX = "refs/heads/"
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
    """How HEAD and branches differ from a checkpoint."""

    head: str | None
    branch: str | None
    undo: dict[str, str]
    """Branch → the commit it is restored to; empty means that the branch is deleted."""
    tips: tuple[str, ...]
    """Commits that are reachable only from these branches, HEAD or the stash."""


def moved(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> Moved:
    mend_head(repo, checkpoint)
    mend_index(repo, checkpoint, index_file)
    before, now = branches_of(checkpoint, index_file), _named(repo)
    branch, head = head_of(repo, now)
    visited = {f"{_PREFIX}{name}" for name in (branch, checkpoint.branch, *_visited(repo, checkpoint)) if name}
    undo = _lost(before, now)
    for ref in visited - _checked_out_elsewhere(repo):
        if ref in now and now[ref] != before.get(ref):
            undo[ref] = before.get(ref, "")
    tips = [now[ref] for ref in undo if ref in now and ref.startswith(_PREFIX)]
    if head and head != checkpoint.head:
        tips.append(head)
    tips += _stashed_since(repo, checkpoint).values()
    return Moved(head, branch, undo, tuple(dict.fromkeys(tips)))


def put_back_lost(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> tuple[str, ...]:
    """Restore what no accepted work can replace: deleted branches, tags, rescue refs and stashes."""
    mended = ["HEAD"] if mend_head(repo, checkpoint) else []
    mended += ["the index"] if mend_index(repo, checkpoint, index_file) else []
    lost = _lost(branches_of(checkpoint, index_file), _named(repo))
    _update(repo, lost)
    stashes = _restore_stash(repo, checkpoint)
    return (*mended, *lost, *(["refs/stash"] if stashes else []))


def _named(repo: Repo) -> dict[str, str]:
    return parse_refs(git(repo, "for-each-ref", "--format=%(objectname) %(refname)", *NAMED))


def _lost(before: dict[str, str], now: dict[str, str]) -> dict[str, str]:
    """Deleted refs, moved refs that never move (tags, rescue refs), and new ones that replace a commit."""
    lost = {ref: name for ref, name in before.items() if now.get(ref) != name}
    lost = {ref: name for ref, name in lost.items() if ref not in now or not ref.startswith((_PREFIX, "refs/notes/"))}
    return lost | {ref: "" for ref in now if ref not in before and ref.startswith("refs/replace/")}


def mend_head(repo: Repo, checkpoint: Checkpoint) -> bool:
    """Repair HEAD: without a valid one git does not recognize the repository. True if it was rewritten."""
    for pipe in special_in(repo.common_dir / "refs", deep=True):  # git would wait for it
        pipe.unlink()
    path = repo.git_dir / "HEAD"
    is_valid = bool(_HEAD.fullmatch(read_plain(path) or b""))
    if not is_valid:
        remove_tree(path)
        wanted = checkpoint.head if checkpoint.branch is None else f"ref: {_PREFIX}{checkpoint.branch}"
        write_bytes(path, os.fsencode(f"{wanted}\n"))
    return not is_valid


def mend_index(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> bool:
    """Repair the index: git reads it even to compare two trees, and fails if it is damaged. True if restored."""
    data = real_index(repo)
    if data is None:
        is_valid = not os.path.lexists(repo.git_dir / "index")
    else:
        size = hashlib.new(repo.object_format).digest_size
        real = hashlib.new(repo.object_format, data[:-size]).digest()
        # Git can be told not to write the check sum; then there are zeros in its place.
        is_valid = data[:4] == b"DIRC" and data[-size:] in (real, bytes(size))
    return not is_valid and restore_index(repo, checkpoint, index_file)


def _visited(repo: Repo, checkpoint: Checkpoint) -> set[str]:
    """Branches that HEAD was on since the checkpoint, according to its reflog."""
    log = read_plain(repo.git_dir / "logs" / "HEAD") or b""
    new = log[checkpoint.history_size :] if len(log) >= checkpoint.history_size else log  # it may be rewritten
    return {name for move in _MOVES.findall(os.fsdecode(new)) for name in move}


def _checked_out_elsewhere(repo: Repo) -> set[str]:
    if not (repo.common_dir / "worktrees").is_dir():
        return set()
    found, here = set(), False
    for text in line(git(repo, "worktree", "list", "--porcelain")).split("\n"):
        if text.startswith("worktree "):
            here = os.path.realpath(text.removeprefix("worktree ")) == str(repo.root)
        elif text.startswith("branch ") and not here:
            found.add(text.removeprefix("branch "))
    return found


def restore_heads(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> tuple[str, ...]:
    """Restore branches, HEAD, stash and index. Returns which branches changed. The tips must already be saved."""
    clear_stale_locks(repo)
    found = moved(repo, checkpoint, index_file)
    if found.branch != checkpoint.branch or (checkpoint.branch is None and found.head != checkpoint.head):
        if checkpoint.branch is not None:
            git(repo, "symbolic-ref", "-m", "ralph: back to the checkpoint", "HEAD", f"{_PREFIX}{checkpoint.branch}")
        elif checkpoint.head:
            git(repo, "update-ref", "--no-deref", "-m", "ralph: back to the checkpoint", "HEAD", checkpoint.head)
    _update(repo, found.undo)
    if not checkpoint.in_progress:
        end_operations(repo)
    for number in sorted(_stashed_since(repo, checkpoint), reverse=True):
        git(repo, "stash", "drop", "--quiet", f"stash@{{{number}}}")
    _restore_stash(repo, checkpoint)
    restore_index(repo, checkpoint, index_file)
    return tuple(sorted(ref.removeprefix(_PREFIX) for ref in found.undo))


def _update(repo: Repo, wanted: dict[str, str]) -> None:
    # Removals first: a new branch `a` is in the way of an old `a/b`.
    for script in (
        [f"delete {ref}\n" for ref, name in wanted.items() if not name],
        [f"update {ref} {name}\n" for ref, name in wanted.items() if name],
    ):
        if script:
            git(repo, "update-ref", "--no-deref", "--stdin", stdin=os.fsencode("".join(script)))


def end_operations(repo: Repo) -> None:
    """Abandon an unfinished merge, rebase, pick, revert or bisect. Work it had set aside is stashed."""
    for name in _AUTOSTASHES:
        path = repo.git_dir / name
        if path.is_file():
            _stash(repo, line(path.read_bytes()), "set aside by an operation that was not finished")
    for name in _LEFTOVERS:
        if os.path.lexists(repo.git_dir / name):
            remove_tree(repo.git_dir / name)


def _restore_stash(repo: Repo, checkpoint: Checkpoint) -> bool:
    now = stashed(repo)
    lost = [name for name in checkpoint.stash if name not in now]
    if lost and not now:
        ask(repo, "update-ref", "-d", "refs/stash")  # storing what it names already would leave its log empty
    for name in lost:
        _stash(repo, name, "kept from before an iteration")
    return bool(lost)


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
