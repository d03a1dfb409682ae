"""Read files written by others, and write files so that a crash leaves the old or the new one, never half."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from ralph.core.errors import BadData, SetupError
from ralph.core.problems import Place

LARGEST_PLAN = 64 * 1024 * 1024
_DISK_ERRORS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
_DISK_WORDS = (*(os.strerror(number) for number in sorted(_DISK_ERRORS)), "Out of diskspace")


def read_bytes(path: Path, *, within: Path | None = None, limit: int = LARGEST_PLAN) -> bytes:
    """The content of a regular file.

    A FIFO, a device, a link that points outside `within`, or a file over `limit` bytes is refused before
    anything is read: opening must neither hang nor fill the memory.
    """
    name = str(path)
    if within is not None and not _is_within(path, within):
        raise BadData(
            f"{name} is a link that points outside {within}",
            hint="replace the link with the file itself, or work in the folder it points to",
        )
    try:
        descriptor = open_regular(path)
    except FileNotFoundError:
        raise BadData("the file does not exist", where=Place(file=name)) from None
    except NotRegular:
        hint = "move it away, then restore the file, for example with `git restore`"
        raise BadData("not a regular file", where=Place(file=name), hint=hint) from None
    except OSError as error:
        raise BadData(f"could not open the file: {error.strerror}", where=Place(file=name)) from None
    with open(descriptor, "rb") as stream:  # noqa: PTH123 - a descriptor, not a path
        size = os.fstat(descriptor).st_size
        if size > limit:
            raise BadData(
                f"the file has {size:,} bytes; the limit is {limit:,}",
                where=Place(file=name),
                hint="split it, or remove what is not needed",
            )
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise BadData(f"the file grew past {limit:,} bytes while being read", where=Place(file=name))
    return data


class NotRegular(OSError):
    """A FIFO, a socket, a device or a folder where a file should be."""

    def __init__(self, path: Path) -> None:
        super().__init__(errno.ENXIO, "not a regular file", str(path))


def open_regular(path: Path, flags: int = os.O_RDONLY) -> int:
    """A descriptor of a regular file. Never waits, as opening a FIFO would, and refuses everything else at once."""
    waiting = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0)
    try:
        descriptor = os.open(path, flags | waiting, 0o600)
    except OSError as error:
        if error.errno in (errno.ENXIO, errno.EISDIR, errno.ENODEV, errno.EOPNOTSUPP):  # a FIFO nobody reads, a socket
            raise NotRegular(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotRegular(path)
    return descriptor


def open_state(path: Path, mode: Literal["rb", "r+b"] = "rb") -> BinaryIO:
    """`path.open(mode)` for a file that an agent or a crash may have replaced with something else. Raises OSError."""
    return open(open_regular(path, os.O_RDWR if mode == "r+b" else os.O_RDONLY), mode)


def read_state(path: Path) -> bytes:
    """`path.read_bytes()` for such a file. One over the limit is refused, too. Raises OSError."""
    with open_state(path) as stream:
        if os.fstat(stream.fileno()).st_size > LARGEST_PLAN:
            raise OSError(errno.EFBIG, f"larger than {LARGEST_PLAN:,} bytes", str(path))
        return stream.read(LARGEST_PLAN)


def _is_within(path: Path, folder: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))


def write_bytes(
    path: Path,
    data: bytes,
    *,
    mode: int | None = None,
    durable: bool = True,
    check: Callable[[], object] | None = None,
) -> None:
    """Replace a file as one step: temporary file beside it, fsync, rename, fsync of the folder.

    A link is followed, so that it stays a link; an existing file keeps its permissions. Without `durable` it is still
    atomic for readers, but a power cut may leave the old file. Only a regular file is replaced: root could rename a
    file over the device that a link leads to. `check` is called at the last moment; if it raises, the file stays as it
    is.
    """
    target = Path(os.path.realpath(path))
    try:
        found = target.stat().st_mode
    except OSError:
        found = None
    if found is not None and not stat.S_ISREG(found):
        raise NotRegular(target)
    if mode is None:
        mode = stat.S_IMODE(found) if found is not None else 0o666 & ~_umask()
    temporary, descriptor = _beside(target)
    try:
        with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
            stream.write(data)
            stream.flush()
            if hasattr(os, "fchmod"):
                os.fchmod(stream.fileno(), mode)
            if durable:
                os.fsync(stream.fileno())
        if check is not None:
            check()
        os.replace(temporary, target)  # noqa: PTH105 - one spelling for both arguments
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.filename is None:
            error.filename = str(target)  # a write does not say where it failed
        raise
    if durable:
        sync_folder(target.parent)


def _beside(target: Path) -> tuple[Path, int]:
    """A new file next to another one, and its descriptor. `tempfile` would do, but takes 5 ms to import."""
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    while True:
        temporary = target.with_name(f".{target.name[:100]}.{os.urandom(4).hex()}.tmp")
        with contextlib.suppress(FileExistsError):
            return temporary, os.open(temporary, flags, 0o600)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def sync_folder(folder: Path) -> None:
    """Make a rename or a new name in `folder` durable, where the system can."""
    with contextlib.suppress(OSError, AttributeError):  # Windows cannot open a folder
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folder(folder: Path, *, private: bool = False) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700 if private else 0o777)
    except FileExistsError:
        raise SetupError(f"{folder} is a file, but a folder is needed", hint="move the file away") from None
    except OSError as error:
        raise SetupError(f"could not create the folder {folder}: {error.strerror}") from None
    return folder


def keep_aside(path: Path) -> Path:
    """Rename a damaged file to `*.corrupt-<time>`, so that it is neither lost nor treated as empty."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    aside = path.with_name(f"{path.name}.corrupt-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.corrupt-{stamp}-{number}")
    path.rename(aside)
    return aside


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


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
