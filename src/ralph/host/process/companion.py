"""A process of Ralph's own that follows a run and may outlive it for a moment. A run never waits for it for long.

It is in our session, so that it is not taken for something that an agent left behind (see `tree`), and in a process
group of its own, out of reach of Ctrl-C. Its stdin is a pipe that closes when the run ends, also when it is killed.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence

_LOOK = 0.02


class Companion:
    """`python -P -m MODULE ARGUMENTS`. Raises OSError if it cannot be started."""

    def __init__(self, module: str, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", module, *arguments],
            env={name: value for name, value in env.items() if not name.startswith(("RALPH_", "_RALPH_"))},
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            process_group=0,
        )

    def release(self, patience: float, is_enough: Callable[[], bool] = lambda: False) -> int | None:
        """Tell it that the run is over, and wait until it ends, at most `patience` seconds, or until `is_enough`.
        Returns its exit code; None: it goes on by itself."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        until = time.monotonic() + patience
        while self._process.poll() is None and time.monotonic() < until and not is_enough():
            time.sleep(_LOOK)
        code = self._process.poll()
        if code is None:
            self._process.returncode = 0  # it is not ours to wait for
        return code


def outlive_terminal() -> None:
    """In the companion: neither Ctrl-C nor a closed terminal ends it."""
    for name in ("SIGINT", "SIGHUP"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)


def end_within(seconds: int) -> None:
    """In the companion: whatever hangs, it ends."""
    if hasattr(signal, "alarm"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(seconds)


def run_is_over(seconds: float) -> bool:
    """In the companion: wait that long at most for the end of the run."""
    ready = select.select([0], [], [], seconds)[0]
    return bool(ready) and not os.read(0, 1)
