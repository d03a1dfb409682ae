"""The kinds of sources, and how to recognise them by their content."""

from __future__ import annotations

import re
from collections.abc import Callable

from ralph.core.errors import BadData, UsageError
from ralph.core.problems import Place
from ralph.plans.importing import beads_file, checklist, fix_plan, github, own_plan, task_plan
from ralph.plans.importing.found import Batch
from ralph.plans.importing.json_source import Record, decode, one_object, records
from ralph.plans.integrity import decode_utf8
from ralph.plans.registry import LAYOUTS

_READERS: dict[str, Callable[[str, str], Batch]] = {
    github.KIND: github.read,
    checklist.KIND: checklist.read,
    beads_file.KIND: beads_file.read,
    fix_plan.KIND: fix_plan.read,
    task_plan.KIND: task_plan.read,
}
TITLES = {
    github.KIND: github.TITLE,
    checklist.KIND: checklist.TITLE,
    beads_file.KIND: beads_file.TITLE,
    fix_plan.KIND: fix_plan.TITLE,
    task_plan.KIND: task_plan.TITLE,
}

_STORY = re.compile(r"^[ \t]*(?:[-*+]|#{1,6})[ \t]+\[[ xX]\][ \t]+(?:\*\*|__)?US-[0-9]+", re.MULTILINE)
_STEP = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\][ \t]+(?:\*\*|__)[0-9]+(?:\.[0-9]+)*\.(?:[0-9]+|R[0-9]*)", re.MULTILINE)
_US_BLOCK = re.compile(r"^#{1,6}[ \t]+(?:\[[ xX]\][ \t]+)?(?:\*\*|__)?US-[0-9]+", re.MULTILINE)
_TOP = re.compile(r"^[-*+][ \t]+\[[ xX]\][ \t]", re.MULTILINE)
_BOX = re.compile(r"^[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\[[ xX]\][ \t]", re.MULTILINE)
_TASK = re.compile(rf"^#{{1,6}}[ \t]+{task_plan.HEAD.pattern}$", re.MULTILINE | re.IGNORECASE)

_MOST_BOXES = 20_000
"""Reading more would only take time: so many are refused later anyway."""


def names() -> list[str]:
    return [*_READERS, *LAYOUTS.names()]


def read(data: bytes, file: str, kind: str = "") -> Batch:
    """Raises BadData or PlanError with file and line."""
    if kind and kind not in names():
        raise UsageError(f"unknown kind of source {kind!r}", hint=f"use one of {', '.join(names())}")
    text = decode_utf8(data, file).removeprefix("\ufeff")
    if not text.strip():
        raise BadData("the file is empty", where=Place(file), hint="use a file that contains tasks")
    kind = kind or detect(text, file)
    if kind not in ("github", "beads") and (count := len(_BOX.findall(text))) > _MOST_BOXES:
        raise BadData(
            f"the file contains {count:,} tasks", where=Place(file), hint="split it; plans cannot be that long"
        )
    if kind in _READERS:
        return _READERS[kind](text, file)
    return own_plan.read(data, file, kind)


def detect(text: str, file: str) -> str:
    found = (
        _detect_json(text, file)
        if text.lstrip()[:1] in ("[", "{") and not _is_markdown(text)
        else _detect_markdown(text, file)
    )
    if found:
        return found
    raise BadData(
        "the kind of source could not be detected from its content",
        where=Place(file),
        hint=f"specify it with --from: {', '.join(names())}",
    )


def _is_markdown(text: str) -> bool:
    return text.lstrip().startswith(("[ ]", "[x]")) or re.match(r"\s*\[[^\]\n]*\]\(", text) is not None


def _detect_json(text: str, file: str) -> str:
    record: Record | None
    if text.lstrip().startswith("{"):
        record = one_object(text.lstrip().partition("\n")[0]) or decode(text, file)
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
    inner = next((record[key] for key in ("items", "issues", "nodes") if isinstance(record.get(key), list)), None)
    if inner and isinstance(inner[0], dict):
        record = inner[0]
    if "number" in record:
        return github.KIND
    if "id" in record and ("title" in record or "issue_type" in record or "status" in record):
        return beads_file.KIND
    return ""


def _detect_markdown(text: str, file: str) -> str:
    if _TASK.search(text):
        return task_plan.KIND
    if _US_BLOCK.search(text) or _are_all(_STORY, text):
        return "plan.md"
    if _are_all(_STEP, text):
        return "spec.md"
    has_boxes = _BOX.search(text) is not None
    first = text.lstrip().partition("\n")[0]
    if fix_plan.is_named_so(file) or re.search(r"\bfix[ _-]?plan\b", first, re.IGNORECASE):
        return fix_plan.KIND
    return checklist.KIND if has_boxes else ""


def _are_all(pattern: re.Pattern[str], text: str) -> bool:
    """Whether every top-level task has an ID of this kind; else reading it as such a plan would lose some."""
    tops = [found.start() for found in _TOP.finditer(text)]
    return bool(pattern.search(text)) and all(pattern.match(text, at) for at in tops)
