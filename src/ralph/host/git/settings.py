"""The settings that git has for a repository. It is only asked again after a file changed that it reads them from."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from ralph.host.git.command import Located, git, names
from ralph.host.git.index_files import Signature, signature

_LIST = ("config", "-z", "--show-scope", "--show-origin", "--list")
# How the file system behaves here, which files are ignored, what is converted, and who signs. As git prints them.
_WANTED = frozenset(
    f"core.{name}"
    for name in (
        *("filemode", "symlinks", "ignorecase", "precomposeunicode", "trustctime", "checkstat"),
        *("excludesfile", "hookspath", "attributesfile", "autocrlf"),
    )
) | frozenset({"commit.gpgsign", "gpg.format", "gpg.program", "gpg.openpgp.program", "gpg.x509.program"})
_SYSTEM = (Path("/etc/gitconfig"), Path("/usr/local/etc/gitconfig"), Path("/opt/homebrew/etc/gitconfig"))
_FILE = "file:"
_INCLUDE = "include."
_INCLUDE_IF = "includeif."
_BY_PLACE = ("includeif.gitdir:", "includeif.gitdir/i:")
"""Conditions that stay as they are for a repository."""


class Settings(Struct, frozen=True):
    values: Mapping[str, str]
    """The relevant ones."""
    filters: tuple[tuple[str, str], ...]
    """Every `filter.*` setting: the programs git starts when it adds or checks out a file."""
    all: tuple[tuple[str, str], ...] = ()
    """In the order of git: a later one wins."""


_KNOWN: dict[tuple[Path, str, str], tuple[dict[Path, Signature | None], Settings]] = {}


def settings_of(where: Located | Path, root: Path, git_dirs: Iterable[Path]) -> Settings:
    """`git_dirs`: the git folder, and that of all worktrees."""
    key = root, os.environ.get("HOME", ""), os.environ.get("XDG_CONFIG_HOME", "")
    if (known := _KNOWN.get(key)) is not None:
        files, found = known
        if all(signature(path) == was for path, was in files.items()):
            return found
        del _KNOWN[key]
    before = {path: signature(path) for path in _usual(git_dirs)}
    listed = [os.fsdecode(item) for item in names(git(where, *_LIST))]
    # Scope, origin and setting take turns. The flags of our own call are listed too, as "command".
    lines = [item for item in zip(listed[::3], listed[1::3], listed[2::3], strict=True) if item[0] != "command"]
    pairs = [(origin, *item.partition("\n")[::2]) for _, origin, item in lines]
    filters = sorted((key, value) for _, key, value in pairs if key.startswith("filter."))
    values = {key: value for _, key, value in pairs if key in _WANTED}
    found = Settings(values, tuple(filters), tuple((key, value) for _, key, value in pairs))
    if not any(name.startswith(_INCLUDE_IF) and not name.startswith(_BY_PLACE) for _, name, _ in pairs):
        others = {path for origin, name, value in pairs for path in _sources(root, origin, name, value)}
        _KNOWN[key] = before | {path: signature(path) for path in others - before.keys()}, found
    return found


def _usual(git_dirs: Iterable[Path]) -> Iterator[Path]:
    """Where git looks for settings, whether the files exist or not."""
    yield from (folder / name for folder in git_dirs for name in ("config", "config.worktree"))
    yield from _SYSTEM
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 - never fails
    yield home / ".gitconfig"
    yield Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config") / "git" / "config"


def _sources(root: Path, origin: str, name: str, value: str) -> Iterator[Path]:
    """The file that a setting is from, and the one that it includes."""
    file = root / origin.removeprefix(_FILE)
    if origin.startswith(_FILE):
        yield file
    if name.startswith((_INCLUDE, _INCLUDE_IF)):
        yield file.parent / os.path.expanduser(value)  # noqa: PTH111 - an absolute one replaces the folder
