"""Files in the git folder that make git run programs or read something else: configuration, hooks, attributes, links.

An agent's changes to them are undone. No git command runs before that.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from ralph.host.file_copies import keep, kept
from ralph.host.files import write_bytes
from ralph.host.git.repo import Repo
from ralph.host.removal import remove_tree

# `commondir` makes git read another configuration; grafts and `shallow` make it see another history, and without its
# alternates a shared clone has no objects.
_SHARED = ("config", "info/attributes", "info/exclude", "info/grafts", "shallow", "objects/info/alternates", "hooks")
_OWN = ("config.worktree", "commondir", "gitdir", "info/sparse-checkout")


class Tampering(Struct, frozen=True):
    """One of these files that was changed."""

    file: str
    what: str
    """"changed", "added" or "removed"."""
    copy: str = ""
    """The name of the copy in the store that holds the other version."""


def record_config_files(repo: Repo, store: Path) -> dict[str, str]:
    """Record the files: name → kind, mode and name of the copy. A file not listed does not exist."""
    return {name: _remember(path, store) for name, path in _survey(repo).items()}


def tampering(repo: Repo, recorded: Mapping[str, str], store: Path) -> tuple[Tampering, ...]:
    """The differences from what was recorded. The other versions are kept; nothing is changed."""
    now = record_config_files(repo, store)
    found = []
    for name in sorted(recorded.keys() | now.keys()):
        before, after = recorded.get(name, ""), now.get(name, "")
        if before != after:
            what = "changed" if before and after else "added" if after else "removed"
            found.append(Tampering(name, what, after.rpartition(" ")[2]))
    return tuple(found)


def restore_config_files(repo: Repo, recorded: Mapping[str, str], store: Path) -> tuple[Tampering, ...]:
    """Undo every difference. Called before any other git command after an agent has run."""
    found = tampering(repo, recorded, store)
    for item in found:  # first away with what is in the way, then back with what was there
        if item.what != "removed":
            remove_tree(_path(repo, item.file))
    for item in found:
        if item.what != "added":
            _recreate(repo, item.file, recorded[item.file], store)
    return found


def _survey(repo: Repo) -> dict[str, Path]:
    """The files and links that exist, by name. A hook may call scripts next to it, so all of `hooks` counts."""
    found: dict[str, Path] = {}
    for base, names in (("common", _SHARED), ("own", _OWN)):
        for name in names:
            path = _path(repo, f"{base}:{name}")
            if _is_folder(path):
                found |= {f"{base}:{name}/{inner}": path / inner for inner in _inside(path)}
            elif os.path.lexists(path) and not _has_link_above(repo, f"{base}:{name}"):
                found[f"{base}:{name}"] = path
        info = _path(repo, f"{base}:info")
        if os.path.lexists(info) and not _is_folder(info):  # a link in its place leads out of the repository
            found[f"{base}:info"] = info
    return found


def _inside(folder: Path) -> list[str]:
    found = []
    for where, folders, files in os.walk(folder):
        links = [name for name in folders if (Path(where) / name).is_symlink()]
        samples = [name for name in files if name.endswith(".sample")]
        inner = os.path.relpath(where, folder)
        found += [os.path.normpath(f"{inner}/{name}") for name in (*files, *links) if name not in samples]
    return [name for name in found if name.isprintable()]  # no hook of git's has another kind of name


def _path(repo: Repo, name: str) -> Path:
    base, _, rest = name.partition(":")
    return (repo.common_dir if base == "common" else repo.git_dir) / rest


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _has_link_above(repo: Repo, name: str) -> bool:
    parent = _path(repo, name).parent
    return parent not in (repo.common_dir, repo.git_dir) and parent.is_symlink()


def _remember(path: Path, store: Path) -> str:
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return f"link - {keep(store, os.fsencode(path.readlink()))}"
    if stat.S_ISREG(mode) and os.access(path, os.R_OK):
        return f"file {stat.S_IMODE(mode):o} {keep(store, path.read_bytes())}"
    return "special - "


def _recreate(repo: Repo, name: str, remembered: str, store: Path) -> None:
    kind, mode, copy = remembered.split(" ")
    path = _path(repo, name)
    remove_tree(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "link":
        path.symlink_to(os.fsdecode(kept(store, copy)))
    elif kind == "file":
        write_bytes(path, kept(store, copy), mode=int(mode, 8))
