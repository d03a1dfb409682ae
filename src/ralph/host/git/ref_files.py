"""The refs of a repository, read from their files. Where one is not plain, git has to list them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ralph.core.lazy_pattern import lazy_pattern
from ralph.host.files import read_plain

_MOST = 2000
"""Files. Git packs refs long before."""
_OWN_OF_WORKTREES = frozenset({"bisect", "worktree", "rewritten"})
"""Folders that no checkpoint records."""
_ID = lazy_pattern(rb"(?!0+\n)([0-9a-f]{40}|[0-9a-f]{64})\n")
_SYMBOLIC = lazy_pattern(rb"ref: (refs/[^\0-\x20\x7f]+)\n")
_PART = r"(?!\.)(?:(?!\.\.|@\{|\.lock(?:/|$))[^\0-\x20\x7f~^:?*\[\\/])+(?<!\.)"
_NAME = lazy_pattern(f"refs(?:/{_PART})+")
_PACKED = lazy_pattern(rb"([0-9a-f]{40,64}) (refs/[^\0-\x20\x7f]+)|#[^\n]*|\^[0-9a-f]{40,64}")


class NotPlain(Exception):
    """A ref that git reads in its own way, or too many of them."""


def read_refs(common_dir: Path) -> dict[str, tuple[str, str]]:
    """Ref → its object, and the ref it stands for if it is symbolic. In the order of git."""
    if os.path.lexists(common_dir / "reftable"):
        raise NotPlain
    own: dict[str, str] = {}
    symbolic = {}
    for name, path in _files(common_dir / "refs", "refs"):
        data = read_plain(path) or b""
        if len(own) >= _MOST or _NAME.fullmatch(name) is None:
            raise NotPlain
        if known := _ID.fullmatch(data):
            own[name] = known[1].decode()
        elif target := _SYMBOLIC.fullmatch(data):
            symbolic[name] = os.fsdecode(target[1])
        else:
            raise NotPlain
    direct = _packed(common_dir / "packed-refs") | own  # in this order: `git pack-refs` may move one meanwhile
    if any(target not in direct or target in symbolic for target in symbolic.values()):
        raise NotPlain
    found = {name: (made, "") for name, made in direct.items()}
    found |= {name: (direct[ref], ref) for name, ref in symbolic.items()}
    return dict(sorted(found.items(), key=_by_bytes))


def _by_bytes(item: tuple[str, object]) -> bytes:
    return os.fsencode(item[0])


def _packed(path: Path) -> dict[str, str]:
    data = read_plain(path)
    if data is None:
        if os.path.lexists(path):
            raise NotPlain
        return {}
    if data and not data.endswith(b"\n"):
        raise NotPlain
    found = {}
    for line in data.split(b"\n")[:-1]:
        item = _PACKED.fullmatch(line)
        name = os.fsdecode(item[2]) if item and item[2] else ""
        if item is None or (name and _NAME.fullmatch(name) is None):
            raise NotPlain
        if name:
            found[name] = item[1].decode()
    return found


def _files(folder: Path, name: str) -> Iterator[tuple[str, Path]]:
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except OSError:
        raise NotPlain from None
    for entry in listed:
        if entry.is_symlink():
            raise NotPlain
        inner = f"{name}/{entry.name}"
        if not entry.is_dir():
            yield inner, Path(entry.path)
        elif name != "refs" or entry.name not in _OWN_OF_WORKTREES:
            yield from _files(Path(entry.path), inner)
