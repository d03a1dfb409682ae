"""The only way sinks write to the workspace. Obstacles are recorded and never disturb the run.

An agent can replace these files with anything, so nothing is written through a link of any kind: one that leaves the
workspace would make Ralph write outside it, and one to a hook in `.git` would turn a log into a program.
"""

from __future__ import annotations

import errno
import glob
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ralph.core.errors import BadData, RalphError
from ralph.core.text import one_line
from ralph.host.files import read_bytes, write_bytes
from ralph.host.redaction import redact

_FLAGS = (
    os.O_RDWR
    | os.O_CREAT
    | os.O_APPEND
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_CLOEXEC", 0)
)
_LOOK_BACK = 16 * 1024
"""Bytes at the end of a file that are searched for an entry before it is written."""
_LARGEST = 8 * 1024 * 1024


class Refused(RalphError):
    """Something else is in the place of a file."""


class WorkspaceFiles:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._failures: dict[str, str] = {}
        self._replaced: set[Path] = set()
        self.written: set[Path] = set()
        """What the sinks of this run wrote, and did not remove again."""
        self.is_muted = False
        """While old records are replayed, nothing is written."""
        self.is_retelling = False
        """While the last record is replayed, which may have been written before: an existing entry is not written
        again.
        """

    @property
    def failures(self) -> tuple[str, ...]:
        """Sentences, one for each file."""
        return tuple(self._failures.values())

    def append(self, path: Path, text: str, *, header: str = "", limit: int | None = None) -> None:
        """Append an entry in one write, all or nothing; `header` comes first in a new or empty file.

        A file that would grow past `limit` bytes is renamed to `NAME.1`, replacing the previous one.
        """
        self._try(path, lambda: self._append(path, _encode(text), _encode(header), limit))

    def read(self, path: Path) -> str:
        """The file's text; empty if it does not exist or is not a file Ralph could write."""
        try:
            if self._enter(path.parent, make=False):
                _refuse_unless_file(path)
                return read_bytes(path, within=self._root, limit=_LARGEST).decode("utf-8", "replace")
        except (BadData, Refused, OSError):
            pass
        return ""

    def replace(self, path: Path, data: bytes) -> None:
        self._replaced.add(path)
        self._try(path, lambda: self._replace(path, data))

    def remove(self, path: Path) -> None:
        self._try(path, lambda: self._remove(path))

    def sweep(self) -> None:
        """Remove the temporary files that a kill during `replace` left behind."""
        for path in sorted(self._replaced):
            self._try(path, partial(self._sweep, path))

    def note(self, what: str, why: str) -> None:
        """Record a failure, only the first for each file."""
        self._failures.setdefault(what, f"{what} could not be written: {why}")

    def _try(self, path: Path, action: Callable[[], None]) -> None:
        if self.is_muted:
            return
        try:
            action()
            if path.exists():
                self.written.add(path)
            else:
                self.written.discard(path)
        except Refused as error:
            self.note(self._name(path), error.message)
        except OSError as error:
            self.note(self._name(path), _reason(error))

    def _append(self, path: Path, entry: bytes, header: bytes, limit: int | None) -> None:
        self._enter(path.parent, make=True)
        entry = redact(entry)
        if not _add(path, entry, header, limit, once=self.is_retelling):
            os.replace(path, f"{path}.1")  # noqa: PTH105 - one spelling for both arguments
            _add(path, entry, header, None, once=False)

    def _replace(self, path: Path, data: bytes) -> None:
        self._enter(path.parent, make=True)
        _refuse_unless_file(path)
        write_bytes(path, redact(data), durable=False)  # the journal is; this can be made from it again

    def _remove(self, path: Path) -> None:
        if not self._enter(path.parent, make=False):
            return
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            return
        if stat.S_ISDIR(mode):
            raise Refused("a folder is in its place")
        path.unlink(missing_ok=True)

    def _sweep(self, path: Path) -> None:
        if self._enter(path.parent, make=False):
            for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
                self._remove(left)

    def _enter(self, folder: Path, *, make: bool) -> bool:
        """Walk down from the workspace through real folders only. Returns whether the folder exists."""
        current = self._root
        if not folder.is_relative_to(current) or ".." in folder.parts:
            raise Refused("it is outside the workspace")
        if not stat.S_ISDIR(current.lstat().st_mode):
            raise Refused("the workspace is no longer a folder")
        for part in folder.relative_to(current).parts:
            current /= part
            try:
                mode = current.lstat().st_mode
            except FileNotFoundError:
                if not make:
                    return False
                current.mkdir()
                continue
            if not stat.S_ISDIR(mode):
                what = "a link" if stat.S_ISLNK(mode) else "not a folder"
                raise Refused(f"{self._name(current)} is {what}")
        return True

    def _name(self, path: Path) -> str:
        return one_line(os.path.relpath(path, self._root), 200)


def _encode(text: str) -> bytes:
    return text.encode("utf-8", "replace")


def _add(path: Path, entry: bytes, header: bytes, limit: int | None, *, once: bool) -> bool:
    """Returns False if the file would exceed its limit. `once`: skip an entry that is already there."""
    descriptor = os.open(path, _FLAGS, 0o666)
    try:
        size = _size_of_own_file(descriptor)
        tail = _tail(descriptor, size, len(entry) + _LOOK_BACK)
        new = b"" if once and entry in tail else entry
        if new and limit is not None and size and size + len(new) > limit:
            return False
        if new and tail and not tail.endswith(b"\n"):
            new = b"\n" + new
        _write(descriptor, new if size else header + new, size)
    finally:
        os.close(descriptor)
    return True


def _size_of_own_file(descriptor: int) -> int:
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        raise Refused("it is not a regular file")
    if found.st_nlink > 1:  # a hard link is a way around every check of the path
        raise Refused("the file has another hard link")
    return found.st_size


def _refuse_unless_file(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISREG(mode):
        raise Refused("it is a link" if stat.S_ISLNK(mode) else "it is not a regular file")


def _tail(descriptor: int, size: int, length: int) -> bytes:
    os.lseek(descriptor, max(size - length, 0), os.SEEK_SET)
    return os.read(descriptor, length)


def _write(descriptor: int, data: bytes, size: int) -> None:
    """Write all of the data or none of it: half an entry would run into the next one."""
    if not data:
        return
    try:
        if os.write(descriptor, data) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.ftruncate(descriptor, size)
        raise


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it is a link"
    if error.errno == errno.EISDIR:
        return "a folder is in its place"
    return error.strerror or str(error)
