"""A project's files as toolchain detection sees them. An unreadable or invalid file is a warning, never an error."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.text import one_line
from ralph.host.files import read_bytes

_LARGEST = 1024 * 1024


class Tree(Protocol):
    """The files of a project that detection looks at."""

    def names(self, folder: str) -> frozenset[str]:
        """Names in a folder of the project; names of folders end with `/`. Empty if it does not exist."""
        ...

    def read(self, path: str) -> bytes:
        """Raises BadData for anything but a small regular file."""
        ...


class RealTree(Struct, frozen=True):
    """The files of a real folder. Symlinks that leave it are not followed."""

    root: Path

    def names(self, folder: str) -> frozenset[str]:
        here = self.root / folder
        if folder and here.is_symlink():
            return frozenset()
        try:
            with os.scandir(here) as entries:
                return frozenset(f"{e.name}/" if e.is_dir(follow_symlinks=False) else e.name for e in entries)
        except OSError:
            return frozenset()

    def read(self, path: str) -> bytes:
        return read_bytes(self.root / path, within=self.root, limit=_LARGEST)


class Folder:
    """One folder of a tree. Records which files could not be read."""

    def __init__(self, tree: Tree, path: str, warnings: list[str]) -> None:
        self._tree = tree
        self.path = path
        self.names = tree.names(path)
        self._warnings = warnings

    def has(self, *names: str) -> str:
        """The first of these names that exists, or an empty string."""
        return next((name for name in names if name in self.names), "")

    def below(self, folder: str) -> Folder:
        return Folder(self._tree, self._at(folder), self._warnings)

    def inside(self, folder: str) -> frozenset[str]:
        return self._tree.names(self._at(folder))

    def text(self, name: str) -> str:
        """Empty if the file does not exist or cannot be read."""
        if name not in self.names:
            return ""
        try:
            return self._tree.read(self._at(name)).decode("utf-8-sig")
        except UnicodeDecodeError:
            self.warn(name, "it is not UTF-8")
        except BadData as error:
            self.warn(name, error.message)
        return ""

    def warn(self, name: str, why: str) -> None:
        self._warnings.append(f"{one_line(self._at(name))} was skipped: {one_line(why, 120)}")

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


def as_json(folder: Folder, name: str) -> dict[str, object]:
    """A JSON object; comments and trailing commas are allowed. Empty if missing or invalid."""
    text = folder.text(name)
    if not text.strip():
        return {}
    try:
        value = msgspec.json.decode(_without_comments(text) if name.endswith("c") else text)
    except (msgspec.DecodeError, RecursionError) as error:
        folder.warn(name, str(error))
        return {}
    if not isinstance(value, dict):
        folder.warn(name, "it is not a JSON object")
        return {}
    return value


def as_toml(folder: Folder, name: str) -> dict[str, object]:
    text = folder.text(name)
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        folder.warn(name, str(error))
        return {}


def at(value: object, *keys: str) -> object:
    """`value[a][b]…` if every level is a table and has the key, else None."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _without_comments(text: str) -> str:
    strings_or_comments = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
    bare = strings_or_comments.sub(lambda m: m[1] or " ", text)
    return re.sub(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', lambda m: m[1] or "", bare)
