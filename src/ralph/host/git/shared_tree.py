"""Somebody else's changes in the working tree of an iteration become part of its checkpoint.

What a checkpoint has is neither committed with the agent's work nor undone with it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from ralph.core.authorship import Move
from ralph.host.file_copies import keep, kept
from ralph.host.git.checkpoint import Checkpoint, branches_of, head_of, moments_of, pin_tree, stashed
from ralph.host.git.command import ask, git, line
from ralph.host.git.refs import BRANCHES, listing, recorded_refs
from ralph.host.git.repo import Repo
from ralph.host.git.shadow import shadow_of
from ralph.host.git.tree_diff import TreeEntry, changes, entries, index_line
from ralph.host.plain_file import disk_trouble, read_plain

_ENTRY = re.compile(rb"^([0-9a-f]{40,64}) ([0-9a-f]{40,64}) .*?> (\d+) [+-]\d{4}(?:\t(.*))?$", re.MULTILINE)
_GONE = "000000"
_CLOCK_STEP = 30.0
"""Seconds between the time in the reflog and the write, at most: git takes the time when a commit begins."""


def moves_since(repo: Repo, checkpoint: Checkpoint) -> tuple[Move, ...]:
    """How HEAD got from the checkpoint to where it is. Empty: it is where it was."""
    branch, head = head_of(repo)
    if branch == checkpoint.branch and head == checkpoint.head:
        return ()
    log = read_plain(repo.git_dir / "logs" / "HEAD") or b""
    new = log[checkpoint.history_size :] if len(log) >= checkpoint.history_size else b""
    moves = [
        Move(old.decode(), name.decode(), float(at), is_switch=said.startswith(b"checkout: moving"))
        for old, name, at, said in _ENTRY.findall(new)
    ]
    if moves and moves[-1].new == (head or "") and (branch != checkpoint.branch) <= moves[-1].is_switch:
        last, written = moves[-1], written_at(repo.common_dir, os.fsencode(f"{BRANCHES}{branch}")) if branch else None
        if written is not None and not last.is_switch and last.at <= written < last.at + _CLOCK_STEP:
            moves[-1] = replace(last, at=written, lasted=0)
        return tuple(moves)
    # There is no reflog, or it does not tell: one move, at the time of the commit, or at none without a new one.
    at = line(ask(repo, "log", "-1", "--format=%ct", head).out) if head and head != checkpoint.head else ""
    is_switch = branch != checkpoint.branch
    return (Move(checkpoint.head or "", head or "", float(at or 0), is_switch=is_switch),)


def stashes_since(repo: Repo, checkpoint: Checkpoint) -> dict[str, float]:
    """New stash entries, and when they were made."""
    new = [name for name in stashed(repo) if name not in checkpoint.stash]
    found = {}
    for name in new:
        at = line(ask(repo, "log", "-1", "--format=%ct", name, "--").out)
        found[name] = float(at or 0)
    return found


def refs_since(repo: Repo, checkpoint: Checkpoint, index_file: Path) -> dict[str, tuple[str, float]]:
    """Refs that moved, other than the current branch: where to, and when. A packed one does not show when."""
    before, found = branches_of(checkpoint, index_file), {}
    for ref, name in recorded_refs(repo).items():
        if ref in before and name != before[ref] and ref != f"{BRANCHES}{checkpoint.branch}":
            at = written_at(repo.common_dir, os.fsencode(ref))
            if at is not None:
                found[ref] = (name, at)
    return found


@disk_trouble()
def adopt(
    repo: Repo,
    checkpoint: Checkpoint,
    index_file: Path,
    tree: str,
    paths: Iterable[bytes],
    head: str | None,
    stashes: Sequence[str],
    refs: Mapping[str, str],
    is_agents: Mapping[bytes, bool],
) -> Checkpoint:
    """The checkpoint with these files as they are in `tree`, the working tree, the branch at `head`, and these refs.

    A file of the commits up to `head` that the agent changed afterwards is taken as it was committed.
    """
    now = entries(repo, tree)
    missing = TreeEntry(_GONE, repo.no_object)
    wanted = {path: now.get(path, missing) for path in paths}
    committed = changes(repo, checkpoint.head, head) if head and checkpoint.head and head != checkpoint.head else ()
    for change in committed:
        is_agents_now = is_agents.get(change.raw, False)
        wanted[change.raw] = (
            TreeEntry(change.new_mode, change.new_id) if is_agents_now else now.get(change.raw, missing)
        )
    new_tree = _with(repo, index_file, checkpoint.tree, wanted) if wanted else checkpoint.tree
    if new_tree != checkpoint.tree:  # protected from `git gc` like that of the checkpoint
        pin_tree(repo, index_file, "shared", new_tree)
    result = replace(checkpoint, tree=new_tree, stash=(*checkpoint.stash, *stashes))
    moments = moments_of(index_file)
    branches = branches_of(checkpoint, index_file) | dict(refs)
    if head == checkpoint.head:
        return replace(result, branches=keep(moments, listing(branches), durable=False)) if refs else result
    if checkpoint.branch is not None and head:
        branches[f"{BRANCHES}{checkpoint.branch}"] = head
    staged = {change.raw: TreeEntry(change.new_mode, change.new_id) for change in committed}
    return replace(
        result,
        head=head,
        branches=keep(moments, listing(branches), durable=False),
        index=_index_with(repo, index_file, checkpoint, staged, head),
    )


def _with(repo: Repo, index_file: Path, tree: str, wanted: Mapping[bytes, TreeEntry]) -> str:
    shadow = shadow_of(repo, index_file)
    scratch = index_file.with_name(f"{index_file.name}.shared")
    try:
        git(shadow, "read-tree", tree, index=scratch)
        lines = b"".join(index_line(path, entry.mode, entry.id) for path, entry in wanted.items())
        git(shadow, "update-index", "-z", "--index-info", index=scratch, stdin=lines)
        return line(git(shadow, "write-tree", index=scratch))
    finally:
        scratch.unlink(missing_ok=True)


def _index_with(
    repo: Repo, index_file: Path, checkpoint: Checkpoint, staged: Mapping[bytes, TreeEntry], head: str | None
) -> str:
    """The user's index of the checkpoint, with the paths of the new commits as they were committed."""
    scratch = index_file.with_name(f"{index_file.name}.shared")
    moments = moments_of(index_file)
    try:
        if checkpoint.index:
            scratch.write_bytes(kept(moments, checkpoint.index))
            lines = b"".join(index_line(path, entry.mode, entry.id) for path, entry in staged.items())
            git(repo, "update-index", "-z", "--index-info", index=scratch, stdin=lines)
        else:
            git(repo, "read-tree", head or "--empty", index=scratch)
        return keep(moments, scratch.read_bytes(), durable=False)
    finally:
        scratch.unlink(missing_ok=True)


def written_at(root: Path, path: bytes) -> float | None:
    """When the inode of a file last changed. An old time can be written to a file, but not this one."""
    try:
        return os.lstat(os.fsencode(root) + b"/" + path).st_ctime
    except OSError:
        return None


def merge_texts(repo: Repo, index_file: Path, base: bytes, ours: bytes, theirs: bytes) -> bytes | None:
    """Both changes of one text; None if they are in each other's way."""
    places = {index_file.with_name(f"{index_file.name}.{n}"): text for n, text in enumerate((ours, base, theirs))}
    try:
        for path, text in places.items():
            path.write_bytes(text)
        answer = ask(repo, "merge-file", "--stdout", "--quiet", *map(str, places))
        return answer.out if answer.code == 0 else None
    finally:
        for path in places:
            path.unlink(missing_ok=True)
