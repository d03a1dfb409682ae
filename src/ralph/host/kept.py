"""Copies of small files, by content, in the state folder: what must be put back if an agent changes it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ralph.core.errors import SetupError
from ralph.host.files import make_folder, write_bytes


class CopyLost(SetupError):
    """A copy that is needed is gone, or not what it was."""


def keep(store: Path, data: bytes, *, durable: bool = True) -> str:
    """Have a copy of `data`, and say its name. `durable` survives a power cut, not only a kill."""
    name = hashlib.sha256(data).hexdigest()
    path = store / name
    if path.exists():
        os.utime(path)
        return name
    make_folder(store, private=True)
    if durable:
        write_bytes(path, data, mode=0o600)
    else:
        temporary = store / f".{name}.{os.getpid()}"
        temporary.write_bytes(data)
        temporary.replace(path)
    return name


def kept(store: Path, name: str) -> bytes:
    """The copy called `name`. One that is missing or damaged is an error, never empty."""
    path = store / name
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CopyLost(f"the copy {path} cannot be read: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != name:
        raise CopyLost(f"the copy {path} is damaged", hint="remove it; what it held cannot be put back")
    return data


def forget_oldest(store: Path, leave: int) -> None:
    """Remove all copies but the `leave` that were last kept."""
    if store.is_dir():
        for path in sorted(store.iterdir(), key=lambda path: path.stat().st_mtime_ns)[: -leave or None]:
            path.unlink(missing_ok=True)
