"""Fresh story ids in the style of the ones that are there."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(.*?)([0-9]+)")


def next_id(taken: Iterable[str], first: str = "US-001") -> str:
    """The last numbered id, counted on past the highest of its kind: US-009 → US-010, 2.3 → 2.4."""
    ids = list(taken)
    numbered = [match for match in map(_NUMBERED.fullmatch, ids) if match]
    if not numbered:
        return first if first not in ids else f"{first}-2"
    prefix, digits = numbered[-1].groups()
    highest = max(int(match[2]) for match in numbered if match[1] == prefix)
    return f"{prefix}{highest + 1:0{len(digits)}}"
