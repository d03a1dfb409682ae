"""Globs of protected files: `tests/**`, `*.lock`, `scripts/check.sh`, a folder by its name."""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches(path: str, pattern: str) -> bool:
    """A `*` stops at nothing, a folder stands for all that is in it, a name without a slash is meant everywhere."""
    path, pattern = path.lower(), pattern.lower().removeprefix("./").rstrip("/")
    if not pattern:
        return False
    candidates = [pattern, pattern + "/*"]
    if "/" not in pattern:
        candidates += [f"*/{pattern}", f"*/{pattern}/*"]
    if "**/" in pattern:
        candidates += [pattern.replace("**/", ""), pattern.replace("**/", "") + "/*"]
    return any(fnmatchcase(path, candidate) for candidate in candidates)
