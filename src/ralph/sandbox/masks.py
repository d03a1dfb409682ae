"""Files that a read-only view of the system would still give away: sockets of services, and private files of root.

A connection to a unix socket needs no write access to the file system, so a read-only mount does not prevent it. And
root without capabilities still owns its files: `/etc/shadow` can be read.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from msgspec import Struct

_WRITABLE_BY_ROOT = ("sys", "sysrq-trigger", "fs", "acpi", "mtrr", "driver", "scsi", "dynamic_debug")
"""In /proc. The kernel lets user ID 0 write there without any capability, to `core_pattern` for instance. bubblewrap
itself takes care of `irq` and `bus`."""
_FILES = ("/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/sched_debug", "/proc/timer_list")
_FOLDERS = (
    "/sys/firmware",
    "/sys/fs/bpf",
    "/sys/fs/pstore",
    "/sys/kernel/debug",
    "/sys/kernel/security",
    "/sys/kernel/tracing",
    "/var/mail",
    "/var/spool/mail",
    "/var/spool/cron",
    "/var/spool/at",
    "/lost+found",
)
"""With nothing for an agent in them, whatever user runs it."""
_DEEP = {"/": 1, "/boot": 1, "/etc": 3, "/var": 3, "/opt": 2, "/srv": 2, "/usr/local/etc": 2, "/mnt": 2, "/media": 2}
"""Folders that are searched for private files, and how deep."""
_NEEDED = frozenset({"/bin", "/etc", "/gnu", "/lib", "/lib32", "/lib64", "/nix", "/opt", "/sbin", "/usr", "/var"})
"""Never hidden as a whole, whatever their mode is: nothing would start."""
_HIDDEN_ANYWAY = frozenset({"/dev", "/home", "/proc", "/root", "/run", "/sys", "/tmp", "/lost+found"})
_MOST_ENTRIES = 20_000
_MOST_SECONDS = 1.0
_MOST_SOCKETS = 500
_ACCEPTS = 0x10000
_DATAGRAM = 2


@lru_cache
def read_only() -> tuple[str, ...]:
    """Files and folders in /proc that must not be written to. The mode keeps a normal user from it."""
    paths = [f"/proc/{name}" for name in _WRITABLE_BY_ROOT] if os.geteuid() == 0 else []
    return tuple(path for path in paths if Path(path).exists())


def sockets() -> tuple[Path, ...]:
    """The unix sockets of this machine's services that have a path and can be connected to."""
    try:
        lines = Path("/proc/net/unix").read_bytes().splitlines()[1:]
    except OSError:
        return ()
    paths: dict[Path, None] = {}
    for line in lines:
        fields = line.split(None, 7)
        if len(fields) < 8 or not fields[7].startswith(b"/"):
            continue
        if int(fields[3], 16) & _ACCEPTS or int(fields[4], 16) == _DATAGRAM:
            paths[Path(os.fsdecode(fields[7]))] = None
    return tuple(path for path in list(paths)[:_MOST_SOCKETS] if _is_socket(path))


def _is_socket(path: Path) -> bool:
    try:
        return stat.S_ISSOCK(path.stat().st_mode)
    except OSError:
        return False


class Private(Struct, frozen=True):
    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


@lru_cache
def private() -> Private:
    """What can be read only because of who we are, and is not empty. Searched once."""
    paths = {*filter(_is_readable, (*_FILES, *_FOLDERS)), *(_of_root() if os.geteuid() == 0 else ())}
    real = {os.path.realpath(path) for path in paths}
    folders = {path for path in real if Path(path).is_dir()}
    return Private(tuple(sorted(real - folders)), tuple(sorted(folders)))


def _is_readable(path: str) -> bool:
    return os.access(path, os.R_OK) and not _is_empty_folder(path)


def _is_empty_folder(path: str) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is None
    except OSError:
        return False


def _of_root() -> Iterator[str]:
    """Files and folders of root that others cannot read."""
    groups = frozenset({os.getegid(), *os.getgroups()})
    deadline = time.monotonic() + _MOST_SECONDS
    seen = 0
    for root, depth in _DEEP.items():
        for path in _search([root], depth, groups):
            seen += 1
            if path:
                yield path
            if seen > _MOST_ENTRIES or time.monotonic() > deadline:
                return


def _search(folders: Iterable[str], depth: int, groups: frozenset[int]) -> Iterator[str]:
    """Each private file, and an empty string for each other one."""
    for folder in folders:
        inner = []
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.path in _HIDDEN_ANYWAY:
                        continue
                    status = entry.stat(follow_symlinks=False)
                    is_folder = stat.S_ISDIR(status.st_mode)
                    if _is_private(status, groups) and entry.path not in _NEEDED:
                        is_full = is_folder and not _is_empty_folder(entry.path)
                        yield entry.path if is_full or (status.st_size and stat.S_ISREG(status.st_mode)) else ""
                        continue
                    if is_folder:
                        inner.append(entry.path)
                    yield ""
        except OSError:
            continue
        if depth > 1:
            yield from _search(inner, depth - 1, groups)


def _is_private(status: os.stat_result, groups: frozenset[int]) -> bool:
    """Whether the mode gives us, owner or group, what it does not give others."""
    mode = status.st_mode
    needed = 0o5 if stat.S_ISDIR(mode) else 0o4
    if mode & needed == needed:
        return False
    return (status.st_uid == os.geteuid() and bool(mode & 0o400)) or (status.st_gid in groups and bool(mode & 0o040))
