"""Names that become folder names: features, labels, PRD numbers. They cannot point outside their folder. Pure."""

from __future__ import annotations

import re

from ralph.core.errors import UsageError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.text import clean, one_line

_NAME = lazy_pattern(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_LONGEST = 100
_LONGEST_PART = 255
_WINDOWS = frozenset({"con", "prn", "aux", "nul"} | {f"{d}{n}" for d in ("com", "lpt") for n in "123456789¹²³"})


def safe_name(name: str, what: str = "name") -> str:
    """Return `name` if it is a valid folder name on every system."""
    if problem := _what_is_wrong(name):
        raise UsageError(
            f"{what} {one_line(repr(name), 60)} {problem}",
            hint="use letters, digits, '-', '_' and '.', at most 100 characters, e.g. user-login",
        )
    return name


def _what_is_wrong(name: str) -> str:
    if not name:
        return "is empty"
    if len(name) > _LONGEST:
        return f"is longer than {_LONGEST} characters"
    if "/" in name or "\\" in name or name.startswith("."):
        return "starts with a dot or contains a slash"
    if not _NAME.fullmatch(name):
        return "contains a character that is not allowed in a folder name"
    if name[-1] in ". ":
        return "ends with a dot or a space"
    if name.split(".")[0].lower() in _WINDOWS:
        return "is reserved on Windows"
    return ""


def plain_path(path: str, what: str) -> str:
    """Return `path` if every part is a valid file name and it can be shown on one line."""
    if clean(path) != path or "\n" in path or "\t" in path:
        problem = "contains a line break or a control character"
    elif any(len(part.encode(errors="surrogateescape")) > _LONGEST_PART for part in path.split("/")):
        problem = f"has a part of more than {_LONGEST_PART} bytes"
    else:
        return path
    raise UsageError(f"{what} {one_line(repr(path), 60)} {problem}", hint="use a path such as ralph")


def prd_number(text: str) -> int:
    """A positive integer without sign, spaces or leading zeros."""
    if not re.fullmatch(r"[1-9][0-9]{0,8}", text):
        raise UsageError(
            f"PRD number {one_line(repr(text), 60)} is not a positive integer",
            hint="use a number such as 1, for the folder .ralph/PRD-1",
        )
    return int(text)
