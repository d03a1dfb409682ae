"""Which versions of the Claude client are known to behave as this adapter expects. Pure."""

from __future__ import annotations

import re

OLDEST = (2, 1, 300)
"""Older ones leave children behind when stopped, and report less about limits."""
TRIED = (2, 1)
"""The release line that the tests run against."""


def advice(said: str) -> str:
    """A warning about a version, or nothing. `said` is the client's version string."""
    numbers = re.search(r"(\d+)\.(\d+)\.(\d+)", said)
    if numbers is None:
        return f"unknown client version ({said[:40]!r}); it may behave differently"
    version = tuple(int(part) for part in numbers.groups())
    if version < OLDEST:
        return f"Claude Code {numbers[0]} is older than {'.'.join(map(str, OLDEST))}; update it"
    if version[:2] != TRIED:
        return f"Claude Code {numbers[0]} is newer than the versions this Ralph was tested with"
    return ""
