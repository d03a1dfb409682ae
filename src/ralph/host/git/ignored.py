"""Copies of small ignored files (`.env`, a local database) for a rollback. Git has no copy of them.

Folders that a tool can make again (dependencies, caches, build results) are left out. A file that is too large is only
remembered, so that its loss can be reported.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.text import one_line
from ralph.host.file_copies import CopyLost, keep, kept
from ralph.host.files import write_bytes
from ralph.host.git.command import Call, names, printable
from ralph.host.git.repo import Repo
from ralph.host.git.shadow import Shadow, ignored_of, moments_of, store_of
from ralph.host.removal import make_folders

_DELETED = "the agent deleted a file that git ignores:"
_OVERWRITTEN = "a file that git ignores was overwritten:"
_MORE = "more files that git ignores were deleted or overwritten:"
LOSSES = (_DELETED, _OVERWRITTEN, _MORE)
"""How notices of ignored files that accepted work changed begin."""

REMADE = frozenset(
    {
        *("node_modules", "bower_components", ".venv", "venv", "vendor", ".bundle", ".yarn", "deps", "site-packages"),
        *("target", "dist", "build", "out", "_build", ".build", "coverage", "htmlcov", ".next", ".nuxt", ".svelte-kit"),
        *(".gradle", ".turbo", ".nx", ".parcel-cache", ".stack-work", "dist-newstyle", ".dart_tool", ".tox", ".nox"),
        *("__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".cache", ".eggs", ".git"),
    }
)
"""Names of folders that a tool can make again."""
_MOST_FILES = 2000
_FEW = 5


class KeepIgnored(Struct, frozen=True):
    """Limits in bytes, and which files belong to the loop."""

    largest: int
    total: int
    is_ours: Callable[[str], bool]


class _Entry(Struct, frozen=True, array_like=True):
    size: int
    modified: int
    inode: int
    mode: int
    copy: str = ""
    """The name of the copy; empty: the file was too large."""


_Manifest = dict[str, _Entry]
"""Paths are text with escapes for bytes that are no UTF-8, as Python spells file names."""


class RestoredIgnored(Struct, frozen=True):
    restored: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    """Changed or deleted, and too large for a copy, or in a place where nothing can be written."""
    aside: Path | None = None
    """The folder with the versions that were replaced."""

    def notices(self) -> list[str]:
        found = []
        if self.restored:
            where = f"; the versions found are in {self.aside}" if self.aside else ""
            found.append(f"restored ignored files: {_some(self.restored)}{where}")
        if self.lost:
            found.append(f"ignored files changed or deleted, without a copy to restore: {_some(self.lost)}")
        return found


def listing_call(shadow: Shadow) -> Call:
    return Call(shadow, ("ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"))


def keep_ignored(repo: Repo, index_file: Path, listing: bytes, before: str, wanted: KeepIgnored) -> str:
    """Copy the files that are not copied yet. Returns the name of their list. `before`: the last one."""
    known, store = _manifest(index_file, before), ignored_of(index_file)
    found: _Manifest = {}
    left = wanted.total
    for name, status in sorted(_files(repo.root, listing, wanted.is_ours), key=lambda pair: pair[1].st_size):
        entry = _Entry(status.st_size, status.st_mtime_ns, status.st_ino, stat.S_IMODE(status.st_mode))
        old = known.get(name)
        if old and old.copy and msgspec.structs.replace(old, copy="") == entry and (store / old.copy).exists():
            entry = old
        elif entry.size <= min(wanted.largest, left):
            with contextlib.suppress(OSError):
                entry = msgspec.structs.replace(entry, copy=keep(store, (repo.root / name).read_bytes(), durable=False))
        left -= entry.size if entry.copy else 0
        found[name] = entry
    _forget(store, {entry.copy for entry in found.values()})
    return keep(moments_of(index_file), msgspec.msgpack.encode(found), durable=False) if found else ""


def restore_ignored(repo: Repo, index_file: Path, name: str) -> RestoredIgnored:
    """Put back what was deleted or overwritten. A file that only grew has lost nothing and stays."""
    restored: list[str] = []
    lost: list[str] = []
    aside, has_aside = store_of(index_file), False
    for path, entry in _manifest(index_file, name).items():
        place = repo.root / path
        if _is_unchanged(place, entry):
            continue
        now = _content(place)
        before = _copy(ignored_of(index_file), entry.copy)
        if before is None:
            lost.append(path)
        elif now is None or not now.startswith(before):
            if now is not None:
                keep(aside, now)
                has_aside = True
            (restored if _write(repo.root, path, before, entry.mode) else lost).append(path)
    shown = [[printable(os.fsencode(path)) for path in paths] for paths in (restored, lost)]
    return RestoredIgnored(tuple(shown[0]), tuple(shown[1]), aside if has_aside else None)


def losses(repo: Repo, index_file: Path, name: str, since: int) -> list[str]:
    """Notices of what accepted work deleted or overwrote: it stays so, and the earlier version is kept.

    A file that was written after `since` (nanoseconds), that is in this run, is only reported when it is deleted: tests
    write some of them again and again.
    """
    aside, found = store_of(index_file), []
    for path, entry in _manifest(index_file, name).items():
        place = repo.root / path
        is_deleted = not os.path.lexists(place)
        if not is_deleted and (entry.modified >= since or _is_unchanged(place, entry)):
            continue
        before = _copy(ignored_of(index_file), entry.copy)
        if not is_deleted and (before is None or (_content(place) or b"").startswith(before)):
            continue  # a large file may be a database at work; one that only grew has lost nothing
        where = "it was too large for a copy" if before is None else f"a copy is {aside / keep(aside, before)}"
        what = _DELETED if is_deleted else _OVERWRITTEN
        found.append(f"{what} {one_line(printable(os.fsencode(path)), 100)}; {where}")
    found.sort(key=lambda text: not text.startswith(_DELETED))
    if len(found) > _FEW:
        found[_FEW:] = [f"{_MORE} {len(found) - _FEW}; copies are in {aside}"]
    return found


def _files(root: Path, listing: bytes, is_ours: Callable[[str], bool]) -> Iterator[tuple[str, os.stat_result]]:
    count = 0
    for item in names(listing):
        for path in _walk(root, os.fsdecode(item)):
            if is_ours(path):
                continue
            with contextlib.suppress(OSError):
                status = (root / path).lstat()
                if stat.S_ISREG(status.st_mode) and os.access(root / path, os.R_OK):
                    yield path, status
                    count += 1
            if count >= _MOST_FILES:
                return


def _walk(root: Path, item: str) -> Iterator[str]:
    if REMADE.intersection(item.rstrip("/").split("/")):
        return
    if not item.endswith("/"):
        yield item
        return
    for where, folders, files in os.walk(root / item):
        folders[:] = [] if ".git" in folders or ".git" in files else [f for f in sorted(folders) if f not in REMADE]
        if ".git" not in files:
            yield from (os.path.relpath(os.path.join(where, file), root) for file in sorted(files))  # noqa: PTH118


def _manifest(index_file: Path, name: str) -> _Manifest:
    if not name:
        return {}
    try:
        return msgspec.msgpack.decode(kept(moments_of(index_file), name), type=_Manifest)
    except (CopyLost, msgspec.DecodeError):
        return {}


def _is_unchanged(place: Path, entry: _Entry) -> bool:
    try:
        now = place.lstat()
    except OSError:
        return False
    return stat.S_ISREG(now.st_mode) and (now.st_size, now.st_mtime_ns) == (entry.size, entry.modified)


def _content(place: Path) -> bytes | None:
    try:
        return place.read_bytes() if place.is_file() and not place.is_symlink() else None
    except OSError:
        return None


def _copy(store: Path, name: str) -> bytes | None:
    try:
        return kept(store, name) if name else None
    except CopyLost:
        return None


def _write(root: Path, path: str, data: bytes, mode: int) -> bool:
    """Never through a link, and never in the place of a folder."""
    place = root / path
    if parent := os.fsencode(path).rpartition(b"/")[0]:
        make_folders(root, parent)
    if Path(os.path.realpath(place.parent)) != place.parent or place.is_dir():
        return False
    try:
        if place.is_symlink():
            place.unlink()
        write_bytes(place, data, mode=mode)
    except OSError:
        return False
    return True


def _forget(store: Path, needed: set[str]) -> None:
    with contextlib.suppress(OSError):
        for path in store.iterdir():
            if path.name not in needed:
                path.unlink(missing_ok=True)


def _some(paths: tuple[str, ...]) -> str:
    more = f" and {len(paths) - _FEW} more" if len(paths) > _FEW else ""
    return ", ".join(paths[:_FEW]) + more
