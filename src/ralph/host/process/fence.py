"""Hides folders from a process and all it starts: files in them cannot be read or executed. Linux only (Landlock).

Needs no privileges. Other systems and old kernels have no such thing: `Fence.make` returns None there. The names of
hidden files stay visible, and writing is not restricted.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from subprocess import Popen
from typing import TypeVar

from ralph.host.process.enclosure import Start

T = TypeVar("T")

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_EXECUTE, _READ_FILE, _REFER = 1 << 0, 1 << 2, 1 << 13
_HANDLED = _EXECUTE | _READ_FILE | _REFER
"""`_REFER`, renaming across folders, is denied by every rule set that does not handle it."""
_OLDEST = 2
"""The version of the interface that has `_REFER`."""
_NO_NEW_PRIVILEGES = 38
_BENEATH = 1
_MOST = 20_000
"""Entries of folders on the way to a hidden one."""


def _call(number: int, *args: object) -> int:
    return int(ctypes.CDLL(None, use_errno=True).syscall(number, *args))


def is_available() -> bool:
    return sys.platform == "linux" and _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1)) >= _OLDEST


class Fence:
    """A set of rules for processes that are started inside."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def make(cls, hidden: Iterable[Path], allowed: Iterable[Path]) -> Fence | None:
        """Everything can be read except what is in `hidden`, unless it is in `allowed` too. None: not possible here."""
        if not is_available():
            return None
        attributes = struct.pack("Q", _HANDLED)
        descriptor = _call(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
        if descriptor < 0:
            return None
        closed = {Path(os.path.realpath(path)) for path in hidden}
        opened = {Path(os.path.realpath(path)) for path in allowed}
        os.set_inheritable(descriptor, False)
        fence = cls(descriptor)
        try:
            fence._allow(Path("/"), _REFER)
            for path in [*_around(closed), *opened]:
                fence._allow(path, _EXECUTE | _READ_FILE)
        except (OSError, OverflowError):
            fence.close()
            return None
        return fence

    def _allow(self, path: Path, access: int) -> None:
        try:
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:  # it is gone, or not ours to look at
            return
        try:
            rule = struct.pack("=Qi", access, folder)
            if _call(_ADD, self._descriptor, _BENEATH, rule, ctypes.c_uint32(0)):
                raise OSError(ctypes.get_errno(), "landlock_add_rule")
        finally:
            os.close(folder)

    def start(self, wanted: Start, make: Callable[[Start], Popen[bytes]]) -> Popen[bytes]:
        return self.inside(lambda: make(wanted))

    def end(self, process: Popen[bytes]) -> str:
        return ""

    def inside(self, start: Callable[[], T]) -> T:
        """Call a function that starts a process, in a thread of its own: the kernel restricts one thread and what it
        starts, for good. Unlike a `preexec_fn`, nothing of ours runs between fork and exec, where a lock that another
        thread held would never be released.
        """
        results: list[T] = []
        errors: list[BaseException] = []

        def restricted() -> None:
            try:
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0) or libc.syscall(_RESTRICT, self._descriptor, 0):
                    raise OSError(ctypes.get_errno(), "landlock_restrict_self")
                results.append(start())
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                errors.append(error)

        thread = threading.Thread(target=restricted, name="fence")
        thread.start()
        thread.join()
        if errors:
            raise errors[0]
        return results[0]

    def close(self) -> None:
        os.close(self._descriptor)


def _around(hidden: set[Path]) -> Iterator[Path]:
    """The largest folders, and files, that contain nothing hidden."""
    ways = {parent for path in hidden for parent in path.parents} - hidden
    ways = {way for way in ways if not any(parent in hidden for parent in way.parents)}
    count = 0
    for way in sorted(ways):
        with os.scandir(way) as entries:
            for entry in entries:
                count += 1
                if count > _MOST:
                    raise OverflowError
                path = Path(entry.path)
                if path not in ways and path not in hidden and not entry.is_symlink():
                    yield path
