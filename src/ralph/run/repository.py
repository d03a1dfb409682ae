"""Whether a repository is ready for a run, and what makes it ready: stash, branch, lines in `.gitignore`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from ralph.core.errors import SetupError
from ralph.core.plan import Plan
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.host.files import read_state
from ralph.host.git.branches import has_branch, switch_to_branch
from ralph.host.git.command import ask as ask_git
from ralph.host.git.command import git
from ralph.host.git.repo import Repo
from ralph.host.git.situation import Entry, Kind, Situation, abort_command, phrase
from ralph.proof.checks import made_by_checks
from ralph.run.spec import RunSpec
from ralph.run.worktrees import branch_of
from ralph.setup.repository import is_only_added, keep_out_of_commits
from ralph.state.places import plan_state
from ralph.state.streams import stream_around
from ralph.workspace.find import store_for
from ralph.workspace.own_files import Bookkeeping, bookkeeping

Tell = Callable[[str], None]

STASHED = "stashed your uncommitted work; `git stash pop` restores it"


def make_ready(spec: RunSpec, plan: Plan, found: Situation, env: Mapping[str, str], tell: Tell) -> str:
    """Stash what the user allowed to be stashed, refuse the rest, switch to the plan's branch. Returns the branch."""
    own = ours(spec, env)
    foreign = [entry.path for entry in in_the_way(found, own)]
    if spec.options.stash and foreign:
        found = msgspec.structs.replace(found, dirty=tuple(e for e in found.dirty if e.path not in foreign))
        refuse_unless_ready(found, own, spec.ref)  # whatever else is in the way, before anything is touched
        _stash(spec.repo, foreign, f"ralph: before run {spec.run}", is_possible=not found.unborn)
        tell(STASHED)
    refuse_unless_ready(found, own, spec.ref)
    keep_out_of_commits(spec.ref, spec.repo)
    branch = found.branch or ""
    config = spec.config.branch
    wanted = plan.branch or (f"{config.prefix}{spec.ref.name}" if config.auto_create and spec.ref.name else "")
    is_ours = spec.is_clone or branch == branch_of(spec.ref, spec.repo.root.name) or stream_around(spec.ref.root)
    if not wanted or wanted == branch or is_ours:
        return branch
    if not config.auto_create:
        if has_branch(spec.repo, wanted):  # it may hold the work of earlier runs
            tell(f"working on {branch}; the plan's branch {wanted} exists: `git switch {wanted}` to work there")
        elif wanted.rpartition("/")[2] not in (
            spec.ref.name,
            spec.ref.root.name,
        ):  # not the name that `ralph init` chose
            tell(f"working on {branch}; `branch.auto_create: true` would create the plan's branch {wanted}")
        return branch
    # Whatever is uncommitted now is Ralph's own, such as `.ralph/config.yaml`, and goes along to the branch.
    is_new = switch_to_branch(spec.repo, wanted, [entry.path for entry in found.dirty])
    tell(f"on branch {wanted}, {'created' if is_new else 'switched'} from {branch}")
    return wanted


def _stash(repo: Repo, paths: Sequence[str], message: str, *, is_possible: bool) -> None:
    if not is_possible:
        raise SetupError("the repository has no commits, so nothing can be stashed", hint="create a first commit")
    listed = "".join(f"{path}\0" for path in paths).encode()
    from_stdin = ("--pathspec-from-file=-", "--pathspec-file-nul")
    git(repo, "stash", "push", "--quiet", "--include-untracked", "-m", message, *from_stdin, stdin=listed)


def in_the_way(found: Situation, ours: Bookkeeping) -> list[Entry]:
    """The user's uncommitted work: without Ralph's own files, and without untracked output of checks or tools."""
    return [
        entry
        for entry in found.dirty
        if not ours.is_ours(entry.path) and not (entry.kind is Kind.UNTRACKED and ours.is_left_by_tools(entry.path))
    ]


def refuse_unless_ready(found: Situation, ours: Bookkeeping, ref: PlanRef) -> None:
    """Raise a clear error for every state of a repository that a run must not start in. Changes nothing."""
    if found.in_progress:
        raise SetupError(
            f"{phrase(found.in_progress)} is in progress in {ref.root}",
            hint=f"finish it, or end it with `{abort_command(found.in_progress)}`, then run again",
        )
    if found.detached:
        raise SetupError(
            "HEAD is detached: commits made here would not be on any branch",
            hint="`git switch -c NAME` creates a branch here; `ralph run --worktree` works on its own branch",
        )
    if foreign := in_the_way(found, ours):
        listed = "\n".join(f"  {entry.kind.value:<10} {one_line(entry.path, 100)}" for entry in foreign[:20])
        more = f"\n  … and {len(foreign) - 20} more" if len(foreign) > 20 else ""
        raise SetupError(
            f"uncommitted changes in {ref.root}:\n{listed}{more}",
            hint="commit them, or use `ralph run --stash` (`git stash pop` restores them) or `ralph run --worktree`",
        )


def ours(spec: RunSpec, env: Mapping[str, str]) -> Bookkeeping:
    where = store_for(spec.ref, env).layout.locations(spec.ref)
    own = bookkeeping(spec.ref, where, spec.repo.root, spec.config)
    return msgspec.structs.replace(
        own,
        made_by_checks=made_by_checks(plan_state(spec.ref, env)),
        from_init=own.from_init | _ignore_files_of_init(spec),
    )


def _ignore_files_of_init(spec: RunSpec) -> frozenset[str]:
    """The workspace's `.gitignore`, if its only uncommitted lines are those that `ralph init` appends."""
    path = spec.ref.root / ".gitignore"
    if not path.is_relative_to(spec.repo.root) or path.is_symlink():
        return frozenset()
    try:
        now = read_state(path)
    except OSError:
        return frozenset()
    if b"# Ralph: " not in now:
        return frozenset()
    name = path.relative_to(spec.repo.root).as_posix()
    committed = ask_git(spec.repo, "cat-file", "-p", f"HEAD:{name}")
    before = committed.out if committed.code == 0 else b""
    return frozenset({name}) if is_only_added(before, now) else frozenset()
