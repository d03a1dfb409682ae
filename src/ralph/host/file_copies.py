"""Content-addressed copies of small files in the state folder, for restoring what an agent changed."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from ralph.core.errors import SetupError
from ralph.host.files import make_folder, write_bytes


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
    if durable:
        write_bytes(path, data, mode=0o600)
    else:
        temporary = store / f".{name}.{os.getpid()}"
        temporary.write_bytes(data)
        temporary.replace(path)
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
