"""Which files an agent must not change, by the globs of the settings. Pure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ralph.hooks.globs import is_protected
from ralph.workspace.own_files import Bookkeeping


def protection(
    patterns: tuple[str, ...], workspace: Path, repo: Path, own: Bookkeeping
) -> Callable[[str], bool] | None:
    """Returns a predicate for paths in the repository, or None if nothing is protected."""
    roots, own_paths = (str(workspace), str(repo)), own.paths_in(repo)
    return (lambda path: is_protected(f"{repo}/{path}", patterns, roots, own_paths)) if patterns else None
