"""New story IDs in the style of the existing ones."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"(.*?)([0-9]+)", re.DOTALL)


def next_id(taken: Iterable[str], first: str = "US-001", *, like: str = "") -> str:
    """The next numbered ID after the highest of its kind: US-009 → US-010, 2.3 → 2.4.

    Follows the style of `like` if that is numbered, else of the last numbered ID.
    """
    ids = list(taken)
    numbered = [match for match in map(_NUMBERED.fullmatch, ids) if match]
    model = _NUMBERED.fullmatch(like) or (numbered[-1] if numbered else None)
    if model is None:
        return _free(first, set(ids))
    prefix, digits = model.groups()
    highest = max((int(match[2]) for match in numbered if match[1] == prefix), default=int(digits))
    return f"{prefix}{highest + 1:0{len(digits)}}"


def _free(wanted: str, taken: set[str]) -> str:
    number = 2
    found = wanted
    while found in taken:
        found, number = f"{wanted}-{number}", number + 1
    return found
