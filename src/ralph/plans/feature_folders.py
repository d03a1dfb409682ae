"""`.ralph/<feature>/`: one folder per feature, next to folders with other purposes."""

from __future__ import annotations

import os
import re
from pathlib import Path

from ralph.core.errors import UsageError
from ralph.core.names import safe_name

RESERVED = frozenset({"archive", "configs", "locks", "logs", "prompts", "runs", "specs", "worktrees"})
_PRD = re.compile(r"prd-[0-9]+", re.IGNORECASE)


def is_reserved(name: str) -> bool:
    return name.lower() in RESERVED or _PRD.fullmatch(name) is not None


def feature_name(name: str) -> str:
    """Return `name` if it is valid as a feature's folder."""
    if is_reserved(safe_name(name, "feature")):
        raise UsageError(
            f"a feature cannot be called {name}: .ralph/{name} is reserved",
            hint="choose another name, e.g. user-login",
        )
    return name


def features_with(root: Path, file: str) -> list[str]:
    """Names of the features that have this file, whatever its type. Follows no link to a folder."""
    base = root / ".ralph"
    if base.is_symlink() or not base.is_dir():
        return []
    with os.scandir(base) as entries:
        folders = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
    return [name for name in folders if _is_feature(name) and os.path.lexists(base / name / file)]


def _is_feature(name: str) -> bool:
    try:
        feature_name(name)
    except UsageError:
        return False
    return True
