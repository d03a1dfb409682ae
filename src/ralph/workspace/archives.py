"""The archives of a workspace: where they are and what they contain. Users may have edited anything read here."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData, UsageError
from ralph.core.names import safe_name
from ralph.core.ports import PlanRef
from ralph.host.files import read_bytes
from ralph.plans.registry import layout

MANIFEST = ".archive.json"
SIDECAR = ".beside.json"
_LARGEST_MANIFEST = 64 * 1024


class Manifest(Struct, frozen=True, kw_only=True):
    """An archive's own description, for `list` and `restore`."""

    version: int = 1
    layout: str
    name: str
    folder: str
    """Where the plan was, relative to the workspace."""
    created: str
    done: int
    total: int
    summary: str = "summary.md"


class Archive(Struct, frozen=True):
    path: Path
    manifest: Manifest | None = None
    """None: created by hand or by another tool."""

    @property
    def name(self) -> str:
        return self.path.name


def shelves(root: Path, refs: Iterable[PlanRef] = ()) -> list[Path]:
    """The folders for archives, existing or not: those of these plans, and each layout's usual one."""
    found: dict[Path, None] = {}
    for ref in refs:
        found[layout(ref.layout).locations(ref).archive] = None
    found[root / ".ralph" / "archive"] = None
    found[root / "ralph-archive"] = None
    return [folder for folder in found if Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(root))]


def archives(root: Path, refs: Iterable[PlanRef] = ()) -> list[Archive]:
    """Every archive, oldest first. Links are not followed."""
    found = []
    for shelf in shelves(root, refs):
        if shelf.is_symlink() or not shelf.is_dir():
            continue
        for path in shelf.iterdir():
            if path.is_dir() and not path.is_symlink() and not path.name.startswith("."):
                found.append(Archive(path, read_manifest(path)))
    return sorted(found, key=lambda archive: archive.name)


def read_manifest(folder: Path) -> Manifest | None:
    try:
        data = read_bytes(folder / MANIFEST, within=folder, limit=_LARGEST_MANIFEST)
        manifest = msgspec.json.decode(data, type=Manifest)
    except (BadData, msgspec.DecodeError, RecursionError):
        return None
    return manifest if manifest.version == 1 else None


def find_archive(root: Path, name: str, refs: Iterable[PlanRef] = ()) -> Archive:
    """The archive called `name`, or the only one whose name ends with it."""
    safe_name(name, "archive")
    every = archives(root, refs)
    found = [a for a in every if a.name == name] or [a for a in every if a.name.endswith(f"-{name}")]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"{len(found)} archives match {name}: {', '.join(a.name for a in found[:10])}",
            hint="give the full name",
        )
    hint = "`ralph plan archive list` shows them" if every else "there are none yet; `ralph plan archive` creates one"
    raise UsageError(f"no archive called {name} in {root}", hint=hint)


def archive_name(label: str, now: float) -> str:
    return f"{time.strftime('%Y-%m-%d-%H%M%S', time.gmtime(now))}-{label[:70].rstrip('-._')}"


def free_name(shelf: Path, name: str) -> str:
    """`name`, with a number appended if it is taken."""
    candidate, number = name, 1
    while os.path.lexists(shelf / candidate):
        number += 1
        candidate = f"{name}-{number}"
    return candidate
