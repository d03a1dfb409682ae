"""Whether files in a folder are being written, and when a process tree did nothing at all."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path

from ralph.core.authorship import Span

_INTERVAL = 0.5
_MOST_SPANS = 10_000
_MOST = 20_000


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
            elif len(self._spans) < _MOST_SPANS:
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


def stamp(folder: Path, most: int = _MOST) -> tuple[int, int]:
    """Changes when a file below was written, created or removed."""
    newest = count = 0
    for entry in _entries([folder], most):
        with contextlib.suppress(OSError):
            newest = max(newest, entry.stat(follow_symlinks=False).st_mtime_ns)
            count += 1
    return newest, count


def changed_since(folders: Iterable[Path], since: float) -> str:
    """A file below that was written, created or renamed after that time; empty: none. Compiled files do not count."""
    for entry in _entries(folders, _MOST, skip="__pycache__"):
        with contextlib.suppress(OSError):
            is_file = not entry.is_dir(follow_symlinks=False) and not entry.name.endswith(".pyc")
            if is_file and entry.stat(follow_symlinks=False).st_ctime > since:
                return entry.path
    return ""


def _entries(folders: Iterable[Path], most: int, skip: str = "") -> Iterator[os.DirEntry[str]]:
    """What is below these folders; entries nearer the top come first. Ends after the folder with number `most`."""
    count, todo = 0, deque(map(os.fspath, folders))
    while todo and count < most:
        try:
            entries = os.scandir(todo.popleft())
        except OSError:  # it has gone, or is none of ours
            continue
        with entries:
            for entry in entries:
                if entry.name == skip:
                    continue
                count += 1
                with contextlib.suppress(OSError):
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(entry.path)
                yield entry
