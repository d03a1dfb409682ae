"""A run in its own git worktree, on its own branch, beside the user's work."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

from ralph.core.errors import PlanError, SetupError
from ralph.core.moves import Reason, Stop
from ralph.core.ports import PlanRef
from ralph.host.files import make_folder
from ralph.host.git.command import ask, git, line
from ralph.host.git.repo import Repo, identify
from ralph.state.locks import is_at_work
from ralph.state.names import WORKTREES
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import list_runs, moved_to, worktrees_of
from ralph.workspace.find import store_for

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
    return moved_to(ref, root), identify(folder), branch


def unfinished_worktree(ref: PlanRef, repo: Repo, env: Mapping[str, str]) -> tuple[PlanRef, Repo, str] | None:
    """The last worktree of the plan with open stories, unless a run works there or its branch is merged already."""
    for folder, root in reversed(list(worktrees_of(ref.root, env))):
        there, branch = moved_to(ref, root), branch_of(ref, folder.name)
        if not there.path.is_file() or is_at_work(plan_state(there, env)):
            continue
        head = ask(repo, "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}")
        if head.code:
            continue
        ahead = ask(repo, "rev-list", "--count", f"HEAD..refs/heads/{branch}")
        has_work = line(ahead.out) not in ("", "0") or bool(list_runs(workspace_state(root, env)))
        is_merged = line(ahead.out) == "0" and line(head.out) != _start_of(repo, branch)
        try:
            is_finished = store_for(there, env).load().plan.is_finished
        except PlanError:
            continue
        if has_work and not is_merged and not is_finished:
            return there, identify(folder), branch
    return None


def _start_of(repo: Repo, branch: str) -> str:
    """The commit from which the branch was made, by its reflog."""
    log = ask(repo, "log", "-g", "--format=%H", f"refs/heads/{branch}", "--")
    return (line(log.out).split("\n") or [""])[-1]


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
