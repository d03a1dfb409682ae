"""The clone in which agents work: for the loop a git worktree in the state folder, with the state of the workspace.

While it has work that the user's checkout has not, a record in the plan's state says so, and commands read the plan
there. At the end of a run the work is brought back: the user's branch is advanced if their checkout is as it was.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import count
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ralph.config.schema import Config
from ralph.core.errors import BadData, SetupError
from ralph.core.plan import Plan
from ralph.core.ports import PlanRef
from ralph.core.text import one_line, plural
from ralph.host.files import is_special, make_folder, read_state, write_bytes
from ralph.host.git.command import ask, git, line
from ralph.host.git.refs import checked_out_elsewhere
from ralph.host.git.repo import Repo, identify
from ralph.host.git.situation import situation
from ralph.host.removal import is_reached_directly, remove_tree
from ralph.journal.sinks.workspace_files import WorkspaceFiles
from ralph.proof.dependencies import Copies, dependency_folders, listed_files
from ralph.run.recovery import sinks_of
from ralph.run.repository import in_the_way, ours
from ralph.run.spec import RunSpec
from ralph.sandbox.home import own_path
from ralph.state.clones import Clone, forget_clone, read_clone, record_clone
from ralph.state.names import CLONES
from ralph.state.places import plan_state, workspace_state
from ralph.state.runs import moved_to, open_run

Tell = Callable[[str], None]
_COPIES = "copies.json"
_CONFIG = ("config.yaml", "configs", "prompts")
_GIT_NAMES = (".git", "git~1")
_NOT_COPIED = ("runs", "logs", "archive", "worktrees", "locks")


class Opened(Struct, frozen=True):
    ref: PlanRef
    repo: Repo
    clone: Clone


def why_not(ref: PlanRef, repo: Repo, config: Config) -> str:
    """Why there can be no clone; empty if there can."""
    if os.path.relpath(ref.root, repo.root).startswith(".."):
        return "the repository is nested in the workspace"
    if ask(repo, "rev-parse", "--verify", "--quiet", "HEAD^{commit}").code:
        return "there is no commit yet"
    if (repo.root / ".gitmodules").is_file():
        return "the repository has submodules"
    if repo.git_dir != repo.common_dir:
        return "this is a git worktree already"
    if config.steps and not any(step.enabled and step.type == "git-commit" for step in config.steps):
        return "its steps do not commit"
    return ""


def open_clone(spec: RunSpec, plan: Plan, env: Mapping[str, str], tell: Tell) -> Opened:
    """Make the clone, or continue in one whose work the checkout does not have yet."""
    state = plan_state(spec.ref, env)
    known = read_clone(state)
    if known is not None:
        user = moved_to(spec.ref, Path(known.workspace))
        if (opened := _continue(known, user, env, tell)) is not None:
            provide(opened, spec.config, env)
            return opened
        spec = msgspec.structs.replace(spec, ref=user, repo=identify(Path(known.checkout)))
    opened = _begin(spec, plan, env, tell)
    try:
        provide(opened, spec.config, env)
    except SetupError:
        forget_clone(state)
        git(opened.repo, "checkout", "--quiet", "--detach")
        raise
    return opened


def _continue(known: Clone, user: PlanRef, env: Mapping[str, str], tell: Tell) -> Opened | None:
    """None: its work is in the checkout by now, or the clone is gone."""
    state = plan_state(user, env)
    if not Path(known.tree).is_dir() or not Path(known.checkout).is_dir():
        forget_clone(state)
        return None
    repo, clone = identify(Path(known.checkout)), identify(Path(known.tree))
    tip, head = _tip(clone, "HEAD"), _tip(repo, "HEAD")
    was_killed = open_run(clone.root, env) is not None  # what its agent did is not committed yet
    if _is_ancestor(repo, tip, head) and not was_killed:
        _return_files(known, user, clone, only_ignored=False)
        _forget(known, state, repo, clone)
        return None
    if not _is_ancestor(repo, head, tip) and not was_killed:
        raise SetupError(
            f"your checkout and the clone of this plan have both moved on: {known.branch} has "
            f"{plural(_count(repo, head, tip), 'commit')} that your checkout has not, and the reverse",
            hint=f"`git merge {known.branch}` brings the work in; `ralph sandbox reset` gives it up (it stays on the "
            "branch)",
        )
    git(clone, "checkout", "--quiet", known.branch)
    tell(f"continuing in the clone on branch {known.branch}: its work is not in your checkout yet")
    return Opened(moved_to(user, Path(known.root)), clone, known)


def _begin(spec: RunSpec, plan: Plan, env: Mapping[str, str], tell: Tell) -> Opened:
    ref, repo = spec.ref, spec.repo
    found = situation(repo)
    own = ours(spec, env)
    branch, is_own = _branch(repo, ref, plan, spec.config)
    folder = workspace_state(ref.root, env) / CLONES / plan_state(ref, env).name
    tree = folder / (repo.root.name or "root")
    start = branch if not is_own and _has(repo, branch) else "HEAD"
    if tree.is_dir() and ask(tree, "rev-parse", "--verify", "--quiet", "HEAD").code == 0:
        git(tree, "checkout", "--quiet", "--force", "-B", branch, _tip(repo, start))
        git(tree, "clean", "--quiet", "-ffd")  # twice: repositories in it as well
    else:
        remove_tree(folder)
        make_folder(folder, private=True)
        ask(repo, "worktree", "prune")
        git(repo, "worktree", "add", "--quiet", "--force", "-B", branch, str(tree), start)
    clone = identify(tree)
    root = Path(os.path.realpath(tree / os.path.relpath(ref.root, repo.root)))
    there = moved_to(ref, root)
    shown = sinks_of(ref, WorkspaceFiles(ref.root), env).paths
    dirty = [entry.path for entry in found.dirty if own.is_ours(entry.path)]
    copied = dict(copy_own(ref, repo, clone.root, dirty, shown))
    record = Clone(
        workspace=str(ref.root),
        checkout=str(repo.root),
        root=str(root),
        tree=str(clone.root),
        branch=branch,
        base=_tip(clone, "HEAD"),
        target=found.branch or "" if is_own else "",
        copied=copied,
    )
    record_clone(plan_state(ref, env), record)
    theirs = in_the_way(found, own)
    if theirs:
        some = ", ".join(one_line(entry.path, 60) for entry in theirs[:3]) + (", …" if len(theirs) > 3 else "")
        tell(f"the agent works on what is committed: your uncommitted changes ({some}) stay in your checkout")
    return Opened(there, clone, record)


def _branch(repo: Repo, ref: PlanRef, plan: Plan, config: Config) -> tuple[str, bool]:
    """The branch to work on, and whether it is the clone's own: the plan's branch, if nobody has it checked out."""
    own = f"{config.branch.prefix}{ref.name}" if ref.name else ""  # a workspace with one plan has no name for it
    wanted = (plan.branch or own) if config.branch.auto_create else ""
    current = line(ask(repo, "symbolic-ref", "--quiet", "--short", "HEAD").out)
    taken = {name.removeprefix("refs/heads/") for name in checked_out_elsewhere(repo)} | {current}
    if wanted and wanted not in taken:
        return wanted, False
    names = (f"ralph/work/{ref.name or ref.layout}{f'-{number}' if number else ''}" for number in count())
    head = _tip(repo, "HEAD")
    return next(name for name in names if name not in taken and not _has_other_work(repo, name, head)), True


def _has_other_work(repo: Repo, branch: str, head: str) -> bool:
    return _has(repo, branch) and not _is_ancestor(repo, f"refs/heads/{branch}", head)


def copy_own(
    ref: PlanRef, repo: Repo, tree: Path, dirty: Iterable[str], shown: Iterable[Path]
) -> Iterator[tuple[str, str]]:
    """Copy Ralph's own files as they are in the checkout, committed or not. Their paths, and what was copied.

    `shown`: files that show runs; git may ignore them.
    """
    import shutil  # only for a new clone

    dirty = [*dirty]
    places = [*_own_places(ref), *(repo.root / path for path in dirty)]
    places += [path for path in shown if path.is_file()]
    for path in _files(places):
        inner = os.path.relpath(path, repo.root)
        target = own_path(tree, inner)
        make_folder(target.parent)
        shutil.copy2(path, target, follow_symlinks=False)
        yield inner, digest(path)
    for gone in dirty:
        if not os.path.lexists(repo.root / gone):
            own_path(tree, gone).unlink(missing_ok=True)


def _own_places(ref: PlanRef) -> list[Path]:
    return [ref.folder, *(ref.root / ".ralph" / name for name in _CONFIG)]


def own_files(ref: PlanRef) -> Iterator[Path]:
    """Ralph's own files in a workspace, committed or not: the plan and what belongs to it, and the settings."""
    return _files(_own_places(ref))


def _files(places: Iterable[Path]) -> Iterator[Path]:
    for place in dict.fromkeys(places):
        if place.is_dir() and not place.is_symlink():
            for folder, folders, files in os.walk(place):
                folders[:] = [name for name in folders if name not in _NOT_COPIED and name != ".git"]
                yield from (Path(folder, name) for name in files)
        elif os.path.lexists(place):
            yield place


def digest(path: Path) -> str:
    """Of a file's content; empty if there is none, or if it cannot be read."""
    with contextlib.suppress(OSError, BadData):
        data = os.fsencode(path.readlink()) if path.is_symlink() else read_state(path)
        return hashlib.sha256(data).hexdigest()
    return ""


def anchored(config: Config, clone: Clone) -> Config:
    """Paths in the settings that lead to files which the clone does not have: those of the user's workspace."""
    here, there = Path(clone.workspace), Path(clone.root)

    def anchor(path: str) -> str:
        is_relative = bool(path) and not path.startswith(("/", "~"))
        return str(here / path) if is_relative and (here / path).exists() and not (there / path).exists() else path

    def command(argv: tuple[str, ...]) -> tuple[str, ...]:
        return (anchor(argv[0]), *argv[1:]) if argv and "/" in argv[0] else argv

    agent = replace(config.agent, script=anchor(config.agent.script), command=command(config.agent.command))
    review = replace(config.review, command=command(config.review.command))
    folders = tuple(os.path.normpath(here / path) if path.startswith("..") else path for path in config.allow_paths)
    return replace(config, agent=agent, review=review, prompt=anchor(config.prompt), allow_paths=folders)


def provide(opened: Opened, config: Config, env: Mapping[str, str]) -> None:
    tree = opened.repo.root
    copy_dependencies(identify(Path(opened.clone.checkout)), tree, tree.parent / _COPIES, config)


def copy_dependencies(repo: Repo, tree: Path, record: Path, config: Config) -> None:
    """Copy what git does not track and the project needs: installed dependencies, and files that the user lists."""
    checkout = repo.root
    own = [path for path in config.sandbox.files if not path.startswith("~/")]
    listed = [*listed_files(checkout, config.proof.files), *listed_files(checkout, own, "sandbox.files")]
    inner = [*dependency_folders(repo), *listed]
    for path in inner:
        own_path(tree, path, is_folder=(checkout / path).is_dir())
    Copies(record, [(checkout, tree)]).sync([(checkout / path, tree / path) for path in inner])


def bring_back(
    user: PlanRef, env: Mapping[str, str], *, why_not: str = "", written: Iterable[Path] = ()
) -> Iterator[str]:
    """Advance the user's branch to the clone's, if their checkout is as it was. Yields what to tell.

    `why_not`: why it is to be left alone; then only a plan that git ignores is brought back. `written`: files that show
    the run, in the clone.
    """
    state = plan_state(user, env)
    known = read_clone(state)
    if known is None or not Path(known.tree).is_dir():
        return
    repo, clone = identify(Path(known.checkout)), identify(Path(known.tree))
    tip = _tip(clone, "HEAD")
    git(clone, "checkout", "--quiet", "--detach")  # so that the user can check the branch out
    is_same = tip == known.base
    if not known.target and not is_same:
        _return_files(known, user, clone, only_ignored=True, written=written)
        yield f"the work is on branch {known.branch}; your checkout was left alone"
        return
    why = "" if is_same else why_not or _why_not_now(known, repo)
    if not why and not is_same:
        why = _advance(known, user, repo, clone, tip)
    if why:
        _return_files(known, user, clone, only_ignored=True, written=written)
        yield f"your checkout: {why}"
        yield f"the work is on branch {known.branch}: `git merge {known.branch}` brings it in"
        if _has_uncommitted_plan(repo, user):
            yield "the plan has uncommitted changes in your checkout: commit them before you merge"
        return
    _return_files(known, user, clone, only_ignored=False, written=written)
    _forget(known, state, repo, clone)
    if not is_same:
        made = plural(_count(repo, known.base, tip), "commit")
        yield f"{known.target} in your checkout was advanced by {made} in all"


def _has_uncommitted_plan(repo: Repo, user: PlanRef) -> bool:
    inner = os.path.relpath(user.folder, repo.root)
    return any(entry.path.startswith(f"{inner}/") for entry in situation(repo).dirty)


def _forget(known: Clone, state: Path, repo: Repo, clone: Repo) -> None:
    """The checkout has all that the clone has."""
    forget_clone(state)
    git(clone, "checkout", "--quiet", "--detach")
    if known.target:
        ask(repo, "branch", "--quiet", "-D", known.branch)


def _why_not_now(known: Clone, repo: Repo) -> str:
    """Why the checkout cannot be advanced; empty if it can."""
    found = situation(repo)
    if found.in_progress:
        return f"{found.in_progress} is in progress, so it was left alone"
    if found.branch != known.target:
        return f"it is no longer on {known.target}, so it was left alone"
    if _tip(repo, "HEAD") != known.base:
        return f"{known.target} has moved on, so it was left alone"
    return ""


def _advance(known: Clone, user: PlanRef, repo: Repo, clone: Repo, tip: str) -> str:
    """Git itself refuses to overwrite a change. Ralph's own files, which the clone has too, step aside for it."""
    aside: dict[Path, bytes] = {}
    for inner, before in known.copied.items():
        path = repo.root / inner
        if before and digest(path) == before and not path.is_symlink() and not _is_committed(repo, inner, path):
            aside[path] = read_state(path)
    for path in aside:
        inner = os.path.relpath(path, repo.root)
        path.unlink()
        if ask(repo, "cat-file", "-e", f"HEAD:{inner}").code == 0:
            git(repo, "checkout", "--quiet", "HEAD", "--", inner)
    done = ask(repo, "merge", "--ff-only", "--quiet", tip)
    if done.code == 0:
        is_archived = not moved_to(user, Path(known.root)).path.exists()
        for path, data in aside.items():  # what is not committed comes back, as the clone has it
            if is_archived and path.is_relative_to(user.folder):
                continue  # it is in the archive
            theirs = clone.root / os.path.relpath(path, repo.root)
            is_plain = theirs.is_file() and not theirs.is_symlink() and is_reached_directly(clone.root, theirs)
            wanted = data
            with contextlib.suppress(OSError, BadData):
                wanted = read_state(theirs) if is_plain else data
            if digest(path) != hashlib.sha256(wanted).hexdigest():
                make_folder(path.parent)
                write_bytes(path, wanted)
        return ""
    for path, data in aside.items():
        make_folder(path.parent)
        write_bytes(path, data)
    said = done.err.decode("utf-8", "replace").splitlines()
    files = [one_line(text.strip(), 80) for text in said if text.startswith("\t")]
    some = ", ".join(files[:3]) + (", …" if len(files) > 3 else "")
    return f"it has changes in the same files ({some or done.complaint}), so it was left alone; commit or stash them"


def _is_committed(repo: Repo, inner: str, path: Path) -> bool:
    committed = ask(repo, "cat-file", "-p", f"HEAD:{inner}")
    return committed.code == 0 and committed.out == read_state(path)


def _return_files(
    known: Clone, user: PlanRef, clone: Repo, *, only_ignored: bool, written: Iterable[Path] = ()
) -> None:
    """Write the plan and Ralph's other files back as the clone has them, unless the user has changed theirs since."""
    checkout, there = Path(known.checkout), moved_to(user, Path(known.root))
    places = [there.folder, *(clone.root / inner for inner in known.copied), *written]
    for path in _files(place for place in places if is_reached_directly(clone.root, place)):
        inner = os.path.relpath(path, clone.root)
        mine = checkout / inner
        if not _may_return(path, mine, checkout) or digest(path) == digest(mine):
            continue
        if os.path.lexists(mine) and digest(mine) != known.copied.get(inner, ""):
            continue
        if only_ignored and ask(clone, "check-ignore", "--quiet", "--", inner).code:
            continue
        with contextlib.suppress(OSError):  # too large
            data = read_state(path)
            make_folder(mine.parent)
            write_bytes(mine, data)


def _may_return(path: Path, mine: Path, checkout: Path) -> bool:
    """A regular file that is no part of a repository: git would start what the settings of that one name."""
    if path.is_symlink() or is_special(path) or any(part.lower() in _GIT_NAMES for part in path.parts[-3:]):
        return False
    return not mine.is_symlink() and Path(os.path.realpath(mine)).is_relative_to(os.path.realpath(checkout))


def _tip(repo: Repo | Path, name: str) -> str:
    return line(git(repo, "rev-parse", "--verify", f"{name}^{{commit}}"))


def _has(repo: Repo, branch: str) -> bool:
    return ask(repo, "show-ref", "--verify", "--quiet", f"refs/heads/{branch}").code == 0


def _is_ancestor(repo: Repo, old: str, new: str) -> bool:
    return ask(repo, "merge-base", "--is-ancestor", old, new).code == 0


def _count(repo: Repo, old: str, new: str) -> int:
    return int(line(git(repo, "rev-list", "--count", f"{old}..{new}")) or 0)
