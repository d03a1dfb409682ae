"""Globs of protected files: `tests/**`, `*.lock`, `scripts/check.sh`, a folder by its name."""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches(path: str, pattern: str) -> bool:
    """A `*` stops at nothing, a folder stands for all that is in it, a name without a slash is meant everywhere."""
    path = path.lower()
    return any(fnmatchcase(path, f"{spelling}{below}") for spelling in spellings(pattern) for below in ("", "/*"))


def spellings(pattern: str) -> tuple[str, ...]:
    """The same pattern in all the ways that a plain `fnmatch` needs."""
    pattern = pattern.lower().removeprefix("./").rstrip("/")
    if not pattern:
        return ()
    found = [pattern]
    if "/" not in pattern:
        found.append(f"*/{pattern}")
    if "**/" in pattern:
        found.append(pattern.replace("**/", ""))
    return tuple(found)
