"""Which kind of source a text is, by its content. Where several kinds fit, its place decides, or the user has to."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib import import_module
from types import ModuleType

from ralph.core.errors import BadData
from ralph.core.problems import Place
from ralph.importing.document import BOX
from ralph.importing.kinds import FALLBACKS, KINDS, names
from ralph.importing.sample import Sample, look
from ralph.importing.stories import NoTasks

_STORY = re.compile(r"^[ \t]*(?:[-*+]|#{1,6})[ \t]+\[[ xX]\][ \t]+(?:\*\*|__)?US-[0-9]+", re.MULTILINE)
_STEP = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX]\][ \t]+(?:\*\*|__)[0-9]+(?:\.[0-9]+)*\.(?:[0-9]+|R[0-9]*)", re.MULTILINE)
_US_BLOCK = re.compile(r"^#{1,6}[ \t]+(?:\[[ xX]\][ \t]+)?(?:\*\*|__)?US-[0-9]+", re.MULTILINE)
_TOP = re.compile(r"^[-*+][ \t]+\[[ xX]\][ \t]", re.MULTILINE)


def format_of(kind: str) -> ModuleType:
    return import_module(f"ralph.importing.formats.{KINDS[kind].module}")


def detect(text: str, file: str) -> str:
    """Raises BadData if no kind fits, or several."""
    sample = look(text, file)
    found = [*_own(sample), *(kind for kind in KINDS if kind not in FALLBACKS and format_of(kind).recognise(sample))]
    if len(found) > 1:
        found = [kind for kind in found if is_in_its_place(kind, file)] or found
    if found == ["kiro", "plans"]:  # the numbered checkboxes are the steps of the tasks in the headings
        found = ["plans"]
    if len(found) > 1:
        hint = f"specify it with --from {' or --from '.join(found)}"
        raise BadData(f"this could be {' or '.join(found)}", where=Place(file), hint=hint)
    if not found and sample.is_markdown:
        found = [kind for kind in FALLBACKS if format_of(kind).recognise(sample)][:1]
    if found:
        return found[0]
    raise NoTasks(
        "the kind of source could not be detected from its content",
        where=Place(file),
        hint=f"specify it with --from: {', '.join(names())}",
    )


def is_in_its_place(kind: str, file: str) -> bool:
    if kind not in KINDS:
        return False
    name = "/" + file.replace("\\", "/")
    return any(fnmatchcase(name, f"*/{place}") for place in KINDS[kind].places if "/" in place)


def _own(sample: Sample) -> Iterator[str]:
    """The layouts of Ralph."""
    record = sample.record or {}
    if isinstance(stories := record.get("userStories"), list):
        if "feature" in record:
            yield "feature"
        elif any(isinstance(story, dict) and "reviewStatus" in story for story in stories):
            yield "tasks.json"
    elif "tasks" in record and not any(format_of(kind).recognise(sample) for kind in ("taskmaster", "feature_list")):
        yield "steps"
    elif sample.has(_US_BLOCK) or _are_all(_STORY, sample):
        yield "plan.md"
    elif _are_all(_STEP, sample):
        yield "spec.md"


def _are_all(pattern: re.Pattern[str], sample: Sample) -> bool:
    """Whether every top-level task has an ID of this kind; else reading it as such a plan would lose some."""
    text = sample.text
    tops = [found.start() for found in _TOP.finditer(text)]
    return sample.has(pattern) and all(pattern.match(text, at) for at in tops)


def count_boxes(text: str) -> int:
    return sum(1 for _ in BOX.finditer(text))
