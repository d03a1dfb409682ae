"""Hard links to the object files of a repository, so that no cleaning by an agent can remove an object.

`git reflog expire` and `git gc --prune=now` remove what nothing names, and an agent can delete every name there is,
also those in `refs/ralph/`. A second link to an object file costs no space and survives that. Git never changes an
object file in place.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from ralph.host.files import make_folder
from ralph.host.git.command import ask, git
from ralph.host.git.repo import Repo
from ralph.host.removal import remove_tree

_FAN_OUT = frozenset(f"{number:02x}" for number in range(256))
_PACK = "pack"
_LONGEST = 5.0
"""Seconds for linking loose objects at one checkpoint; the rest is linked at the next."""

_SEEN: dict[Path, dict[str, int]] = {}
"""Store → folder of objects → its mtime when everything in it was linked."""


def link_objects(repo: Repo, index_file: Path) -> None:
    """Link all object files that are not linked yet. Folders that have not changed are skipped."""
    for store in (_beside(index_file), _inside(repo, index_file)):
        make_folder(store, private=True)
        try:
            _link_all(repo.common_dir / "objects", store)
        except OSError:  # another file system, or one without links
            _SEEN.pop(store, None)
            remove_tree(store)
        else:
            return


def _link_all(objects: Path, store: Path) -> None:
    seen = _SEEN.setdefault(store, {})
    deadline = time.monotonic() + _LONGEST
    for folder in (_PACK, *_fan_out(objects)):
        changed_at = _changed_at(objects / folder)
        if changed_at is None or seen.get(folder) == changed_at:
            continue
        known = set(_names(store / folder))
        for name in _names(objects / folder):
            if name not in known:
                (store / folder).mkdir(exist_ok=True)
                with contextlib.suppress(FileNotFoundError, FileExistsError):  # a gc at the same time
                    os.link(objects / folder / name, store / folder / name)
        seen[folder] = changed_at
        if time.monotonic() > deadline:
            return


def restore_objects(repo: Repo, index_file: Path) -> bool:
    """Link back the objects that were removed since `link_objects`. True if there were any."""
    is_any = False
    for store in (_beside(index_file), _inside(repo, index_file)):
        if store.is_dir():
            is_any = _restore_packs(repo, store) or is_any
            is_any = _restore_loose(repo, store) or is_any
    return is_any


def _restore_packs(repo: Repo, store: Path) -> bool:
    present = set(_names(repo.common_dir / "objects" / _PACK))
    gone = [name for name in _names(store / _PACK) if name.endswith(".idx") and name not in present]
    is_any = False
    for name in gone:
        files = [each for each in _names(store / _PACK) if each.startswith(name.removesuffix("idx"))]
        index = (store / _PACK / name).read_bytes()
        listed = git(repo.root, "show-index", f"--object-format={repo.object_format}", stdin=index)
        if _missing(repo, (line.split(b" ")[1] for line in listed.splitlines())):
            _link_back(repo, store, _PACK, files)
            is_any = True
        else:  # packed again: everything is in a newer pack
            for each in files:
                (store / _PACK / each).unlink(missing_ok=True)
    return is_any


def _restore_loose(repo: Repo, store: Path) -> bool:
    objects, seen = repo.common_dir / "objects", _SEEN.get(store, {})
    gone: list[bytes] = []
    for folder in _fan_out(store):
        if folder not in seen or seen[folder] != _changed_at(objects / folder):
            present = set(_names(objects / folder))
            gone += [os.fsencode(folder + name) for name in _names(store / folder) if name not in present]
    missing = _missing(repo, gone)
    for item in missing:
        _link_back(repo, store, item[:2], [item[2:]])
    for name in set(map(os.fsdecode, gone)).difference(missing):  # in a pack now
        (store / name[:2] / name[2:]).unlink(missing_ok=True)
    return bool(missing)


def _missing(repo: Repo, objects: Iterable[bytes]) -> list[str]:
    asked = b"".join(name + b"\n" for name in objects)
    if not asked:
        return []
    out = ask(repo, "cat-file", "--batch-check", stdin=asked).out.decode("ascii", "replace")
    return [line.partition(" ")[0] for line in out.splitlines() if line.endswith(" missing")]


def _link_back(repo: Repo, store: Path, folder: str, files: Iterable[str]) -> None:
    target = repo.common_dir / "objects" / folder
    target.mkdir(parents=True, exist_ok=True)
    for name in sorted(files, reverse=True):  # a pack before its index, which says that the pack is there
        with contextlib.suppress(FileExistsError):
            os.link(store / folder / name, target / name)


def forget_objects(repo: Repo, index_file: Path) -> None:
    for store in (_beside(index_file), _inside(repo, index_file)):
        _SEEN.pop(store, None)
        remove_tree(store)


def _beside(index_file: Path) -> Path:
    return index_file.with_name(f"{index_file.name}.objects")


def _inside(repo: Repo, index_file: Path) -> Path:
    """In the git folder, where the state folder is on another file system."""
    return repo.common_dir / f"ralph-objects-{index_file.parent.name[-8:]}-{index_file.name}"


def _fan_out(folder: Path) -> list[str]:
    """The folders of loose objects that are there."""
    return sorted(_FAN_OUT.intersection(_names(folder)))


def _names(folder: Path) -> list[str]:
    try:
        return [name for name in os.listdir(folder) if not name.startswith("tmp_") and not name.endswith(".keep")]  # noqa: PTH208
    except OSError:
        return []


def _changed_at(folder: Path) -> int | None:
    try:
        return folder.stat().st_mtime_ns
    except OSError:
        return None
