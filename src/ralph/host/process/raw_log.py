"""The raw output of a process on disk: its beginning and its latest part, never more than the cap.

x.log          the first half of the cap
x.tail.log     what came last, up to a quarter of the cap
x.tail.1.log   what came before that, up to a quarter
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path

from ralph.host.redaction import redacted_stream

CAP = 50_000_000


class RawLog:
    """Disk errors are recorded once, in `lost`, and never disturb the process whose output it is. Secrets are replaced
    before anything is written; an unfinished line is held back for that.
    """

    def __init__(self, path: Path, cap: int = CAP) -> None:
        self._head_size = max(cap // 2, 1)
        self._tail_size = max(cap // 4, 1)
        self.path = path
        self.tail, self.older_tail = parts_after(path)
        self.total = 0
        """Bytes the process printed."""
        self.lost = ""
        """Why output is missing from disk; empty if none is. What the cap drops does not count as missing."""
        self._redacted = redacted_stream()
        self._file: FileIO | None = None
        self._room = self._head_size
        self._try(self._open_head)

    def write(self, data: bytes) -> None:
        self.total += len(data)
        if not self.lost:
            self._try(lambda: self._write(memoryview(self._redacted.feed(data))))

    @property
    def cut(self) -> str:
        """What the cap dropped, in a sentence; empty if nothing."""
        if self.lost or self.total <= self._head_size + self._tail_size:
            return ""
        tails = sum(part.stat().st_size for part in (self.older_tail, self.tail) if part.exists())
        if self.total <= self._head_size + tails:
            return ""
        kept = f"the first {self._head_size / 1e6:.0f} MB and the last {tails / 1e6:.0f} MB"
        return f"{self.path}: {self.total / 1e6:,.0f} MB of output; only {kept} are kept"

    def close(self) -> None:
        if self._file is not None:
            self._try(lambda: self._write(memoryview(self._redacted.flush())))
        if self._file is not None:
            file, self._file = self._file, None
            self._try(file.close)  # NFS reports a full disk only here

    def parts(self) -> list[Path]:
        """The existing files, oldest bytes first."""
        return [part for part in (self.path, self.older_tail, self.tail) if part.exists()]

    def __enter__(self) -> RawLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _open_head(self) -> None:
        for stale in (self.tail, self.older_tail):
            stale.unlink(missing_ok=True)
        self._file = _create(self.path)

    def _write(self, data: memoryview) -> None:
        while data and self._file is not None:
            written = self._file.write(data[: self._room]) or 0
            data = data[written:]
            self._room -= written
            if self._room == 0:
                self._rotate()

    def _rotate(self) -> None:
        if self._file is not None:
            self._file.close()
        if self.tail.exists():
            self.tail.replace(self.older_tail)
        self._file = _create(self.tail)
        self._room = self._tail_size

    def _try(self, act: Callable[[], object]) -> None:
        try:
            act()
        except (OSError, ValueError) as error:
            self.lost = f"{self.path}: raw output is missing after byte {self.total:,}: {_reason(error)}"
            if self._file is not None:
                with contextlib.suppress(OSError):
                    self._file.close()
                self._file = None


class RawTail:
    """Reads a raw log while it grows and rotates. Output dropped before it was read is skipped."""

    def __init__(self, path: Path) -> None:
        self._head = path
        self._tail, self._older = parts_after(path)
        self._file: FileIO | None = None
        self._is_head = True

    def read(self, size: int = 1 << 20) -> bytes:
        """New output, at most about this much; empty if there is none."""
        try:
            if self._file is None:
                self._file = FileIO(self._head)
            return self._file.read(size) or (self._file.read(size) if self._advance() else b"")
        except FileNotFoundError:
            return b""

    def _advance(self) -> bool:
        """Move on to the next file, if there is one."""
        assert self._file is not None
        here = os.fstat(self._file.fileno()).st_ino
        following = self._older if self._is_head and self._older.exists() else self._tail
        if not following.exists() or following.stat().st_ino == here:
            return False
        file = FileIO(following)
        self._file.close()
        self._file, self._is_head = file, False
        return True

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def parts_after(path: Path) -> tuple[Path, Path]:
    """Where the latest output goes once a raw log is full, and the part before that."""
    return path.with_name(f"{path.stem}.tail{path.suffix}"), path.with_name(f"{path.stem}.tail.1{path.suffix}")


def _create(path: Path) -> FileIO:
    # Raw output can hold secrets that nobody recognizes, so it is for the owner's eyes only.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_CLOEXEC", 0), 0o600)
    return FileIO(descriptor, "w")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
