"""What a new agent process does before it starts its program: it is tied to this process, and limited.

Linux ends it with SIGKILL when the thread that started it ends, however that happens; so start and supervise an agent
in the same thread. `host.watchdog` ends what the agent itself started, and does so on other systems, too.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable

from msgspec import Struct

from ralph.host.process import table as ptable

_PR_SET_PDEATHSIG = 1
_ORPHANED = 137


class Allowance(Struct, frozen=True):
    """What an agent and everything it starts may use; 0: no limit."""

    processes: int = 0
    memory: int = 0
    """Bytes, of all its processes together where the system reports that."""
    file_size: int = 0
    """Bytes of one file."""


UNLIMITED = Allowance()


def before_start(allowance: Allowance) -> Callable[[], None]:
    """The function to call in the child. All that needs memory or an import happens here, before the fork."""
    import resource

    parent, limits = os.getpid(), _limits(allowance)
    tie = _death_signal()

    def enter() -> None:
        if tie is not None:
            tie()
            if os.getppid() != parent:  # it ended before the signal was set
                os._exit(_ORPHANED)
        for which, value in limits:
            resource.setrlimit(which, (value, value))

    return enter


def _death_signal() -> Callable[[], object] | None:
    if sys.platform != "linux":
        return None
    import ctypes

    try:
        prctl = ctypes.CDLL(None).prctl
    except (OSError, AttributeError):
        return None
    return lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _limits(allowance: Allowance) -> list[tuple[int, int]]:
    """The kernel's own limits. Each holds for one process, except the number of processes, which is the user's."""
    import resource

    wanted = []
    if allowance.processes and sys.platform == "linux":
        wanted.append((resource.RLIMIT_NPROC, ptable.threads_of_user() + allowance.processes))
    if allowance.memory:
        wanted.append((resource.RLIMIT_DATA, allowance.memory))  # clients reserve far more addresses than they use
    if allowance.file_size:
        wanted.append((resource.RLIMIT_FSIZE, allowance.file_size))
    hard = {which: resource.getrlimit(which)[1] for which, _ in wanted}
    return [(n, value if hard[n] == resource.RLIM_INFINITY else min(value, hard[n])) for n, value in wanted]
