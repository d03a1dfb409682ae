"""The copies of a plan in the worktrees of a workspace, and which of them a run works on."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ralph.core.errors import UsageError
from ralph.core.ports import PlanRef
from ralph.host.places import workspace_state
from ralph.workspace.find import plan_state
from ralph.workspace.last_run import is_at_work

WORKTREES = "worktrees"


def worktrees_of(root: Path, env: Mapping[str, str]) -> Iterator[tuple[Path, Path]]:
    """The worktrees of a workspace, oldest first: the folder, and the workspace in it, at the same relative path."""
    top = next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)
    folder = workspace_state(root, env) / WORKTREES
    for entry in sorted(folder.iterdir()) if folder.is_dir() else ():
        yield entry, Path(os.path.realpath(entry / root.relative_to(top)))


def moved_to(ref: PlanRef, root: Path) -> PlanRef:
    """The same plan in another copy of the workspace."""
    moved = {name: root / os.path.relpath(getattr(ref, name), ref.root) for name in ("folder", "path")}
    return msgspec.structs.replace(ref, root=root, **moved)


def live_ref(ref: PlanRef, env: Mapping[str, str]) -> PlanRef:
    """The plan that a run is working on: the workspace's own, or the copy in a worktree if only a run there is live."""
    if is_at_work(plan_state(ref, env)):
        return ref
    copies = [moved_to(ref, root) for _, root in worktrees_of(ref.root, env)]
    live = [copy for copy in copies if copy.path.is_file() and is_at_work(plan_state(copy, env))]
    if len(live) > 1:
        listed = "; ".join(f"-d {shlex.quote(str(copy.root))}" for copy in live)
        raise UsageError(f"{len(live)} runs work on {ref.name} in worktrees", hint=f"choose one: {listed}")
    return live[0] if live else ref
