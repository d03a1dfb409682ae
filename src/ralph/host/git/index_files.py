"""The index read from its file: which paths it has. Where one is not plain, git has to read it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from msgspec import Struct

from ralph.host.files import read_plain

_LARGEST = 32 * 1024 * 1024
_VERSIONS = (2, 3)
_STAT = 40
"""Bytes before the ID of an entry."""
_ASSUME_UNCHANGED, _EXTENDED, _STAGE = 0x80, 0x40, 0x30
_SKIP_WORKTREE = 0x40
_KIND, _LINK = 26, 0xE0
"""Where the kind of an entry is, and that of a submodule."""
_REMEMBERED = 4

Signature = tuple[int, int, int, int]


class NotPlainIndex(Exception):
    """Split, sparse, compressed, damaged, or with conflicts."""


class Index(Struct, frozen=True):
    paths: frozenset[bytes] = frozenset()
    hidden: frozenset[bytes] = frozenset()
    """Those with the skip-worktree or the assume-unchanged bit: often secrets of the user."""
    links: tuple[bytes, ...] = ()
    """Submodules."""


_READ: dict[Path, tuple[Signature, bytes, Index]] = {}


def signature(path: Path) -> Signature | None:
    """Changes whenever somebody writes to the file: nobody can set the last part."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def is_valid_index(object_format: str, data: bytes) -> bool:
    """Git reads a truncated index without an error, and sees files that are not there."""
    size = hashlib.new(object_format).digest_size
    real = hashlib.new(object_format, data[:-size]).digest()
    # Git can be told not to write the check sum; then there are zeros in its place.
    return data[:4] == b"DIRC" and data[-size:] in (real, bytes(size))


def read_index(path: Path, object_format: str) -> Index:
    """Raises NotPlainIndex. A file that does not exist is an empty index."""
    now = signature(path)
    if now is None:
        return Index()
    known = _READ.pop(path, None)
    if known is None or known[0] != now:
        data = read_plain(path) if now[1] <= _LARGEST else None
        if data is None or signature(path) != now:
            raise NotPlainIndex
        digest = hashlib.sha256(data).digest()  # a checkpoint has a copy of the user's index
        same = next((index for _, other, index in _READ.values() if other == digest), None)
        known = now, digest, same or _parse(data, object_format)
    _READ[path] = known  # the last one used is the last one to go
    for old in list(_READ)[:-_REMEMBERED]:
        del _READ[old]
    return known[2]


def _parse(data: bytes, object_format: str) -> Index:
    version, count = int.from_bytes(data[4:8], "big"), int.from_bytes(data[8:12], "big")
    if not is_valid_index(object_format, data) or version not in _VERSIONS:
        raise NotPlainIndex
    width = hashlib.new(object_format).digest_size
    to_flags, to_name = _STAT + width, _STAT + width + 2
    paths, hidden, links, at = [], [], [], 12
    try:
        for _ in range(count):
            name = at + to_name
            is_hidden = False
            if flags := data[at + to_flags] & (_ASSUME_UNCHANGED | _EXTENDED | _STAGE):
                if flags & _STAGE:
                    raise NotPlainIndex
                is_hidden = bool(flags & _ASSUME_UNCHANGED)
                if flags & _EXTENDED:
                    is_hidden = is_hidden or bool(data[name] & _SKIP_WORKTREE)
                    name += 2
            end = data.index(b"\0", name)
            paths.append(data[name:end])
            if is_hidden:
                hidden.append(paths[-1])
            if data[at + _KIND] == _LINK:
                links.append(paths[-1])
            at += (end - at + 8) & ~7
    except (IndexError, ValueError):
        raise NotPlainIndex from None
    while at < len(data) - width:  # what follows: git may not ignore an extension with a small first letter
        if data[at : at + 1].islower():
            raise NotPlainIndex
        at += 8 + int.from_bytes(data[at + 4 : at + 8], "big")
    if at != len(data) - width:
        raise NotPlainIndex
    return Index(frozenset(paths), frozenset(hidden), tuple(links))
