"""A run in its own git worktree, on its own branch, beside the user's work."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from ralph.core.errors import SetupError
from ralph.core.moves import Reason, Stop
from ralph.core.ports import PlanRef
from ralph.host.files import make_folder
from ralph.host.git import ask, git
from ralph.host.places import workspace_state
from ralph.host.repo import Repo, identify

WORKTREES = "worktrees"
_CONFIG = ("config.yaml", "configs", "prompts")


def open_worktree(ref: PlanRef, repo: Repo, run: str, env: Mapping[str, str]) -> tuple[PlanRef, Repo, str]:
    """Create the worktree from HEAD, with the current plan, committed or not. Returns plan, repository, branch."""
    branch = branch_of(ref, run)
    folder = workspace_state(ref.root, env) / WORKTREES / run
    make_folder(folder.parent, private=True)
    inside = os.path.relpath(ref.root, repo.root)
    if inside.startswith(".."):
        raise SetupError(
            "the repository is nested in the workspace, so a worktree would have no plan",
            hint="commit the work first, or use --stash",
        )
    if ask(repo, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").code:
        raise SetupError("there is no commit yet to create a worktree from", hint="make a first commit")
    git(repo, "worktree", "add", "--quiet", "-b", branch, str(folder), "HEAD")
    root = Path(os.path.realpath(folder / inside))
    _copy(ref.root, root, ref.folder)
    for name in _CONFIG:
        _copy(ref.root, root, ref.root / ".ralph" / name)
    moved = {name: root / os.path.relpath(getattr(ref, name), ref.root) for name in ("folder", "path")}
    return msgspec.structs.replace(ref, root=root, **moved), identify(folder), branch


def branch_of(ref: PlanRef, run: str) -> str:
    """The branch of a run's worktree, whose folder has the name of the run."""
    return f"ralph/{ref.name}-{run}"


def unused_worktree(repo: Repo, worktree: Repo, branch: str, stop: Stop | None) -> Iterator[str]:
    """What to do about a worktree in which no agent has started. One whose run has not even started is removed."""
    if stop is None:
        gone = ask(repo, "worktree", "remove", "--force", str(worktree.root)).code == 0
        if gone and ask(repo, "branch", "--quiet", "-D", branch).code == 0:
            yield f"removed the unused worktree and its branch {branch}"
            return
    folder = shlex.quote(str(worktree.root))
    if stop is not None and stop.reason is Reason.BROKEN_CHECK:
        yield f"install what the checks need in {folder}, then continue there: `ralph run -d {folder}`"
        yield "or use a check command that needs no ignored files, such as `uv run pytest`"
    remove = f"git worktree remove --force {folder}; git branch -D {branch}"
    yield f"no agent has started; to remove the worktree: `{remove}`"


def _copy(root: Path, to: Path, path: Path) -> None:
    """Copy one file or folder of the workspace; symlinks stay symlinks. A folder's runs and logs are not copied."""
    import shutil

    target = to / os.path.relpath(path, root)
    if path.is_dir() and not path.is_symlink():
        skip = shutil.ignore_patterns("runs", "logs", "archive", "worktrees")
        shutil.copytree(path, target, symlinks=True, dirs_exist_ok=True, ignore=skip)
    elif os.path.lexists(path):
        make_folder(target.parent)
        shutil.copy2(path, target, follow_symlinks=False)
