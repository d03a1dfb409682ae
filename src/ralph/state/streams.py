"""Where streams are: one git worktree per plan in `.ralph/worktrees/`, each with a lock in `.ralph/locks/`.

A stream is a workspace of its own, with its own state. Trust and budgets belong to the workspace that it was made from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ralph.core.ports import PlanRef

DOT_RALPH, TREES, LOCKS = ".ralph", "worktrees", "locks"
_BRANCHES = "ralph/"


def stream_name(ref: PlanRef) -> str:
    """The name of a plan's stream: `PRD-3`, or the name of the feature."""
    is_numbered = ref.name.isdigit() and ref.folder.name == f"PRD-{ref.name}"
    name = ref.folder.name if is_numbered else ref.name or ref.layout
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-.") or "plan"


def branch_name(name: str) -> str:
    return f"{_BRANCHES}{name}"


def stream_folder(root: Path, name: str) -> Path:
    """`root`: the workspace that the stream is made from."""
    return root / DOT_RALPH / TREES / name


def stream_lock(root: Path, name: str) -> Path:
    return root / DOT_RALPH / LOCKS / f"{name}.lock"


def stream_folders(root: Path) -> Iterator[Path]:
    """The worktrees of the streams of a workspace, by name."""
    folder = root / DOT_RALPH / TREES
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        if (entry / ".git").is_file() and not entry.is_symlink():
            yield entry


def stream_around(root: Path) -> Path | None:
    """The worktree of the stream that this workspace is in; None: it is in no stream."""
    for folder in (root, *root.parents):
        if (folder / ".git").exists():
            is_stream = folder.parent.name == TREES and folder.parent.parent.name == DOT_RALPH
            return folder if is_stream and (folder / ".git").is_file() else None
    return None


def main_workspace(root: Path) -> Path:
    """The workspace that a stream was made from; any other workspace is its own."""
    stream = stream_around(root)
    return stream.parents[2] if stream is not None else root
