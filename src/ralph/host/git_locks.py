"""Lock files of git processes that were killed. A lock whose owner may be alive is waited for, never taken."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from ralph.core.errors import SetupError
from ralph.host.repo import Repo

_PATIENCE = 5.0
_PAUSE = 0.05
_OLD = 30.0
"""Seconds. Where processes cannot be listed, a lock this old and still the same has no owner."""


def clear_stale_locks(repo: Repo, patience: float = _PATIENCE) -> tuple[str, ...]:
    """Remove the locks that killed processes left behind, so that neither we nor the user are locked out."""
    removed = []
    deadline = time.monotonic() + patience
    for lock in _locks(repo):
        while _may_have_owner(repo, lock):
            if time.monotonic() > deadline:
                raise SetupError(
                    f"another git process is at work in {repo.root}: it holds {lock}",
                    hint="let it finish, then start again",
                )
            time.sleep(_PAUSE)
        if os.path.lexists(lock):
            lock.unlink(missing_ok=True)
            removed.append(str(lock))
    return tuple(removed)


def _locks(repo: Repo) -> list[Path]:
    """No name of a ref or of a file of git's ends like this, so what does is a lock."""
    places = {repo.git_dir, repo.common_dir}
    found = [lock for place in places for lock in place.glob("*.lock")]
    return sorted([*found, *(repo.common_dir / "refs").rglob("*.lock")])


def _may_have_owner(repo: Repo, lock: Path) -> bool:
    try:
        found = lock.lstat()
    except FileNotFoundError:
        return False
    if sys.platform != "linux":
        return time.time() - found.st_mtime < _OLD
    return any(_works_in(repo, process) for process in Path("/proc").glob("[0-9]*"))


def _works_in(repo: Repo, process: Path) -> bool:
    """Whether this is a git in our repository. One of another user, that we cannot look at, may be."""
    try:
        if not (process / "comm").read_bytes().startswith(b"git"):
            return False
        if b"fsmonitor--daemon" in (process / "cmdline").read_bytes():  # it stays for days and holds no lock
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
