"""Folders through which one process passes small files to another: in order, each of them complete.

Names begin with the time, so that they sort in the order of writing. A killed writer leaves a temporary file that is
ignored.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from ralph.core.errors import BadData
from ralph.host.files import keep_aside, make_folder, read_bytes, write_bytes

_SUFFIX = ".json"
_LARGEST = 256 * 1024
T = TypeVar("T")


def put(folder: Path, value: msgspec.Struct) -> Path:
    make_folder(folder, private=True)
    path = folder / f"{time.time_ns():020}-{os.getpid()}-{os.urandom(2).hex()}{_SUFFIX}"
    write_bytes(path, msgspec.json.encode(value) + b"\n", mode=0o600)
    return path


def look(folder: Path, kind: type[T]) -> Iterator[tuple[Path, T]]:
    """The files, oldest first. A damaged one is moved aside and not read again."""
    for name in names(folder):
        path = folder / name
        try:
            yield path, msgspec.json.decode(read_bytes(path, limit=_LARGEST), type=kind)
        except (BadData, msgspec.DecodeError):
            if path.exists():  # not taken by another process meanwhile
                keep_aside(path)


def names(folder: Path) -> list[str]:
    try:
        listed = os.listdir(folder)  # noqa: PTH208 - several times a second, and most often there is nothing
    except OSError:
        return []
    return sorted(name for name in listed if name.endswith(_SUFFIX) and name[0] != ".")
