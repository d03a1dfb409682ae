"""Lock files of killed git processes. A lock that is fresh or has an owner is waited for, never removed.

The owner is a process that has the file open, in whatever worktree or folder it runs. `git commit` closes it while the
editor and the hooks run, so a running commit counts, too. Another program, such as an IDE, may close the file before it
renames it; that takes moments, so a fresh lock is taken to have an owner.

Only locks that block what a run does count: the index, HEAD, the refs and the configuration. `git gc` and
`git maintenance` keep locks and temporary files of their own (gc.pid, gc.log.lock, objects/maintenance.lock,
commit-graph and pack files) for minutes, and block nothing.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from pathlib import Path

from ralph.core.errors import SetupError
from ralph.host.git.repo import Repo
from ralph.host.process.signals import is_stopping
from ralph.host.removal import remove_tree

_BLOCKING = ("index.lock", "HEAD.lock", "ORIG_HEAD.lock", "packed-refs.lock", "config.lock", "config.worktree.lock")
_PATIENCE = 15.0
_PATIENCE_STOPPING = 1.0
_PAUSE = 0.05
_FRESH = 5.0
"""Seconds in which nobody has to have a lock open for it to be respected."""
_OLD = 30.0
"""Seconds. Where processes cannot be listed, an unchanged lock this old is taken to have no owner."""


class GitBusy(SetupError):
    """Another program holds a lock of the repository for too long."""


def clear_stale_locks(repo: Repo, patience: float = _PATIENCE) -> tuple[str, ...]:
    """Remove locks left by killed processes, so that neither we nor the user are locked out. Raises GitBusy."""
    removed = []
    deadline = time.monotonic() + patience
    for lock in _locks(repo):
        while _may_have_owner(repo, lock):
            if time.monotonic() > (deadline if not is_stopping() else deadline - patience + _PATIENCE_STOPPING):
                raise GitBusy(
                    f"another program is using the repository {repo.root}: it holds {lock}",
                    hint="wait until it finishes, then run again",
                )
            time.sleep(_PAUSE)
        if os.path.lexists(lock):
            remove_tree(lock)  # it may be a folder
            removed.append(str(lock))
    return tuple(removed)


def _locks(repo: Repo) -> list[Path]:
    """Ref names cannot end like this, so a file that does is a lock."""
    files = {place / name for place in (repo.git_dir, repo.common_dir) for name in _BLOCKING}
    return sorted([*filter(os.path.lexists, files), *(repo.common_dir / "refs").rglob("*.lock")])


def _may_have_owner(repo: Repo, lock: Path) -> bool:
    try:
        found = lock.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISREG(found.st_mode):  # git and others make files
        return False
    age = time.time() - found.st_mtime
    if sys.platform != "linux":
        return 0 <= age < _OLD
    if 0 <= age < _FRESH:
        return True
    return any(_holds(process, found, repo.root) for process in Path("/proc").glob("[0-9]*"))


def _holds(process: Path, lock: os.stat_result, root: Path) -> bool:
    """Whether a process has the lock open, or is a commit in this working tree.

    Another user's git may hold it: we cannot see its files.
    """
    is_git = False
    try:
        is_git = (process / "comm").read_bytes().startswith(b"git")
        with os.scandir(process / "fd") as descriptors:
            if any(_is_file(descriptor.path, lock) for descriptor in descriptors):
                return True
        if not is_git or _verb((process / "cmdline").read_bytes().split(b"\0")) != b"commit":
            return False
        return (process / "cwd").readlink().is_relative_to(root)
    except PermissionError:
        return is_git
    except OSError:
        return False


def _is_file(descriptor: str, lock: os.stat_result) -> bool:
    try:
        found = os.stat(descriptor)  # noqa: PTH116 - thousands of them
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == (lock.st_dev, lock.st_ino)


def _verb(argv: list[bytes]) -> bytes:
    """The command in `git -c key=value --git-dir=x VERB …`."""
    words = iter(argv[1:])
    for word in words:
        if word in (b"-c", b"-C"):
            next(words, None)
        elif not word.startswith(b"-"):
            return word
    return b""
