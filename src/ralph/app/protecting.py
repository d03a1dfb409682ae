"""Which files an agent must not change, by the globs of the settings. Pure."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from ralph.app.bookkeeping import Bookkeeping
from ralph.checks.tamper.globs import matches


def protection(patterns: Sequence[str], workspace: Path, repo: Path, own: Bookkeeping) -> Callable[[str], bool] | None:
    """A question about a path in the repository. None: nothing is protected.

    A pattern is meant from the workspace, or from the repository where that is a folder inside. What an agent leaves
    for the loop, its claims above all, is never protected.
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
