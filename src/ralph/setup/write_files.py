"""Writes several files into a workspace in one step: all paths are checked first, and a failure undoes everything."""

from __future__ import annotations

import contextlib
import os
import stat
import time
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath

from msgspec import Struct

from ralph.core.errors import SetupError
from ralph.host.files import make_folder, read_bytes, write_bytes


class Existing(StrEnum):
    """What to do with an existing file that differs."""

    KEEP = "keep"
    BACK_UP = "back up"
    """Write the new file; keep the old one beside it as `*.bak-<time>`."""
    REPLACE = "replace"
    """The old content is already saved elsewhere."""


class NewFile(Struct, frozen=True):
    path: str
    """Relative to the workspace."""
    data: bytes
    existing: Existing = Existing.KEEP
    mode: int | None = None


class Placed(Struct, frozen=True):
    """Paths relative to the workspace."""

    made: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    same: tuple[str, ...] = ()
    """Existed before, with the same content."""
    replaced: tuple[str, ...] = ()
    backups: tuple[str, ...] = ()

    @property
    def touched(self) -> tuple[str, ...]:
        return (*self.made, *self.replaced)


def place(root: Path, files: Sequence[NewFile], now: float) -> Placed:
    """Write the files. If one fails, those already written are undone and the error says so."""
    todo = [(file, _what_to_do(root, file)) for file in files]
    undo: list[Callable[[], object]] = []
    backups: list[str] = []
    try:
        for file, what in todo:
            if what not in ("make", "replace"):
                continue
            path = root / file.path
            _make_parents(root, path.parent, undo)
            if what == "replace":
                before = read_bytes(path, within=root)
                if file.existing is Existing.BACK_UP:
                    aside = _free_name(path, now)
                    undo.append(_remover(aside))
                    write_bytes(aside, before, mode=stat.S_IMODE(path.stat().st_mode))
                    backups.append(str(aside.relative_to(root)))
                undo.append(_restorer(path, before))
            else:
                undo.append(_remover(path))
            write_bytes(path, file.data, mode=file.mode)
    except BaseException as error:
        for step in reversed(undo):
            with contextlib.suppress(OSError):
                step()
        if isinstance(error, OSError):
            raise SetupError(
                f"{error.filename or root} could not be written: {error.strerror}; all changes were undone",
                hint="free up space or make it writable, then try again",
            ) from None
        raise
    by = {word: tuple(f.path for f, what in todo if what == word) for word in ("make", "keep", "same", "replace")}
    return Placed(by["make"], by["keep"], by["same"], by["replace"], tuple(backups))


def check_inside(root: Path, relative: str) -> Path:
    """The absolute path, after checking that it is inside the workspace and outside the git folder."""
    parts = PurePosixPath(relative).parts
    if not parts or PurePosixPath(relative).is_absolute() or ".." in parts or "\0" in relative:
        raise SetupError(f"{relative!r} is outside the workspace {root}")
    if any(part.lower() == ".git" for part in parts):
        raise SetupError(f"{relative} is inside the git folder", hint="choose another path")
    path = root
    for part in parts:
        path = path / part
        if path.is_symlink() and not _stays_inside(path, root):
            raise SetupError(
                f"{path} is a symlink that points outside {root}",
                hint="replace the symlink with a real folder or file, or work in the folder it points to",
            )
    return path


def _what_to_do(root: Path, file: NewFile) -> str:
    path = check_inside(root, file.path)
    folder = path.parent
    while not os.path.lexists(folder):
        folder = folder.parent
    if not folder.is_dir():
        raise SetupError(f"{folder} is a file, but a folder is needed there", hint="move or rename the file")
    if not os.path.lexists(path):
        if not os.access(folder, os.W_OK | os.X_OK):
            raise SetupError(f"{folder} is not writable", hint="make it writable")
        return "make"
    if not path.is_file():
        raise SetupError(f"{path} is not a regular file, but a file is needed there", hint="move or rename it")
    if path.stat().st_size == len(file.data) and read_bytes(path, within=root) == file.data:
        return "same"
    if file.existing is Existing.KEEP:
        return "keep"
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise SetupError(f"{path.parent} is not writable", hint="make it writable")
    return "replace"


def _stays_inside(path: Path, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(root))


def _make_parents(root: Path, folder: Path, undo: list[Callable[[], object]]) -> None:
    missing = []
    while folder != root and not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for new in reversed(missing):
        make_folder(new)
        undo.append(new.rmdir)


def _remover(path: Path) -> Callable[[], object]:
    return lambda: path.unlink(missing_ok=True)


def _restorer(path: Path, before: bytes) -> Callable[[], object]:
    return lambda: write_bytes(path, before)


def _free_name(path: Path, now: float) -> Path:
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    aside, number = path.with_name(f"{path.name}.bak-{stamp}"), 1
    while os.path.lexists(aside):
        number += 1
        aside = path.with_name(f"{path.name}.bak-{stamp}-{number}")
    return aside
