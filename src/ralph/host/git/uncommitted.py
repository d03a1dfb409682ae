"""Files that were not committed when an agent started, and that its accepted work changed or deleted.

A rollback would restore them. Where the work is kept, a ref keeps them instead: no commit has them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ralph.host.git.checkpoint import Checkpoint
from ralph.host.git.command import git
from ralph.host.git.refs import KEEP
from ralph.host.git.repo import Repo
from ralph.host.git.rescue import base_of
from ralph.host.git.shadow import shadow_of
from ralph.host.git.tree_diff import changes


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
