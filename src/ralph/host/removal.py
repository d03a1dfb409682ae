"""Remove files and change permissions below a folder: never through a link, never above the folder."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

_FLAGS = (getattr(os, name, 0) for name in ("O_DIRECTORY", "O_NOFOLLOW", "O_CLOEXEC"))  # Windows has none of them
_OPEN_FOLDER = os.O_RDONLY | sum(_FLAGS)


@contextlib.contextmanager
def parent_of(root: Path, path: bytes) -> Iterator[tuple[int, bytes]]:
    """A descriptor of the folder that holds `path`, and the last name. Every folder on the way is a real one."""
    *folders, name = path.split(b"/")
    if name in (b"", b".", b"..") or b".." in folders:
        raise ValueError(f"not a path inside the folder: {path!r}")
    current = os.open(root, _OPEN_FOLDER)
    try:
        for folder in folders:
            inner = _open_inner(current, folder)
            os.close(current)
            current = inner
        yield current, name
    finally:
        os.close(current)


def _open_inner(parent: int, name: bytes) -> int:
    try:
        return os.open(name, _OPEN_FOLDER, dir_fd=parent)
    except PermissionError:  # an agent may have taken away its own right to look into it
        os.chmod(name, 0o700, dir_fd=parent)
        return os.open(name, _OPEN_FOLDER, dir_fd=parent)


def is_reached_directly(root: Path, target: Path) -> bool:
    """Whether neither `target` nor a folder on the way to it from `root` is a link."""
    inner = target.relative_to(root).parts
    return not any(root.joinpath(*inner[: end + 1]).is_symlink() for end in range(len(inner)))


def remove_file(root: Path, path: bytes) -> bool:
    """Remove a file or link. False if that fails; a missing one counts as removed."""
    try:
        with parent_of(root, path) as (folder, name):
            try:
                os.unlink(name, dir_fd=folder)
            except PermissionError:
                os.fchmod(folder, stat.S_IMODE(os.fstat(folder).st_mode) | stat.S_IRWXU)
                os.unlink(name, dir_fd=folder)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return True


def is_file(root: Path, path: bytes) -> bool:
    """Whether a file or link is at `path`, and not behind another link."""
    mode = _mode(root, path)
    return stat.S_ISREG(mode) or stat.S_ISLNK(mode)


def is_folder(root: Path, path: bytes) -> bool:
    """Whether a folder is at `path`, and not behind a link."""
    return stat.S_ISDIR(_mode(root, path))


def _mode(root: Path, path: bytes) -> int:
    try:
        with parent_of(root, path) as (folder, name):
            return os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
    except OSError:
        return 0


def set_permissions(root: Path, path: bytes, mode: int) -> None:
    with contextlib.suppress(OSError), parent_of(root, path) as (folder, name):
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.fchmod(descriptor, mode)
        finally:
            os.close(descriptor)


def remove_empty_folders(root: Path, path: bytes, stays: Callable[[bytes], bool]) -> None:
    """Remove the folder `path` if it is empty, then the one above it, up to the first that `stays`."""
    while path and not stays(path):
        try:
            with parent_of(root, path) as (folder, name):
                os.rmdir(name, dir_fd=folder)
        except OSError:
            return
        path = path.rpartition(b"/")[0]


def make_folders(root: Path, path: bytes) -> None:
    """Create a folder and its parents. If something else has the name, it stays."""
    parts = path.split(b"/")
    for count in range(1, len(parts) + 1):
        with contextlib.suppress(OSError), parent_of(root, b"/".join(parts[:count])) as (folder, name):
            os.mkdir(name, dir_fd=folder)


def remove_tree(path: Path) -> bool:
    """Remove whatever is at `path`; the target of a link stays."""
    import shutil  # 5 ms, and most runs never need it

    for last_try in (False, True):
        try:
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
        except PermissionError:
            if last_try:
                return False
            _open_one(os.fsencode(path.parent), b"", os.geteuid(), [])
            if path.is_dir() and not path.is_symlink():
                make_readable(path, frozenset())
        except OSError:
            return False
        else:
            return True
    return False


def make_readable(root: Path, skip: frozenset[bytes]) -> list[bytes]:
    """Restore the owner's permissions on unreadable files and folders. `skip` were unreadable before.

    Only our own files: another user's stay as they are.
    """
    opened: list[bytes] = []
    me = os.geteuid()
    base = os.fsencode(root)
    _open_one(base, b"", me, opened)
    for where, folders, files in os.walk(base, followlinks=False):
        inner = b"" if where == base else os.path.relpath(where, base) + b"/"
        folders[:] = [f for f in folders if inner + f not in skip]
        for name in (*folders, *files):
            if inner + name not in skip:
                _open_one(os.path.join(where, name), inner + name, me, opened)  # noqa: PTH118 - bytes
    return opened


def _open_one(path: bytes, name: bytes, me: int, opened: list[bytes]) -> None:
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        needed = stat.S_IRWXU if stat.S_ISDIR(found.st_mode) else stat.S_IRUSR
        if stat.S_ISLNK(found.st_mode) or found.st_uid != me or found.st_mode & needed == needed:
            return
        os.chmod(path, stat.S_IMODE(found.st_mode) | needed)  # noqa: PTH101 - bytes
        opened.append(name)
