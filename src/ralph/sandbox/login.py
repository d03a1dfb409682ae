"""The login of a client inside: a copy of its files, and the copy's way back when the client has renewed it.

The originals stay out of reach: a client's folder also holds settings and hooks, which would run outside later.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ralph.core.ports import Login
from ralph.host.files import make_folder, read_state, write_bytes
from ralph.sandbox.home import own_path


@contextmanager
def login(files: Iterable[Login], user_home: Path, inside: Path, env: Mapping[str, str]) -> Iterator[None]:
    """While a client runs, `inside`, its home folder there, has what it needs to log in."""
    before: dict[Login, bytes] = {}
    for file in files:
        target = own_path(inside, file.path)
        target.unlink(missing_ok=True)
        with contextlib.suppress(OSError, ValueError):
            data = _wanted(file, read_state(file.original(user_home, env)))
            make_folder(target.parent, private=True)
            write_bytes(target, data, mode=0o600, durable=False)
            before[file] = data
    try:
        yield
    finally:
        for file, data in before.items():
            with contextlib.suppress(OSError, ValueError):
                _return(file, data, file.original(user_home, env), inside)


def _wanted(file: Login, data: bytes) -> bytes:
    if not file.keys:
        return data
    values = json.loads(data)
    return json.dumps({key: values[key] for key in file.keys if key in values}).encode()


def _return(file: Login, before: bytes, original: Path, inside: Path) -> None:
    """Only a renewed login comes back, in place of the one that was copied: the same keys, in a regular file."""
    copy = Path(os.path.realpath(inside)) / file.path
    if not file.comes_back or os.path.realpath(copy) != str(copy):  # a link leads to another file
        return
    now = read_state(copy)
    if now != before and read_state(original) == before and _shape(json.loads(now)) == _shape(json.loads(before)):
        write_bytes(Path(os.path.realpath(original)), now, mode=0o600)


def _shape(value: Any) -> Any:
    return {key: _shape(inner) for key, inner in value.items()} if isinstance(value, dict) else type(value)
