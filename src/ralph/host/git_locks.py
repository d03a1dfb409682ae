"""Lock files of killed git processes. A lock whose owner may be alive is waited for, never removed.

Only locks that block what a run does count: the index, HEAD, the refs and the configuration. `git gc` and
`git maintenance` keep locks and temporary files of their own (gc.pid, gc.log.lock, objects/maintenance.lock,
commit-graph and pack files) for minutes, and block nothing.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from ralph.core.errors import SetupError
from ralph.host.removal import remove_tree
from ralph.host.repo import Repo

_BLOCKING = ("index.lock", "HEAD.lock", "ORIG_HEAD.lock", "packed-refs.lock", "config.lock", "config.worktree.lock")
_HOUSEKEEPING = frozenset(
    b"gc maintenance repack pack-objects prune prune-packed commit-graph multi-pack-index fsmonitor--daemon".split()
)
"""Git commands that hold none of these locks. What they start (`pack-refs`, `reflog`) is not among them."""
_PATIENCE = 15.0
_PAUSE = 0.05
_OLD = 30.0
"""Seconds. Where processes cannot be listed, an unchanged lock this old is taken to have no owner."""


class GitBusy(SetupError):
    """Another program holds a lock of the repository for too long."""


def clear_stale_locks(repo: Repo, patience: float = _PATIENCE) -> tuple[str, ...]:
    """Remove locks left by killed processes, so that neither we nor the user are locked out."""
    removed = []
    deadline = time.monotonic() + patience
    for lock in _locks(repo):
        while _may_have_owner(repo, lock):
            if time.monotonic() > deadline:
                raise GitBusy(
                    f"another git process is running in {repo.root} and holds {lock}",
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
    if sys.platform != "linux":
        return time.time() - found.st_mtime < _OLD
    return any(_works_in(repo, process) for process in Path("/proc").glob("[0-9]*"))


def _works_in(repo: Repo, process: Path) -> bool:
    """Whether this is a git process in our repository that may hold a lock. Another user's may: we cannot see it."""
    try:
        if not (process / "comm").read_bytes().startswith(b"git"):
            return False
        if _verb((process / "cmdline").read_bytes().split(b"\0")) in _HOUSEKEEPING:
            return False
        state = (process / "stat").read_bytes().rpartition(b")")[2].split()[0]
        if state in (b"Z", b"X"):
            return False
        where = (process / "cwd").readlink()
    except PermissionError:
        return True
    except OSError:
        return False
    return where.is_relative_to(repo.root) or where.is_relative_to(repo.common_dir)


def _verb(argv: list[bytes]) -> bytes:
    """The command in `git -c key=value --git-dir=x VERB …`."""
    words = iter(argv[1:])
    for word in words:
        if word in (b"-c", b"-C"):
            next(words, None)
        elif not word.startswith(b"-"):
            return word
    return b""
