"""The files to import: one file, all related files in a folder, or stdin."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import BadData, UsageError
from ralph.core.problems import Place
from ralph.core.text import one_line
from ralph.host.files import LARGEST_PLAN, read_bytes
from ralph.workspace.find import Choice, find_plans

_BEADS = (".beads/issues.jsonl", "issues.jsonl", ".beads/beads.jsonl")
_MOST_FILES = 200


class Source(Struct, frozen=True):
    name: str
    """For messages, and to tell its tasks from those of other files."""
    data: bytes


def gather(given: str, read_stdin: Callable[[int], bytes]) -> tuple[Source, ...]:
    if given == "-":
        data = read_stdin(LARGEST_PLAN + 1)
        if len(data) > LARGEST_PLAN:
            raise BadData(f"stdin is larger than {LARGEST_PLAN:,} bytes", where=Place("-"))
        return (Source("-", data),)
    if not given or not os.path.lexists(given):
        raise UsageError(f"{one_line(repr(given), 80)} does not exist", hint="pass a file, a folder, or - for stdin")
    path = Path(given)
    if not path.is_dir():
        if not path.is_file():  # a pipe or a device: the hint must not suggest removing it
            hint = "pass a file, a folder, or - for stdin"
            raise UsageError(f"{one_line(repr(given), 80)} is not a regular file", hint=hint)
        return (Source(given, read_bytes(path)),)
    return tuple(Source(str(file), read_bytes(file)) for file in _in_folder(path))


def _in_folder(folder: Path) -> list[Path]:
    """Beads, a Ralph workspace with one plan, a fix_plan.md, or Markdown files: the first that exists."""
    for name in _BEADS:
        if (folder / name).is_file():
            return [folder / name]
    plans = find_plans(folder.absolute(), Choice())
    if len(plans) == 1:
        return [plans[0].path]
    if plans:
        listed = ", ".join(str(ref.path.relative_to(folder.absolute())) for ref in plans[:10])
        raise UsageError(f"there are {len(plans)} plans in {folder}: {listed}", hint="pass the file of one of them")
    for name in ("fix_plan.md", "@fix_plan.md"):
        if (folder / name).is_file():
            return [folder / name]
    files = sorted(path for path in folder.glob("*.md") if path.is_file() and path.name.lower() != "readme.md")
    if not files:
        raise UsageError(
            f"nothing in {folder} can be imported",
            hint="found no beads, no Ralph plan and no Markdown files; pass a file",
        )
    if len(files) > _MOST_FILES:
        raise UsageError(f"{folder} has {len(files)} Markdown files", hint="pass the one to import")
    return files
