"""When a process tree did nothing at all: no CPU time, no reads or writes, no new process. Linux only.

What changes in a file during such a time is the work of somebody else, even while a tool call of the agent is open.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

from ralph.core.authorship import Span

_INTERVAL = 0.5
_MOST = 10_000


class QuietTimes:
    """Watches in a thread of its own between `start` and `stop`."""

    def __init__(self, *, reports_calls: bool) -> None:
        """`reports_calls`: what the first process does besides writing is known, e.g. waiting for its model."""
        self._reports_calls = reports_calls
        self._over = threading.Event()
        self._spans: list[Span] = []
        self._thread: threading.Thread | None = None
        self._others: set[int] = set()
        """Children of the loop that are not the agent's. The loop adopts those whose parent has ended."""

    def start(self, pid: int) -> None:
        self._others = set(_children(os.getpid())) - {pid}
        if Path(f"/proc/{pid}/io").exists():
            self._thread = threading.Thread(target=self._watch, args=(pid,), name="quiet-times", daemon=True)
            self._thread.start()

    def stop(self) -> tuple[Span, ...]:
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        return tuple(self._spans)

    def _watch(self, root: int) -> None:
        before, since = self._signature(root), time.time()
        while not self._over.wait(_INTERVAL):
            now, at = self._signature(root), time.time()
            if now is None or now != before:
                before, since = now, at
            elif self._spans and self._spans[-1].start == since:
                self._spans[-1] = Span(since, at)
            elif len(self._spans) < _MOST:
                self._spans.append(Span(since, at))

    def _signature(self, root: int) -> dict[int, bytes] | None:
        """What each process below this one has done so far. None: that cannot be seen."""
        found: dict[int, bytes] = {}
        todo = [pid for pid in _children(os.getpid()) if pid not in self._others]
        try:
            while todo:
                pid = todo.pop()
                if pid in found:
                    continue
                done = Path(f"/proc/{pid}/io").read_bytes()
                if pid == root and self._reports_calls:
                    found[pid] = next((line for line in done.splitlines() if line.startswith(b"wchar")), b"")
                else:
                    times = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[11:13]
                    found[pid] = done + b" ".join(times)
                todo += _children(pid)
        except OSError:  # it has just ended
            return None
        return found


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for task in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - pathlib is slower
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_bytes().split())
    except OSError:
        return found
    return found
