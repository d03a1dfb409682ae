"""Copies of files in the state folder, and records of files wherever they are, for restoring what an agent changed.

Anything may be in the place of a file afterwards: another content, a link, a folder, nothing. Nothing is written
through a link that was not there before.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import BadData, SetupError
from ralph.host.files import make_folder, read_bytes, write_bytes

_LARGEST = 4_000_000
_MOST = 5_000
"""Files below one folder. More is not configuration."""


class CopyLost(SetupError):
    """A required copy is missing or damaged."""


def keep(store: Path, data: bytes, *, durable: bool = True) -> str:
    """Store a copy of `data` and return its name. `durable` survives a power cut, not only a kill."""
    name = hashlib.sha256(data).hexdigest()
    path = store / name
    if path.exists():
        os.utime(path)
        return name
    make_folder(store, private=True)
    write_bytes(path, data, mode=0o600, durable=durable)
    return name


def kept(store: Path, name: str) -> bytes:
    """The copy called `name`. A missing or damaged one is an error, never empty."""
    path = store / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CopyLost(f"could not read the copy {path}: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != name:
        raise CopyLost(f"the copy {path} is damaged", hint="remove it; its content cannot be restored")
    return data


def forget_oldest(store: Path, leave: int) -> None:
    """Remove all copies except the `leave` most recent ones."""
    if store.is_dir():
        for path in sorted(store.iterdir(), key=lambda path: path.stat().st_mtime_ns)[: -leave or None]:
            path.unlink(missing_ok=True)


class Entry(Struct, frozen=True):
    link: str | None = None
    data: bytes | None = None
    """Of the file, or of the file behind the link. None: a folder, a device, a file that is too large."""
    mode: int = 0o644


Record = dict[str, Entry]
"""By absolute path. Files that do not exist are not in it."""


def record(files: Iterable[Path], folders: Iterable[Path], skip: Collection[Path] = ()) -> Record:
    """These files, and everything below these folders except below `skip`."""
    paths = [*files, *(path for folder in folders for path in _below(folder, skip))]
    return {str(path): entry for path in paths if (entry := _entry(path)) is not None}


def _below(top: Path, skip: Collection[Path]) -> Iterator[Path]:
    if top.is_symlink() or not top.is_dir():
        yield top
    count = 0
    for folder, inner, names in os.walk(top):
        here = Path(folder)
        links = [name for name in inner if (here / name).is_symlink()]
        inner[:] = sorted(name for name in inner if name not in links and here / name not in skip)
        for name in sorted((*names, *links)):
            count += 1
            if count > _MOST:
                return
            yield here / name


def _entry(path: Path) -> Entry | None:
    try:
        mode = path.lstat().st_mode
    except OSError:
        return None
    data: bytes | None = None
    with contextlib.suppress(BadData, OSError):
        data = read_bytes(path, limit=_LARGEST)
    if not stat.S_ISLNK(mode):
        return Entry(None, data, stat.S_IMODE(mode))
    with contextlib.suppress(OSError):
        mode = path.stat().st_mode
    return Entry(os.readlink(path), data, stat.S_IMODE(mode))  # noqa: PTH115 - as it is written


def differences(before: Mapping[str, Entry], now: Mapping[str, Entry]) -> list[str]:
    """Sorted, so that a folder comes before what is in it."""
    return sorted(path for path in {*before, *now} if before.get(path) != now.get(path))


def keep_copy(path: Path, copy: Path) -> bool:
    """Save what is at `path` now as `copy`. A folder is moved away. False: there is nothing to save."""
    if (entry := _entry(path)) is None:
        return False
    make_folder(copy.parent, private=True)
    with contextlib.suppress(OSError):
        if entry.link is not None:
            copy.unlink(missing_ok=True)
            copy.symlink_to(entry.link)
        elif entry.data is not None:
            write_bytes(copy, entry.data, mode=0o600, durable=False)
        else:
            import shutil  # rare

            shutil.move(path, copy)
        return True
    return False


def restore(path: Path, before: Mapping[str, Entry], base: Path) -> None:
    """Restore one file of a record, or remove it if it is not part of it. `base`: a folder above it that is trusted."""
    entry, now = before.get(str(path)), _entry(path)
    if entry is not None:
        _clear_way(path.parent, before, base)
    with contextlib.suppress(OSError):
        if now is not None and (entry is None or now.link != entry.link or now.data is None):
            path.unlink()
        if entry is None:
            return
        if entry.link is not None and not path.is_symlink():
            path.symlink_to(entry.link)
        if entry.data is not None and _entry(path) != entry:
            write_bytes(Path(os.path.realpath(path)) if entry.link is not None else path, entry.data, mode=entry.mode)


def _clear_way(folder: Path, before: Mapping[str, Entry], base: Path) -> None:
    """Make the folders above a file real ones again, except links that were there before."""
    if folder == base or not folder.is_relative_to(base):
        return
    _clear_way(folder.parent, before, base)
    with contextlib.suppress(OSError):
        if os.path.lexists(folder) and not (folder.is_symlink() and str(folder) in before) and not _is_folder(folder):
            folder.unlink()
        folder.mkdir(exist_ok=True)


def _is_folder(path: Path) -> bool:
    return stat.S_ISDIR(path.lstat().st_mode)
