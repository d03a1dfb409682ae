"""Streams: one plan each in a git worktree of its own, so that several plans can run at the same time."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.config.layers import Settings, load
from ralph.core.errors import BadData, LockHeld, PlanError, RalphError, SetupError, UsageError
from ralph.core.plan import Plan, State
from ralph.core.ports import PlanRef
from ralph.core.text import one_line, plural
from ralph.host.files import make_folder, read_bytes, write_bytes
from ralph.host.git.branches import has_branch
from ralph.host.git.command import ask, git, line
from ralph.host.git.merging import commit_object, keep_ref
from ralph.host.git.refs import checked_out_elsewhere
from ralph.host.git.repo import Repo, identify
from ralph.host.git.situation import situation
from ralph.host.git.snapshot import snapshot_tree
from ralph.host.locks import Lock, Owner
from ralph.host.removal import remove_tree
from ralph.run.clones import copy_dependencies, copy_own, digest
from ralph.run.repository import in_the_way, ours
from ralph.run.spec import RunSpec
from ralph.state.locks import is_at_work
from ralph.state.names import STREAMS
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import moved_to, open_run
from ralph.state.streams import (
    branch_name,
    main_workspace,
    stream_around,
    stream_folder,
    stream_folders,
    stream_lock,
    stream_name,
)
from ralph.workspace.find import Choice, find_plans, find_repo, store_for
from ralph.workspace.runs import LastRun, last_run

_IGNORE_ALL = b"# Ralph: worktrees and locks of streams\n*\n"


class Standing(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    KILLED = "killed"
    """Its run was killed; `ralph stream build` recovers it."""
    DONE = "done"
    """Every story of its plan is done; it is not merged yet."""
    MERGED = "merged"


class Made(Struct, frozen=True, kw_only=True):
    """What a stream was made from. Paths are relative to the workspace."""

    layout: str
    name: str
    folder: str
    path: str
    branch: str
    base: str
    """The commit that it started from."""
    copied: dict[str, str] = {}
    """Ralph's own files that were copied, with paths from the root of the repository, and hashes of their content."""


class Stream(Struct, frozen=True, kw_only=True):
    name: str
    main: Path
    """The workspace that it was made from."""
    repo: Repo
    """The repository of that workspace."""
    tree: Repo
    """The worktree."""
    ref: PlanRef
    """The plan in the worktree."""
    made: Made

    @property
    def branch(self) -> str:
        return self.made.branch

    @property
    def tip(self) -> str:
        return commit_of(self.repo, f"refs/heads/{self.branch}")

    def claim(self, by: str) -> Lock:
        """Its lock, held until the `with` ends. Raises LockHeld while a run works in it."""
        try:
            return Lock(stream_lock(self.main, self.name)).held_by(Owner.here(by))
        except LockHeld as error:
            hint = f"wait until it ends, or stop it with `ralph stream stop {self.name}`"
            raise LockHeld(f"stream {self.name} is running: {error}", hint=hint) from None


class StreamStatus(Struct, frozen=True, kw_only=True):
    stream: str
    branch: str
    state: Standing
    done: int
    total: int
    ahead: int
    behind: int
    last: str
    """How its last run ended."""
    folder: str
    plan: str
    uncommitted: tuple[str, ...] = ()


def new_stream(root: Path, wanted: str, env: Mapping[str, str]) -> Stream:
    """Create the worktree of a plan from the current branch's HEAD, with the plan as it is, committed or not."""
    if stream_around(root) is not None:
        raise UsageError("this is a stream already", hint=f"create streams in {main_workspace(root)}")
    ref, settings = _plan(root, wanted, env)
    repo = find_repo(ref, settings, env)
    name = stream_name(ref)
    inside = os.path.relpath(root, repo.root)
    if inside.startswith(".."):
        raise SetupError(
            "the repository is nested in the workspace, so a worktree would have no plan",
            hint="run `ralph init` in the repository itself",
        )
    if ask(repo, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").code:
        raise SetupError("there is no commit yet to create a stream from", hint="make a first commit")
    if is_at_work(plan_state(ref, env)):
        raise LockHeld(f"a run works on {name} in this checkout", hint="wait until it ends, or stop it: `ralph stop`")
    folder = stream_folder(root, name)
    if os.path.lexists(folder):
        raise UsageError(
            f"stream {name} exists already", hint=f"`ralph stream build {name}` runs it, `ralph stream list` shows it"
        )
    for parent in (folder.parent, stream_lock(root, name).parent):
        make_folder(parent)
        write_bytes(parent / ".gitignore", _IGNORE_ALL)
    with Lock(stream_lock(root, name)).held_by(Owner.here("stream new")):
        is_new = not has_branch(repo, branch_name(name))
        branch = _add_worktree(repo, folder, name)
        try:
            stream = _fill(name, ref, settings, repo, folder, branch, env)
        except (RalphError, OSError):  # nothing of the user's is in it yet
            ask(repo, "worktree", "remove", "--force", "--force", str(folder))
            if is_new:
                ask(repo, "branch", "--quiet", "-D", branch)
            raise
    return stream


def _fill(
    name: str, ref: PlanRef, settings: Settings, repo: Repo, folder: Path, branch: str, env: Mapping[str, str]
) -> Stream:
    """Copy what git does not have: the plan as it is, and installed dependencies. Record where it came from."""
    root = ref.root
    tree = identify(folder)
    there = moved_to(ref, Path(os.path.realpath(folder / os.path.relpath(root, repo.root))))
    own = ours(RunSpec(run="", ref=ref, settings=settings, repo=repo), env)
    dirty = [entry.path for entry in situation(repo).dirty if own.is_ours(entry.path)]
    made = Made(
        layout=ref.layout,
        name=ref.name,
        folder=os.path.relpath(ref.folder, root),
        path=os.path.relpath(ref.path, root),
        branch=branch,
        base=commit_of(tree, "HEAD"),
        copied=dict(copy_own(ref, repo, tree.root, dirty, ())),
    )
    _write(_record(root, name, env), made)
    copy_dependencies(repo, tree.root, _record(root, name, env, "copies.json"), settings.config)
    return Stream(name=name, main=root, repo=repo, tree=tree, ref=there, made=made)


def _plan(root: Path, wanted: str, env: Mapping[str, str]) -> tuple[PlanRef, Settings]:
    """The plan with this name or number; the only one if none is named."""
    plans = find_plans(root, Choice())
    names = [stream_name(ref) for ref in plans]
    listed = ", ".join(one_line(name, 60) for name in names) or "none"
    found = [ref for ref, name in zip(plans, names, strict=True) if _is_named(name, wanted) or not wanted]
    if len(found) != 1:
        what = f"plan {one_line(wanted, 60)} does not exist" if wanted and not found else f"{len(found)} plans match"
        if not plans:
            raise SetupError(f"no plan in {root}", hint="`ralph init NAME` creates one")
        raise UsageError(f"{what}; plans here: {listed}", hint="name one: `ralph stream new NAME`")
    return found[0], load(root=root, layout=found[0].layout, name=None, env=env, flags={})


def _is_named(name: str, wanted: str) -> bool:
    return wanted.lower() in (name.lower(), name.lower().removeprefix("prd-"))


def _add_worktree(repo: Repo, folder: Path, name: str) -> str:
    """A branch of that name with work that HEAD has not is continued, not overwritten."""
    branch = branch_name(name)
    ask(repo, "worktree", "prune")
    if f"refs/heads/{branch}" in checked_out_elsewhere(repo) or current_branch(repo) == branch:
        raise SetupError(
            f"branch {branch} is checked out already", hint="switch that checkout to another branch: `git switch main`"
        )
    if has_branch(repo, branch) and not is_ancestor(repo, f"refs/heads/{branch}", "HEAD"):
        git(repo, "worktree", "add", "--quiet", str(folder), branch)
    else:
        git(repo, "worktree", "add", "--quiet", "-B", branch, str(folder), "HEAD")
    return branch


def all_streams(root: Path, env: Mapping[str, str]) -> list[Stream]:
    main = main_workspace(root)
    return [_open(main, folder, env) for folder in stream_folders(main)]


def find_stream(root: Path, wanted: str, env: Mapping[str, str]) -> Stream:
    """The stream with this name or number; the only one, or the one around `root`, if none is named."""
    main, around = main_workspace(root), stream_around(root)
    wanted = wanted or (around.name if around else "")
    names = [folder.name for folder in stream_folders(main)]
    if not names:
        raise UsageError(f"no streams in {main}", hint="`ralph stream new NAME` creates one")
    found = [name for name in names if _is_named(name, wanted) or not wanted]
    if len(found) == 1:
        return _open(main, stream_folder(main, found[0]), env)
    what = f"no stream {one_line(wanted, 60)}" if wanted else f"there are {len(names)} streams"
    raise UsageError(f"{what}; streams here: {', '.join(names)}", hint="give the name of one")


def _open(main: Path, folder: Path, env: Mapping[str, str]) -> Stream:
    tree = identify(folder)
    settings = load(root=main, layout="", name=None, env=env, flags={})
    repo = find_repo(PlanRef("", main, main, main, ""), settings, env)
    root = Path(os.path.realpath(folder / os.path.relpath(main, repo.root)))
    made = _read(_record(main, folder.name, env))
    if made is None:  # the state folder was removed
        plan = next((ref for ref in find_plans(root, Choice()) if stream_name(ref) == folder.name), None)
        if plan is None:
            raise SetupError(
                f"{folder} has no plan named {folder.name}", hint=f"`git worktree remove {folder}` removes it"
            )
        branch = branch_name(folder.name)
        base = line(ask(repo, "merge-base", "HEAD", branch).out)
        places = (os.path.relpath(path, root) for path in (plan.folder, plan.path))
        made = Made(
            layout=plan.layout, name=plan.name, folder=next(places), path=next(places), branch=branch, base=base
        )
    ref = PlanRef(made.layout, root, root / made.folder, root / made.path, made.name)
    return Stream(name=folder.name, main=main, repo=repo, tree=tree, ref=ref, made=made)


def status_of(stream: Stream, env: Mapping[str, str]) -> StreamStatus:
    plan = plan_of(stream, env)
    counts = line(git(stream.repo, "rev-list", "--left-right", "--count", f"HEAD...refs/heads/{stream.branch}"))
    behind, ahead = map(int, counts.split())
    return StreamStatus(
        stream=stream.name,
        branch=stream.branch,
        state=_standing(stream, plan, ahead, env),
        done=plan.count(State.DONE) if plan else 0,
        total=len(plan.stories) if plan else 0,
        ahead=ahead,
        behind=behind,
        last=_result(last_run(stream.ref, env)),
        folder=str(stream.tree.root),
        plan=stream.made.path,
        uncommitted=uncommitted(stream, env),
    )


def plan_of(stream: Stream, env: Mapping[str, str]) -> Plan | None:
    with contextlib.suppress(PlanError):
        return store_for(stream.ref, env).load().plan
    return None


def is_running(stream: Stream, env: Mapping[str, str]) -> bool:
    return is_at_work(plan_state(stream.ref, env)) or Lock(stream_lock(stream.main, stream.name)).is_held()


def was_killed(stream: Stream, env: Mapping[str, str]) -> bool:
    return open_run(stream.tree.root, env) is not None and not is_at_work(plan_state(stream.ref, env))


def _standing(stream: Stream, plan: Plan | None, ahead: int, env: Mapping[str, str]) -> Standing:
    if is_running(stream, env):
        return Standing.RUNNING
    if was_killed(stream, env):
        return Standing.KILLED
    if not ahead and stream.tip != stream.made.base:
        return Standing.MERGED
    return Standing.DONE if plan is not None and plan.is_finished else Standing.IDLE


def _result(last: LastRun | None) -> str:
    if last is None:
        return ""
    return one_line(last.reason or last.standing.value, 40)


def uncommitted(stream: Stream, env: Mapping[str, str]) -> tuple[str, ...]:
    """Work in the worktree that is in no commit: files, and edits of the plan that did not come from the checkout."""
    settings = load(root=stream.ref.root, layout=stream.ref.layout, name=None, env=env, flags={})
    own = ours(RunSpec(run="", ref=stream.ref, settings=settings, repo=stream.tree), env)
    found = situation(stream.tree)
    theirs = [entry.path for entry in in_the_way(found, own)]
    progress = store_for(stream.ref, env).layout.locations(stream.ref).progress
    shown = os.path.relpath(progress, stream.tree.root) if progress else ""
    for path in (entry.path for entry in found.dirty if own.is_ours(entry.path)):
        is_record = path == shown or (own.covers(path) and path != os.path.relpath(stream.ref.path, stream.tree.root))
        now = digest(stream.tree.root / path)
        if not is_record and now not in (stream.made.copied.get(path, ""), digest(stream.repo.root / path)):
            theirs.append(path)
    return tuple(dict.fromkeys(theirs))


def unmerged(stream: Stream) -> int:
    """How many commits are on no other branch."""
    if not has_branch(stream.repo, stream.branch):
        return 0
    out = git(stream.repo, "for-each-ref", "--format=%(refname)", "refs/heads", "refs/remotes").decode()
    others = [ref for ref in out.split() if ref != f"refs/heads/{stream.branch}"]
    excluded = "\n".join([stream.tip, *(f"^{ref}" for ref in (*others, stream.made.base))]).encode() + b"\n"
    return int(line(git(stream.repo, "rev-list", "--count", "--stdin", stdin=excluded)) or 0)


def remove_stream(stream: Stream, env: Mapping[str, str], *, force: bool = False) -> str:
    """Remove worktree, branch and lock. Unmerged or uncommitted work is refused; with `force` it is saved first.

    Returns the ref that has it; empty if there was none.
    """
    with stream.claim("stream remove"):
        left, commits = uncommitted(stream, env), unmerged(stream)
        what = [f"{plural(commits, 'commit')} on no other branch"] if commits else []
        what += [f"uncommitted work in {', '.join(one_line(path, 60) for path in left[:5])}"] if left else []
        what += ["a run that was killed and may have left work"] if was_killed(stream, env) else []
        if what and not force:
            raise SetupError(
                f"stream {stream.name} has {' and '.join(what)}",
                hint=f"`ralph stream merge {stream.name}` merges it, `git branch NAME {stream.branch}` keeps its "
                "commits, --force saves everything under refs/ralph/rescue/ and removes it",
            )
        saved = _save(stream, env) if what else ""
        git(stream.repo, "worktree", "remove", "--force", "--force", str(stream.tree.root))
        if has_branch(stream.repo, stream.branch):
            git(stream.repo, "branch", "--quiet", "-D", stream.branch)
        for record in (_record(stream.main, stream.name, env), _record(stream.main, stream.name, env, "copies.json")):
            record.unlink(missing_ok=True)
        remove_tree(stream.tree.root)
        stream_lock(stream.main, stream.name).unlink(missing_ok=True)
    return saved


def _save(stream: Stream, env: Mapping[str, str]) -> str:
    name = f"rescue/stream-{stream.name}/{time.strftime('%Y%m%d-%H%M%S', time.gmtime())}"
    index = make_folder(workspace_state(stream.main, env) / STREAMS, private=True) / f"{stream.name}.index"
    try:
        tree = snapshot_tree(stream.tree, index)
        commit = commit_object(stream.repo, tree, [stream.tip], f"stream {stream.name} before it was removed")
    finally:
        for scrap in index.parent.glob(f"{index.name}*"):
            remove_tree(scrap)
    keep_ref(stream.repo, name, commit)
    return f"refs/ralph/{name}"


def commit_of(repo: Repo, name: str) -> str:
    return line(git(repo, "rev-parse", "--verify", f"{name}^{{commit}}"))


def current_branch(repo: Repo) -> str:
    return line(ask(repo, "symbolic-ref", "--quiet", "--short", "HEAD").out)


def is_ancestor(repo: Repo, old: str, new: str) -> bool:
    return ask(repo, "merge-base", "--is-ancestor", old, new).code == 0


def _record(root: Path, name: str, env: Mapping[str, str], suffix: str = "json") -> Path:
    return workspace_state(root, env) / STREAMS / f"{name}.{suffix}"


def _write(file: Path, made: Made) -> None:
    make_folder(file.parent, private=True)
    text = json.dumps(msgspec.to_builtins(made))  # ASCII: a path may have bytes that are not UTF-8
    write_bytes(file, text.encode() + b"\n", mode=0o600)


def _read(file: Path) -> Made | None:
    with contextlib.suppress(OSError, BadData, ValueError, RecursionError):
        return msgspec.convert(json.loads(read_bytes(file)), Made) if file.exists() else None
    return None
