"""Copies of the reflogs, so that an agent that expires or deletes them loses nothing. Also of the stash, which is one.

The files are read and written directly: git has no command that puts an entry back. With reftables they are left alone.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ralph.host.files import make_folder, write_bytes
from ralph.host.git.refs import missing_objects
from ralph.host.git.repo import Repo
from ralph.host.plain_file import read_plain
from ralph.host.removal import remove_tree

STASH = "refs/stash"
_LARGEST = 20 * 1024 * 1024
_ENTRY = re.compile(rb"[0-9a-f]{40,64} ([0-9a-f]{40,64}) .*")


def copy_reflogs(repo: Repo, index_file: Path) -> None:
    """Update the copies. A file with the size and time of its copy is not read."""
    store = _store(index_file)
    logs = {name: path for name, path in _logs(repo) if path.stat().st_size <= _LARGEST}
    for name, path in logs.items():
        found, copy = path.stat(), store / name
        try:
            known = copy.stat()
            is_same = (known.st_size, known.st_mtime_ns) == (found.st_size, found.st_mtime_ns)
        except OSError:
            is_same = False
        if not is_same and (data := read_plain(path)) is not None:
            make_folder(copy.parent, private=True)
            temporary = copy.with_name(f".{os.getpid()}")
            temporary.write_bytes(data)
            os.utime(temporary, ns=(found.st_atime_ns, found.st_mtime_ns))
            if copy.is_dir():
                remove_tree(copy)
            temporary.replace(copy)
    for name, copy in list(_below(store)):
        if name not in logs:
            copy.unlink(missing_ok=True)


def restore_reflogs(repo: Repo, index_file: Path, refs: frozenset[str]) -> tuple[str, ...]:
    """Put back the entries that are missing, before newer ones. `refs` exist. Returns the names of the changed logs.

    Entries whose commits no longer exist are left out: git would call them invalid.
    """
    changed: dict[str, tuple[list[bytes], list[bytes]]] = {}
    for name, copy in _below(_store(index_file)):
        if name == STASH or (name != "HEAD" and name not in refs):
            continue
        before, now = copy.read_bytes(), read_plain(_place(repo, name)) or b""
        if not now.startswith(before):
            changed[name] = before.splitlines(), now.splitlines()
    gone = missing_objects(repo, (commit for old, _ in changed.values() for line in old for commit in _commits(line)))
    gone.discard(repo.no_object)
    for name, (old, now_lines) in changed.items():
        known = set(old)
        kept = [line for line in old if gone.isdisjoint(_commits(line))]
        kept += [line for line in now_lines if line not in known and commit_in(line)]
        write_reflog(_place(repo, name), b"".join(line + b"\n" for line in kept))
    return tuple(changed)


def write_reflog(path: Path, data: bytes) -> None:
    if path.is_symlink() or not path.is_file():
        remove_tree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, data)


def stash_entries(repo: Repo) -> list[bytes]:
    """The lines of the stash's log, oldest first."""
    return (read_plain(_place(repo, STASH)) or b"").splitlines()


def saved_stash_entries(index_file: Path) -> list[bytes]:
    return (read_plain(_store(index_file) / STASH) or b"").splitlines()


def stash_log(repo: Repo) -> Path:
    return _place(repo, STASH)


def commit_in(entry: bytes) -> str:
    """The commit that an entry of a reflog names; empty: it is damaged."""
    found = _ENTRY.fullmatch(entry)
    return found[1].decode() if found else ""


def _commits(entry: bytes) -> tuple[str, ...]:
    """The old and the new commit."""
    return tuple(part.decode("ascii", "replace") for part in entry.split(b" ", 2)[:2]) if commit_in(entry) else ()


def _store(index_file: Path) -> Path:
    return index_file.with_name(f"{index_file.name}.reflogs")


def _place(repo: Repo, name: str) -> Path:
    return (repo.git_dir if name == "HEAD" else repo.common_dir) / "logs" / name


def _logs(repo: Repo) -> Iterator[tuple[str, Path]]:
    if (repo.git_dir / "logs" / "HEAD").is_file():
        yield "HEAD", repo.git_dir / "logs" / "HEAD"
    for name, path in _below(repo.common_dir / "logs"):
        if name.startswith("refs/"):
            yield name, path


def _below(folder: Path) -> Iterator[tuple[str, Path]]:
    for where, _, files in os.walk(folder):
        for file in files:
            path = Path(where) / file
            if not path.is_symlink() and not file.startswith(".") and not file.endswith(".lock"):
                yield os.path.relpath(path, folder), path
