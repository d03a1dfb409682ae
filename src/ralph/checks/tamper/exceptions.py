"""Which errors a test accepts: is one set of classes wider than another?"""

from __future__ import annotations

import builtins
from collections.abc import Sequence

from ralph.checks.tamper.grading import BROAD


def is_broader(new: Sequence[str], old: Sequence[str]) -> bool:
    """Everything that was accepted still is, and more."""
    if set(new) == set(old):
        return False
    return all(any(_covers(wide, narrow) for wide in new) for narrow in old)


def _covers(wide: str, narrow: str) -> bool:
    if wide == narrow:
        return True
    if wide in BROAD:
        return narrow not in BROAD or wide in ("BaseException", "Throwable")
    one, two = getattr(builtins, wide, None), getattr(builtins, narrow, None)
    if isinstance(one, type) and isinstance(two, type) and issubclass(one, BaseException):
        return issubclass(two, one)
    return False
