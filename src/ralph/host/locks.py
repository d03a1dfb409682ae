"""A lock with one owner at a time. The kernel releases it when the owner ends, however that happens."""

from __future__ import annotations

import contextlib
import errno
import os
import platform
import sys
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import LockHeld, SetupError
from ralph.core.text import one_line
from ralph.host.files import make_folder, open_regular
from ralph.host.process import tree
from ralph.host.process.table import ProcessId

_PATIENCE = 0.3
"""Seconds to retry: another process may be testing the lock, or its owner may be about to end."""
_MOVES = 50
_LARGEST = 64 * 1024
_HELD: set[int] = set()
"""Descriptors of the locks this process holds, which its forks close."""
_watching_forks = False


class Owner(Struct, frozen=True):
    pid: int
    start: str
    host: str
    run: str
    since: str
    """ISO 8601, UTC."""

    @classmethod
    def here(cls, run: str, now: float | None = None) -> Owner:
        """This process."""
        with contextlib.suppress(SetupError):
            if me := tree.identify(os.getpid()):
                return cls(me.pid, me.start, _host(), run, _iso(now))
        return cls(os.getpid(), "", _host(), run, _iso(now))

    @property
    def is_alive(self) -> bool | None:
        """None: cannot be determined from here."""
        return is_alive(self.host, self.pid, self.start) if self.start else None


def is_alive(host: str, pid: int, start: str) -> bool | None:
    """Whether a recorded process still runs. None: it is on another machine, or there is no process table."""
    if host != _host():
        return None
    try:
        return tree.is_alive(ProcessId(pid, start))
    except SetupError:
        return None


class Lock:
    """`with Lock(path).held_by(Owner.here(run)): …`. The file stays; it names the owner."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor: int | None = None
        self._pid = 0

    def acquire(self, owner: Owner) -> None:
        """Take the lock, or raise LockHeld with its owner."""
        if self._descriptor is not None:
            raise LockHeld(f"this process already holds {self.path}")
        make_folder(self.path.parent, private=True)
        self._descriptor, self._pid = self._take(), os.getpid()
        _HELD.add(self._descriptor)
        _close_in_forks()
        self._write(owner)

    def release(self) -> None:
        if self._descriptor is None:
            return
        descriptor, self._descriptor = self._descriptor, None
        if self._pid != os.getpid():  # in a fork: the lock is our parent's, and the number may be another file's by now
            return
        _HELD.discard(descriptor)
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, 0)
        _unlock(descriptor)
        os.close(descriptor)

    def held_by(self, owner: Owner) -> Lock:
        self.acquire(owner)
        return self

    def __enter__(self) -> Lock:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def owner(self) -> Owner | None:
        """The owner last written to the file. It may have ended: only `acquire` tells who holds the lock."""
        try:
            descriptor = open_regular(self.path)
        except OSError:
            return None
        try:
            return msgspec.json.decode(os.read(descriptor, _LARGEST), type=Owner)
        except (OSError, msgspec.DecodeError):
            return None
        finally:
            os.close(descriptor)

    def is_held(self) -> bool:
        """Whether the lock is held now. Does not take it, and does not make another process fail to."""
        try:
            descriptor = open_regular(self.path, os.O_RDWR)
        except OSError:
            return False
        try:
            return not _try_lock(descriptor, shared=True)
        except OSError:
            return False
        finally:
            os.close(descriptor)

    def _take(self) -> int:
        deadline = time.monotonic() + _PATIENCE
        for _ in range(_MOVES):
            descriptor = self._open()
            kept = False
            try:
                while not _try_lock(descriptor):
                    if time.monotonic() > deadline:
                        raise self._held()
                    time.sleep(0.02)
                # The file may have been removed or replaced between the two: then our lock is on a hidden file.
                kept = _is_same_file(descriptor, self.path)
                if kept:
                    return descriptor
            except OSError as error:
                raise SetupError(
                    f"could not lock {self.path}: {error.strerror}",
                    hint="set RALPH_STATE_HOME to a folder on a local disk",
                ) from None
            finally:
                if not kept:
                    os.close(descriptor)
        raise SetupError(f"{self.path} keeps being replaced while it is being locked")

    def _open(self) -> int:
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        try:
            return open_regular(self.path, flags)
        except OSError as error:
            reason = "it is a link" if error.errno == errno.ELOOP else error.strerror
            raise SetupError(
                f"could not open the lock file {self.path}: {reason}",
                hint="make that folder writable, or choose another with RALPH_STATE_HOME",
            ) from None

    def _write(self, owner: Owner) -> None:
        # In place: a rename would leave a file that is not locked. A full disk costs the name, not the lock.
        assert self._descriptor is not None
        with contextlib.suppress(OSError):
            data = msgspec.json.encode(owner) + b"\n"
            os.ftruncate(self._descriptor, 0)
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            os.write(self._descriptor, data)

    def _held(self) -> LockHeld:
        owner = self.owner()
        if owner is None:
            return LockHeld(
                f"{self.path} is locked by another process, which did not record its name",
                hint="wait until it ends; that releases the lock",
            )
        run, host = one_line(owner.run, 80), one_line(owner.host, 80)
        where = "" if owner.host == _host() else f" on {host}"
        who = f"lock held since {one_line(owner.since, 40)} by run {run} (pid {owner.pid}{where})"
        if owner.is_alive is False:
            return LockHeld(
                f"{who}; that process has ended, but a child process still holds the lock",
                hint=f"`fuser {self.path}` shows which; the lock is released when it ends",
            )
        return LockHeld(who, hint=f"wait until it ends, or stop it with `ralph stop`{where}")


def _is_same_file(descriptor: int, path: Path) -> bool:
    try:
        mine, there = os.fstat(descriptor), path.stat()
    except FileNotFoundError:
        return False
    return (mine.st_dev, mine.st_ino) == (there.st_dev, there.st_ino)


def _host() -> str:
    return platform.node()


def _iso(now: float | None) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))


def _close_in_forks() -> None:
    """Close inherited locks in forks, which would keep them alive. An exec closes them automatically."""
    global _watching_forks
    if not _watching_forks and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_drop_inherited)
        _watching_forks = True


def _drop_inherited() -> None:
    while _HELD:
        with contextlib.suppress(OSError):
            os.close(_HELD.pop())


if sys.platform == "win32":
    import msvcrt

    # Locked bytes cannot be read on Windows, so the one that is locked is far behind the text.
    _FAR = 1 << 30

    def _try_lock(descriptor: int, shared: bool = False) -> bool:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        if shared:
            _unlock(descriptor)
        return True

    def _unlock(descriptor: int) -> None:
        os.lseek(descriptor, _FAR, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try_lock(descriptor: int, shared: bool = False) -> bool:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise
        return True

    def _unlock(descriptor: int) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)
