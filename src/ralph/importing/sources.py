"""The files to import, and how to recognise their kind by content."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from ralph.core.errors import BadData, UsageError
from ralph.core.plan import Order
from ralph.core.problems import Place
from ralph.core.text import one_line
from ralph.host.files import LARGEST_PLAN, read_bytes
from ralph.importing import markdown_sources, trackers, wording
from ralph.importing.kinds import BEADS, CHECKLIST, FIX_PLAN, GITHUB, TASK_PLAN, names
from ralph.importing.stories import Batch, Item, plain_key
from ralph.importing.trackers import Record, decode, inner_records, records
from ralph.plans.integrity import decode_utf8
from ralph.plans.json_text import decode_object
from ralph.plans.registry import layout
from ralph.workspace.find import Choice, find_plans

_READERS: dict[str, Callable[[str, str], Batch]] = {
    GITHUB: trackers.read_github,
    CHECKLIST: markdown_sources.read_checklist,
    BEADS: trackers.read_beads,
    FIX_PLAN: markdown_sources.read_fix_plan,
    TASK_PLAN: markdown_sources.read_task_plan,
}

_STORY = re.compile(r"^[ \t]*(?:[-*+]|#{1,6})[ \t]+\[[ xX]\][ \t]+(?:\*\*|__)?US-[0-9]+", re.MULTILINE)
_STEP = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\][ \t]+(?:\*\*|__)[0-9]+(?:\.[0-9]+)*\.(?:[0-9]+|R[0-9]*)", re.MULTILINE)
_US_BLOCK = re.compile(r"^#{1,6}[ \t]+(?:\[[ xX]\][ \t]+)?(?:\*\*|__)?US-[0-9]+", re.MULTILINE)
_TOP = re.compile(r"^[-*+][ \t]+\[[ xX]\][ \t]", re.MULTILINE)
_BOX = re.compile(r"^[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[[ xX]\][ \t]", re.MULTILINE)
_TASK = re.compile(rf"^#{{1,6}}[ \t]+{markdown_sources.TASK_HEAD.pattern}$", re.MULTILINE | re.IGNORECASE)

_MOST_BOXES = 20_000
"""Reading more would only take time: so many are refused later anyway."""


def read(data: bytes, file: str, kind: str = "") -> Batch:
    """Raises BadData or PlanError with file and line."""
    if kind and kind not in names():
        raise UsageError(f"unknown kind of source {kind!r}", hint=f"use one of {', '.join(names())}")
    text = decode_utf8(data, file).removeprefix("\ufeff")
    if not text.strip():
        raise BadData("the file is empty", where=Place(file), hint="use a file that contains tasks")
    kind = kind or detect(text, file)
    if kind not in (GITHUB, BEADS) and (count := len(_BOX.findall(text))) > _MOST_BOXES:
        hint = "split it; plans cannot be that long"
        raise BadData(f"the file contains {count:,} tasks", where=Place(file), hint=hint)
    if kind in _READERS:
        return _READERS[kind](text, file)
    return _read_plan(data, file, kind)


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


def detect(text: str, file: str) -> str:
    is_json = text.lstrip()[:1] in ("[", "{") and not re.match(r"\s*(?:\[ \]|\[x\]|\[[^\]\n]*\]\()", text)
    if kind := _detect_json(text, file) if is_json else _detect_markdown(text, file):
        return kind
    raise BadData(
        "the kind of source could not be detected from its content",
        where=Place(file),
        hint=f"specify it with --from: {', '.join(names())}",
    )


def _detect_json(text: str, file: str) -> str:
    record: Record | None
    if text.lstrip().startswith("{"):
        record = decode_object(text.lstrip().partition("\n")[0]) or decode(text, file)
    else:
        record = next((found for _, found in records(text, file)), None)
        if record is None:
            raise BadData("the list is empty", where=Place(file), hint="export one that has entries")
    return _kind_of(record)


def _kind_of(record: Record) -> str:
    if "userStories" in record:
        return "feature" if "feature" in record else "tasks.json"
    if "tasks" in record:
        return "steps"
    if (inner := inner_records(record)) and isinstance(inner[0], dict):
        record = inner[0]
    if "number" in record:
        return GITHUB
    if "id" in record and ("title" in record or "issue_type" in record or "status" in record):
        return BEADS
    return ""


def _detect_markdown(text: str, file: str) -> str:
    if _TASK.search(text):
        return TASK_PLAN
    if _US_BLOCK.search(text) or _are_all(_STORY, text):
        return "plan.md"
    if _are_all(_STEP, text):
        return "spec.md"
    first = text.lstrip().partition("\n")[0]
    if markdown_sources.is_fix_plan(file) or re.search(r"\bfix[ _-]?plan\b", first, re.IGNORECASE):
        return FIX_PLAN
    return CHECKLIST if _BOX.search(text) else ""


def _are_all(pattern: re.Pattern[str], text: str) -> bool:
    """Whether every top-level task has an ID of this kind; else reading it as such a plan would lose some."""
    tops = [found.start() for found in _TOP.finditer(text)]
    return bool(pattern.search(text)) and all(pattern.match(text, at) for at in tops)


_BEADS = (".beads/issues.jsonl", "issues.jsonl", ".beads/beads.jsonl")
_MOST_FILES = 200


class Source(Struct, frozen=True):
    name: str
    """For messages, and to tell its tasks from those of other files."""
    data: bytes


def gather(name: str, read_stdin: Callable[[int], bytes]) -> tuple[Source, ...]:
    if name == "-":
        data = read_stdin(LARGEST_PLAN + 1)
        if len(data) > LARGEST_PLAN:
            raise BadData(f"stdin is larger than {LARGEST_PLAN:,} bytes", where=Place("-"))
        return (Source("-", data),)
    if not name or not os.path.lexists(name):
        raise UsageError(f"{one_line(repr(name), 80)} does not exist", hint="pass a file, a folder, or - for stdin")
    path = Path(name)
    if not path.is_dir():
        if not path.is_file():  # a pipe or a device: the hint must not suggest removing it
            hint = "pass a file, a folder, or - for stdin"
            raise UsageError(f"{one_line(repr(name), 80)} is not a regular file", hint=hint)
        return (Source(name, read_bytes(path)),)
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
