"""Files that an agent wrote and git ignores: a check that needs them fails on the commit, and this is why."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ralph.host.git.command import git, names
from ralph.host.git.repo import Repo
from ralph.proof.dependencies import is_dependency_folder
from ralph.proof.files import Role, role_of
from ralph.proof.place import BUILD_CACHES

_MOST_LISTED = 2000
_CODE = frozenset({Role.SOURCE, Role.TEST, Role.HELPER})


def ignored_work(repo: Repo, since: float) -> tuple[str, ...]:
    """Ignored source files of the repository that were written since a time, with paths from its root."""
    listed = git(repo, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
    found = []
    for raw in names(listed)[:_MOST_LISTED]:
        path = os.fsdecode(raw)
        for name in _files(repo.root, path) if path.endswith("/") else [path]:
            if role_of(name) in _CODE and _written(repo.root / name) >= since:
                found.append(name)
    return tuple(sorted(found))


def _files(root: Path, folder: str) -> Iterator[str]:
    """Without caches and installed dependencies."""
    name = folder.rstrip("/").rpartition("/")[2]
    if name in BUILD_CACHES or name == ".ralph" or is_dependency_folder(root, folder):
        return
    count = 0
    for where, folders, files in os.walk(root / folder):
        folders[:] = [each for each in folders if each not in BUILD_CACHES]
        for each in files:
            count += 1
            if count > _MOST_LISTED:
                return
            yield os.path.relpath(f"{where}/{each}", root)


def _written(path: Path) -> float:
    try:
        return path.lstat().st_mtime
    except OSError:
        return 0
