"""The shape of a guard: what happened, the bounds and the time in; a reason to stop or wait out, or nothing."""

from __future__ import annotations

from collections.abc import Callable

from ralph.core.history import History
from ralph.core.limits import Limits
from ralph.core.moves import Stop, Wait

Guard = Callable[[History, Limits, float], Stop | Wait | None]
