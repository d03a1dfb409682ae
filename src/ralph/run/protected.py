"""Which files an agent must not change, by the globs of the settings. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ralph.core.globs import matches
from ralph.workspace.own_files import Bookkeeping


def protection(patterns: Sequence[str], workspace: Path, repo: Path, own: Bookkeeping) -> Callable[[str], bool] | None:
    """Returns a predicate for paths in the repository, or None if nothing is protected.

    Patterns are relative to the workspace, or to the repository if it is nested in the workspace. Files an agent leaves
    for the loop, such as claims, are never protected.
    """
    if not patterns:
        return None
    inner = Path(os.path.relpath(repo, workspace)).as_posix()
    prefix = "" if inner == "." or inner.startswith("..") else f"{inner}/"

    def is_protected(path: str) -> bool:
        if own.covers(path):
            return False
        names = {path, prefix + path}
        return any(matches(name, pattern) for pattern in patterns for name in names)

    return is_protected
