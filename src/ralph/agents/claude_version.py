"""Which versions of the Claude client are known to behave as this adapter expects. Pure."""

from __future__ import annotations

import re

OLDEST = (2, 1, 300)
"""Older ones leave children behind when they are ended, and tell less about limits."""
TRIED = (2, 1)
"""The line of versions that the tests run against."""


def advice(said: str) -> str:
    """What to know about a version, or nothing. `said` is what the client calls itself."""
    numbers = re.search(r"(\d+)\.(\d+)\.(\d+)", said)
    if numbers is None:
        return f"the client does not say which version it is ({said[:40]!r}); it may behave differently"
    version = tuple(int(part) for part in numbers.groups())
    if version < OLDEST:
        return f"Claude Code {numbers[0]} is older than {'.'.join(map(str, OLDEST))}: please update it"
    if version[:2] != TRIED:
        return f"Claude Code {numbers[0]} is newer than the versions this Ralph was tried with"
    return ""
