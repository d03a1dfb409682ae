"""Files that should be regular ones, in places where an agent could have put something else."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from ralph.core.errors import SetupError

_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
_DISK_WORDS = (*(os.strerror(number) for number in sorted(_DISK_ERRORS)), "Out of diskspace")


def read_plain(path: Path) -> bytes | None:
    """The content of a regular file; None for anything else. Does not wait for a pipe or follow a link."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor, not a path
        return stream.read() if stat.S_ISREG(os.fstat(descriptor).st_mode) else None


def is_special(path: Path) -> bool:
    """Whether the path is something other than a file, folder or link, such as a pipe."""
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode))


def special_in(folder: Path, *, deep: bool = False) -> list[Path]:
    """All special files in a folder. Only looks at names, so thousands of refs cost next to nothing."""
    found: list[Path] = []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                found += special_in(Path(entry.path), deep=True) if deep else []
            elif not entry.is_file(follow_symlinks=False) and not entry.is_symlink():
                found.append(Path(entry.path))
    return found


def is_disk_trouble(error: BaseException) -> bool:
    """Whether the machine failed, not the work: a full or failing disk, too little memory. Also as reported by git."""
    cause = error if isinstance(error, OSError) else error.__cause__
    if isinstance(cause, OSError) and cause.errno in _DISK_ERRORS:
        return True
    return not isinstance(error, OSError) and any(words in str(error) for words in _DISK_WORDS)


@contextlib.contextmanager
def disk_trouble() -> Iterator[None]:
    """Report a full disk or a missing permission as a SetupError. Also a decorator."""
    try:
        yield
    except OSError as error:
        where = path_of(error)
        raise SetupError(
            f"{where}{': ' if where else ''}{error.strerror or error}",
            hint="free up space or fix the permissions, then run again",
        ) from error


def path_of(error: OSError) -> str:
    """The file that an error is about. A write that fails does not name it; the function that called it knows it."""
    if error.filename:
        return os.fsdecode(error.filename)
    found, frame = "", error.__traceback__
    while frame is not None:  # the innermost one that has a path
        names = frame.tb_frame.f_locals
        found = next((str(value) for value in names.values() if isinstance(value, Path)), found)
        frame = frame.tb_next
    return found
