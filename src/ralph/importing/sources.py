"""The files to import, and their stories."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import BadData, PlanError, UsageError
from ralph.core.plan import Order
from ralph.core.problems import Place
from ralph.core.text import one_line, plural
from ralph.host.files import LARGEST_PLAN, read_bytes
from ralph.importing import wording
from ralph.importing.detect import count_boxes, detect, format_of
from ralph.importing.kinds import FALLBACKS, KINDS, names
from ralph.importing.stories import Batch, Item, NoTasks, plain_key, remark
from ralph.plans.integrity import decode_utf8
from ralph.plans.registry import layout
from ralph.workspace.find import Choice, find_plans

_MOST_BOXES = 20_000
"""Reading more would only take time: so many are refused later anyway."""


def read(data: bytes, file: str, kind: str = "") -> Batch:
    """Raises BadData or PlanError with file and line."""
    if kind and kind not in names():
        raise UsageError(f"unknown kind of source {kind!r}", hint=f"use one of {', '.join(names())}")
    text = text_of_source(data, file)
    if not text.strip():
        raise BadData("the file is empty", where=Place(file), hint="use a file that contains tasks")
    kind = kind or detect(text, file)
    if text.lstrip()[:1] not in ("[", "{") and (count := count_boxes(text)) > _MOST_BOXES:
        hint = "split it; plans cannot be that long"
        raise BadData(f"the file contains {count:,} tasks", where=Place(file), hint=hint)
    if kind in KINDS:
        try:
            batch: Batch = format_of(kind).read(text, file)
        except RecursionError:
            hint = "flatten it, or export it again"
            raise BadData("the file is nested too deeply", where=Place(file), hint=hint) from None
        return batch
    return _read_plan(data, file, kind)


def text_of_source(data: bytes, file: str) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):  # a CSV file of a spreadsheet
        return data.decode("utf-16", "replace").removeprefix("\ufeff")
    return decode_utf8(data, file).removeprefix("\ufeff")


def _read_plan(data: bytes, file: str, name: str) -> Batch:
    """A plan in the layout called `name`, as a source of stories for another plan. Raises PlanError."""
    plan = layout(name).parse(data, file)
    home = wording.line(plan.name) or file.rpartition("/")[2]
    stories = sorted(plan.stories, key=lambda story: story.priority if plan.order is Order.PRIORITY else 0)
    items = [
        Item(
            key=_story_key(home, story.id),
            title=story.title,
            description=story.description,
            criteria=story.criteria,
            priority=story.priority,
            depends_on=tuple(_story_key(home, needed) for needed in story.depends_on),
            state=story.state,
            notes=story.notes,
            verify=story.verify,
            touches=story.touches,
            ref=story.ref,
            line=story.line,
        )
        for story in stories
    ]
    return Batch(kind=name, file=file, items=tuple(items), name=plan.name, verify=plan.verify)


def _story_key(home: str, story_id: str) -> str:
    return plain_key(f"plan:{home}#{story_id}")


_MOST_FILES = 500
_SUFFIXES = (".md", ".json", ".jsonl", ".csv", ".tsv")
_NO_TASKS = ("readme.md", "claude.md", "agents.md", "changelog.md", "license.md", "contributing.md", "index.md")
_PASSED_OVER = frozenset({"node_modules", "vendor", "venv", "target", "dist", "build"})
_DEEPEST = 4


class Source(Struct, frozen=True):
    name: str
    """For messages, and to tell its tasks from those of other files."""
    data: bytes
    kind: str = ""
    """Empty: to be detected."""
    is_found: bool = False
    """Found in a folder: if it holds no tasks, the import goes on without it."""


def gather(
    name: str, read_stdin: Callable[[int], bytes], kind: str = "", root: Path | None = None
) -> tuple[Source, ...]:
    """`root`: the workspace that gets the stories. Its own plan is not what `ralph import .` is about."""
    if name == "-":
        data = read_stdin(LARGEST_PLAN + 1)
        if len(data) > LARGEST_PLAN:
            raise BadData(f"stdin is larger than {LARGEST_PLAN:,} bytes", where=Place("-"))
        return (Source("-", data, kind),)
    if not name or not os.path.lexists(name):
        raise UsageError(f"{one_line(repr(name), 80)} does not exist", hint="pass a file, a folder, or - for stdin")
    path = Path(name)
    if path.is_dir():
        return tuple(_in_folder(path, kind, is_own=root is not None and path.samefile(root)))
    if not path.is_file():  # a pipe or a device: the hint must not suggest removing it
        hint = "pass a file, a folder, or - for stdin"
        raise UsageError(f"{one_line(repr(name), 80)} is not a regular file", hint=hint)
    return (Source(name, read_bytes(path), kind),)


def read_sources(sources: tuple[Source, ...]) -> list[Batch]:
    """A file that was found in a folder and holds no tasks is named, and nothing else."""
    batches = []
    refused = []
    for source in sources:
        try:
            batches.append(read(source.data, source.name, source.kind))
        except NoTasks as reason:
            if not source.is_found:
                raise
            refused.append((source, reason))
    if not any(batch.items for batch in batches) and refused:
        raise refused[0][1]
    for source, refusal in refused:
        left = remark("left-out", f"the whole file: {refusal.message}", source.name, 0)
        batches.append(Batch(kind=source.kind or batches[0].kind, file=source.name, items=(), left=(left,)))
    return batches


def _in_folder(folder: Path, kind: str, *, is_own: bool) -> Iterator[Source]:
    """The files of the one kind that has its place here; else a plan of Ralph; else whatever can be read."""
    kinds = [kind] if kind in KINDS else [] if kind else list(KINDS)
    found = {one: sources for one in kinds if (sources := list(_of_kind(folder, one, is_named=bool(kind))))}
    if len(found) > 1:
        listed = ", ".join(f"{one} ({plural(len(sources), 'file')})" for one, sources in found.items())
        raise UsageError(
            f"{folder} has several kinds of tasks: {listed}", hint="choose one with --from, or pass a file"
        )
    if found:
        return iter([source for sources in found.values() for source in sources])
    if not is_own and (plan := _own_plan(folder, kind)):
        return iter([Source(str(plan), read_bytes(plan), kind)])
    files = list(_files_below(folder))
    if len(files) > _MOST_FILES:
        raise UsageError(f"{folder} has more than {_MOST_FILES} files to read", hint="pass the one to import")
    tasks = [Source(str(file), read_bytes(file), kind, is_found=len(files) > 1) for file in files]
    if not kind and len(tasks) > 1:
        tasks = [source for source in tasks if _is_broken_or_has_tasks(source)]
    if not tasks:
        raise UsageError(
            f"nothing in {folder} can be imported",
            hint="found no tasks of a known tool, no Ralph plan and no checklists; pass a file",
        )
    return iter(tasks)


def _of_kind(folder: Path, kind: str, *, is_named: bool) -> Iterator[Source]:
    """The files in the places of this kind, if one of them is of the kind."""
    paths: dict[Path, None] = {}
    for place in KINDS[kind].places:
        parts = place.split("/")
        above = folder.absolute().parts
        for count in range(len(parts)):
            start = above[len(above) - count :] if count else ()
            if len(start) == count and all(map(fnmatchcase, start, parts[:count])):
                rest = "/".join(parts[count:])
                paths |= dict.fromkeys(sorted(path for path in folder.glob(rest) if path.is_file()))
    found = [Source(str(path), read_bytes(path), kind, is_found=len(paths) > 1) for path in paths]
    if is_named or any(_kind_of(source) == kind for source in found):
        yield from (source for source in found if Path(source.name).name.lower() not in _NO_TASKS)


def _kind_of(source: Source) -> str:
    try:
        return detect(text_of_source(source.data, source.name), source.name)
    except (BadData, PlanError):
        return ""


def _is_broken_or_has_tasks(source: Source) -> bool:
    """Bullets alone are no tasks: any text has some."""
    try:
        return detect(text_of_source(source.data, source.name), source.name) != FALLBACKS[-1]
    except NoTasks:
        return False
    except BadData:
        return True  # reading it says what is wrong


def _own_plan(folder: Path, kind: str) -> Path | None:
    plans = [ref for ref in find_plans(folder.absolute(), Choice()) if kind in ("", ref.layout)]
    if len(plans) > 1:
        listed = ", ".join(str(ref.path.relative_to(folder.absolute())) for ref in plans[:10])
        raise UsageError(f"there are {len(plans)} plans in {folder}: {listed}", hint="pass the file of one of them")
    return plans[0].path if plans else None


def _files_below(folder: Path) -> Iterator[Path]:
    """Files that can hold tasks, of this folder; if it has none, of those below."""
    level = [folder]
    for _ in range(_DEEPEST):
        entries = sorted(path for one in level for path in one.iterdir())
        files = [path for path in entries if path.suffix.lower() in _SUFFIXES and path.is_file()]
        if files := [path for path in files if path.name.lower() not in _NO_TASKS]:
            return iter(files)
        level = [path for path in entries if _is_searched(path)]
    return iter(())


def _is_searched(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and path.name[0] != "." and path.name not in _PASSED_OVER
