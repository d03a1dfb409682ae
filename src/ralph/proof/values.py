"""A changed file: the unit that proof looks at."""

from __future__ import annotations

from msgspec import Struct


class FileChange(Struct, frozen=True):
    """A file before and after a change. None: it does not exist there."""

    path: str
    old: bytes | None
    new: bytes | None
