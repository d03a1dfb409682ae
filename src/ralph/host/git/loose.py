"""Objects read and written as files, without a process: those the loop has just made, which it asks about most.

Only what is plain is done here. For an object that is packed, damaged, large or missing, and for a name that git treats
in its own way, NotLoose is raised, and the caller lets git do it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
import threading
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from ralph.core.lazy_pattern import lazy_pattern
from ralph.host.files import read_plain

LARGEST = 16 * 1024 * 1024
"""Bytes of an object."""
TREE = "40000"
NOTHING = "000000"
"""The mode of what does not exist."""
_HEAD = lazy_pattern(rb"(blob|tree|commit|tag) (\d{1,12})\0")
_ID = lazy_pattern("[0-9a-f]{40}(?:[0-9a-f]{24})?")
_OF_COMMIT = lazy_pattern(rb"tree ([0-9a-f]{40,64})\n")
_ENTRY = lazy_pattern(rb"([0-7]{5,6}) ([^\0]+)\0")
_ODD = lazy_pattern(rb"\.{1,2}|\.git|", re.IGNORECASE)
"""Parts of a path that git does not take."""

Objects = tuple[Path, ...]
"""Folders of objects. The first one is written to."""
Entry = tuple[str, str]
"""Mode and ID."""
Node = dict[bytes, Entry]
"""One tree: name → entry."""


class NotLoose(Exception):
    """Git has to do it."""


def is_id(name: str) -> bool:
    return _ID.fullmatch(name) is not None


def read(objects: Objects, name: str, largest: int = LARGEST) -> tuple[bytes, bytes]:
    """The type and the content, checked against the ID: an agent may have written to the file."""
    paths = [folder / name[:2] / name[2:] for folder in objects] if is_id(name) else []
    data = next((data for path in paths if (data := read_plain(path)) is not None), None)
    if data is None:
        raise NotLoose
    inflate = zlib.decompressobj()
    try:
        whole = inflate.decompress(data, 64)
        found = _HEAD.match(whole)
        if found is None or int(found[2]) > largest:
            raise NotLoose
        size = found.end() + int(found[2])
        if size >= len(whole):
            whole += inflate.decompress(inflate.unconsumed_tail, size - len(whole) + 1)
    except zlib.error:
        raise NotLoose from None
    if len(whole) != size or _hash(whole, name) != name:
        raise NotLoose
    return found[1], whole[found.end() :]


def read_blob(objects: Objects, name: str, largest: int = LARGEST) -> bytes:
    kind, data = read(objects, name, min(largest, LARGEST))
    if kind != b"blob":
        raise NotLoose
    return data


def write(objects: Objects, kind: bytes, data: bytes, like: str) -> str:
    """Write an object as git does, and return its ID. `like`: any ID of the repository."""
    whole = b"%s %d\0%s" % (kind, len(data), data)
    name = _hash(whole, like)
    path = objects[0] / name[:2] / name[2:]
    with contextlib.suppress(OSError):
        os.utime(path)  # so that `git gc` takes it for a new one
        return name
    # `git gc` removes one that was left behind.
    temporary = path.with_name(f"tmp_obj_{os.getpid()}_{threading.get_ident()}")
    try:
        path.parent.mkdir(exist_ok=True)
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        with open(descriptor, "wb") as stream:  # noqa: PTH123 - a descriptor, not a path
            stream.write(zlib.compress(whole, 1))
        temporary.replace(path)
    except OSError:  # git says what is wrong
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise NotLoose from None
    return name


def _hash(data: bytes, like: str) -> str:
    return hashlib.new("sha256" if len(like) == 64 else "sha1", data, usedforsecurity=False).hexdigest()


def as_tree(objects: Objects, name: str) -> str:
    """The ID of a tree, given by its own or that of a commit."""
    kind, _ = read(objects, name)
    return name if kind == b"tree" else tree_of_commit(objects, name)


def tree_of_commit(objects: Objects, commit: str) -> str:
    kind, data = read(objects, commit)
    found = _OF_COMMIT.match(data)
    if kind != b"commit" or found is None:
        raise NotLoose
    return found[1].decode()


def read_tree(objects: Objects, name: str) -> Node:
    """The entries of one tree, not of those in it. An empty name is an empty tree."""
    if not name:
        return {}
    kind, data = read(objects, name)
    if kind != b"tree":
        raise NotLoose
    width, at, found = len(name) // 2, 0, Node()
    while at < len(data):
        entry = _ENTRY.match(data, at)
        if entry is None:
            raise NotLoose
        at = entry.end() + width
        found[entry[2]] = _mode(int(entry[1], 8)), data[entry.end() : at].hex()
    return found


def find_entry(objects: Objects, tree: str, path: bytes) -> Entry | None:
    """That of a file in a tree, or in one of those in it."""
    name, is_inside, rest = path.partition(b"/")
    entry = read_tree(objects, tree).get(name)
    is_tree = entry is not None and entry[0] == TREE
    if entry is None or is_tree != bool(is_inside):
        return None
    return find_entry(objects, entry[1], rest) if is_inside else entry


def _mode(mode: int) -> str:
    """As git shows it: old versions recorded more permissions than one."""
    if stat.S_ISREG(mode):
        return "100755" if mode & 0o100 else "100644"
    return TREE if stat.S_ISDIR(mode) else f"{mode:06o}"


def compare(
    objects: Objects, old: str, new: str, before: bytes = b""
) -> Iterator[tuple[bytes, Entry | None, Entry | None]]:
    """Path, old and new entry of every file that differs between two trees; None: it is not in that tree."""
    left, right = read_tree(objects, old), read_tree(objects, new)
    for name in left.keys() | right.keys():
        was, now = left.get(name), right.get(name)
        if was == now:
            continue
        (was_tree, was_file), (now_tree, now_file) = _sides(was), _sides(now)
        if was_tree or now_tree:
            yield from compare(objects, was_tree, now_tree, before + name + b"/")
        if was_file or now_file:
            yield before + name, was_file, now_file


def _sides(entry: Entry | None) -> tuple[str, Entry | None]:
    """The tree that an entry is, or the file."""
    return (entry[1], None) if entry and entry[0] == TREE else ("", entry)


def with_entries(objects: Objects, tree: str, wanted: Mapping[bytes, Entry], like: str) -> str:
    """The tree with these entries set; the mode of nothing removes one. Writes the trees that are new.

    Files take the place of folders, and folders that of files, as in an index.
    """
    return _changed(objects, tree, wanted, like) or write(objects, b"tree", b"", like)


def _changed(objects: Objects, tree: str, wanted: Mapping[bytes, Entry], like: str) -> str:
    """Empty: nothing is left in it."""
    node = read_tree(objects, tree)
    inner: dict[bytes, dict[bytes, Entry]] = {}
    own: dict[bytes, Entry] = {}
    for path, entry in wanted.items():
        name, is_inside, rest = path.partition(b"/")
        if _ODD.fullmatch(name):
            raise NotLoose
        if is_inside:
            inner.setdefault(name, {})[rest] = entry
        else:
            own[name] = entry
    for name, (mode, made) in own.items():
        if mode != NOTHING:
            node[name] = mode, made
        elif node.get(name, (TREE, ""))[0] != TREE:
            del node[name]
    for name, entries in inner.items():
        is_added = any(mode != NOTHING for mode, _ in entries.values())
        if is_added and own.get(name, (NOTHING, ""))[0] != NOTHING:
            raise NotLoose  # both a file and a folder: the order decides
        mode, known = node.get(name, (TREE, ""))
        if mode != TREE and not is_added:
            continue
        if made := _changed(objects, known if mode == TREE else "", entries, like):
            node[name] = TREE, made
        else:
            node.pop(name, None)
    ordered = sorted(node.items(), key=lambda item: item[0] + (b"/" if item[1][0] == TREE else b""))
    data = b"".join(b"%s %s\0%s" % (mode.encode(), name, bytes.fromhex(made)) for name, (mode, made) in ordered)
    return write(objects, b"tree", data, like) if node else ""
