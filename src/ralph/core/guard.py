"""The interface of a guard: takes the history, the limits and the time; returns a reason to stop or wait, or None."""

from __future__ import annotations

from collections.abc import Callable

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Stop, Wait

Guard = Callable[[History, Limits, float], Stop | Wait | None]
