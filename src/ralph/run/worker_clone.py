"""The clone of a worker: a repository of its own that reads the objects of the user's, with their tags."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

from ralph.core.errors import RalphError
from ralph.core.ports import PlanRef
from ralph.core.text import one_line
from ralph.core.worker import Begin
from ralph.host.files import make_folder, write_bytes
from ralph.host.git.command import ask, git, line
from ralph.host.git.repo import Repo, identify
from ralph.host.removal import remove_tree
from ralph.run import hub
from ralph.run.clones import Opened, provide
from ralph.run.hub import Hub
from ralph.sandbox.home import own_path
from ralph.state.clones import Clone, record_clone, users_own
from ralph.state.names import CLONES, WORKERS
from ralph.state.places import plan_state, state_home, workspace_id, workspace_state
from ralph.state.runs import moved_to

BRANCH = "work"
_COPIED = (
    "user.name",
    "user.email",
    "core.filemode",
    "core.symlinks",
    "core.ignorecase",
    "core.autocrlf",
    "core.eol",
    "core.longpaths",
)
_GIT = "repository"
_SETTINGS, _TAGS = "copied-settings", "copied-tags"
_RESCUE = "refs/ralph/rescue/"


def open_worker_clone(begin: Begin, env: Mapping[str, str]) -> tuple[Opened, str]:
    """Make the clone, or clear the one that is there. Also returns the ref of work that a killed worker left in it."""
    checkout = Path(begin.checkout) if begin.checkout else begin.ref.root
    home = state_home(env) / workspace_id(begin.ref.root)
    folder = home / CLONES / plan_state(begin.ref, env).name
    tree = folder / (checkout.name or "root")
    lost = ""
    git_dir = folder / _GIT  # beside it: in a sandbox, the agent finds a repository of its own in its place
    if git_dir.is_dir() and ask(tree, "rev-parse", "--verify", "--quiet", "HEAD").code == 0:
        lost = _save(begin, tree)
    else:
        remove_tree(folder)
        make_folder(tree, private=True)
        kind = (f"--object-format={begin.objects}", f"--initial-branch={BRANCH}")
        git(tree, "init", "--quiet", "--template=", *kind, f"--separate-git-dir={git_dir}")
    if begin.is_hub:
        _set_up_for_hub(begin, tree)
    else:
        _read_objects_of(Path(begin.source), git_dir)
    reset(tree, begin.base)
    repo = identify(tree)
    root = Path(os.path.realpath(tree / os.path.relpath(begin.ref.root, checkout)))
    record = Clone(
        workspace=str(begin.ref.root),
        checkout=str(checkout),
        root=str(root),
        tree=str(repo.root),
        branch=BRANCH,
        base=begin.base,
    )
    record_clone(plan_state(begin.ref, env), record)
    opened = Opened(moved_to(begin.ref, root), repo, record)
    if begin.checkout and not begin.is_hub:
        provide(opened, begin.settings.config, env)
    return opened, lost


def _set_up_for_hub(begin: Begin, tree: Path) -> None:
    _copy_settings(begin.git_settings, tree.parent / _GIT)
    hub.get(tree, Hub(begin.source), begin.run, begin.base)


def settings_of(repository: Path) -> dict[str, str]:
    """Settings of a repository that decide about files and authors, for a clone on another machine."""
    wanted = "|".join(key.replace(".", r"\.") for key in _COPIED)
    answer = ask(repository, "config", "--null", "--get-regexp", f"^({wanted})$")
    items = (item.partition("\n") for item in answer.out.decode("utf-8", "surrogateescape").split("\0") if item)
    return {key: value for key, _, value in items}  # the last one counts


def _copy_settings(values: Mapping[str, str], git_dir: Path) -> None:
    """In a file of their own, which the repository's settings include: one write instead of a process for each."""
    text = ""
    for key, value in values.items():
        section, _, name = key.partition(".")
        quoted = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        text += f'[{section}]\n\t{name} = "{quoted}"\n'
    write_bytes(git_dir / _SETTINGS, text.encode("utf-8", "surrogateescape"), durable=False)
    config = git_dir / "config"
    include = f"[include]\n\tpath = {_SETTINGS}\n".encode()
    if include not in (known := config.read_bytes()):
        write_bytes(config, known + include, durable=False)


def _read_objects_of(source: Path, git_dir: Path) -> None:
    """Objects are read where they are; settings that decide about files, and tags, are copied."""
    write_bytes(
        git_dir / "objects" / "info" / "alternates", f"{source / 'objects'}\n".encode("utf-8", "surrogateescape")
    )
    if (source / "shallow").is_file():
        write_bytes(git_dir / "shallow", (source / "shallow").read_bytes())
    if (source / "info" / "exclude").is_file():
        make_folder(git_dir / "info")
        write_bytes(git_dir / "info" / "exclude", (source / "info" / "exclude").read_bytes())
    _copy_settings(settings_of(source), git_dir)
    tags = git(source, "for-each-ref", "--format=create %(refname) %(objectname)", "refs/tags")
    copied = git_dir / _TAGS
    if tags != (copied.read_bytes() if copied.is_file() else b""):
        git(
            git_dir,
            "update-ref",
            "--stdin",
            stdin=git(git_dir, "for-each-ref", "--format=delete %(refname)", "refs/tags"),
        )
        git(git_dir, "update-ref", "--stdin", stdin=tags)
        write_bytes(copied, tags, durable=False)


def reset(tree: Path, commit: str) -> None:
    """Leave nothing of the session before; ignored files stay, as in any checkout."""
    git(tree, "checkout", "--quiet", "--force", "-B", BRANCH, commit)
    git(tree, "clean", "--quiet", "-ffd")


def write_files(root: Path, files: Mapping[str, bytes]) -> None:
    for inner, data in files.items():
        path = own_path(root, inner)
        if not path.is_file() or path.read_bytes() != data:
            make_folder(path.parent)
            write_bytes(path, data, durable=False)


def save_left(begin: Begin, tree: Path) -> str:
    """For the driver, once a worker and its agents are gone: the ref of what they left in the clone, which is cleared.
    The number of the worker may not be used again."""
    if ref := _save(begin, tree):
        reset(tree, "HEAD")
    return ref


def remove_clones(ref: PlanRef, repo: Repo, env: Mapping[str, str]) -> None:
    """Of a plan that is done, by the driver, when its workers have ended. What is only there stays there."""
    user = users_own(ref, env)
    inner = Path(workspace_id(user.root), CLONES, plan_state(user, env).name)
    for home in sorted((workspace_state(user.root, env) / WORKERS).glob("*")):
        folder = home / inner
        with contextlib.suppress(RalphError, OSError):  # the next run of the plan uses it
            if (folder / _GIT).is_dir() and _has_nothing_of_its_own(folder / _GIT, repo):
                remove_tree(folder)


def _has_nothing_of_its_own(git_dir: Path, repo: Repo) -> bool:
    """No uncommitted work, and every commit that a ref names was brought to the user's repository."""
    tree = next(path for path in git_dir.parent.iterdir() if (path / ".git").is_file())
    if git(tree, "status", "--porcelain", "--untracked-files=normal"):
        return False
    commits = {*git(tree, "for-each-ref", "--format=%(objectname)").split(), git(tree, "rev-parse", "HEAD").strip()}
    known = git(repo, "cat-file", "--batch-check", stdin=b"".join(commit + b"\n" for commit in commits))
    return b" missing" not in known


def _save(begin: Begin, tree: Path) -> str:
    """What a killed worker left uncommitted, without Ralph's own files, under a ref; empty if there was nothing."""
    checkout = Path(begin.checkout) if begin.checkout else begin.ref.root
    own = [os.path.relpath(path, checkout) for path in (begin.ref.folder, begin.ref.root / ".ralph")]
    name = f"{_RESCUE}{begin.run}/worker-{begin.worker}"
    index = tree.parent / _GIT / "lost-index"
    index.unlink(missing_ok=True)
    git(tree, "read-tree", "HEAD", index=index)
    git(tree, "add", "--all", index=index)
    if own:  # not left out by `git add`: it fails where such a folder has nothing that git could add
        git(tree, "reset", "--quiet", "HEAD", "--", *(f":(top,literal){path}" for path in own), index=index)
    saved = line(git(tree, "write-tree", index=index))
    index.unlink(missing_ok=True)
    if saved == line(git(tree, "rev-parse", "HEAD^{tree}")):
        return ""
    who = ("-c", "user.name=Ralph", "-c", "user.email=ralph@localhost")
    message = one_line("ralph: what a killed worker left", 72)
    commit = line(git(tree, *who, "commit-tree", saved, "-p", "HEAD", "-m", message))
    number = 1
    while ask(tree, "show-ref", "--verify", "--quiet", f"{name}-{number}").code == 0:
        number += 1
    git(tree, "update-ref", f"{name}-{number}", commit)
    return f"{name}-{number}"
