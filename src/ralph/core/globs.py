"""Globs of protected files: `tests/**`, `*.lock`, `scripts/check.sh`, a folder by its name."""

from __future__ import annotations

from fnmatch import fnmatchcase


def matches(path: str, pattern: str) -> bool:
    """A `*` matches everything, a folder stands for all its content, a name without a slash matches anywhere."""
    path = path.lower()
    return any(fnmatchcase(path, f"{spelling}{below}") for spelling in spellings(pattern) for below in ("", "/*"))


def spellings(pattern: str) -> tuple[str, ...]:
    """The same pattern in all the forms that plain `fnmatch` needs."""
    pattern = pattern.lower().removeprefix("./").rstrip("/")
    if not pattern:
        return ()
    found = [pattern]
    if "/" not in pattern:
        found.append(f"*/{pattern}")
    if "**/" in pattern:
        found.append(pattern.replace("**/", ""))
    return tuple(found)
