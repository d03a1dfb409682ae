"""Kiro: `.kiro/specs/NAME/tasks.md`. `[-]` is in progress, `[~]` is queued, `[ ]*` is optional."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import msgspec

from ralph.importing.document import Document
from ralph.importing.formats import numbered
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch
from ralph.plans.json_text import decode_object

_TASK = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX~-]\]\*?[ \t]+[0-9]+[.)]?[ \t]+\S", re.MULTILINE)
_PART = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX~-]\]\*?[ \t]+[0-9]+\.[0-9]+[.)]?[ \t]+\S", re.MULTILINE)
_GRAPH = re.compile(r"\{\s*\"waves\".*\}", re.DOTALL)
_REQUIREMENTS = re.compile(r"^[ \t]*[-*+][ \t]+_?\**(?:Requirements|Validates)\b[^\n]*:", re.MULTILINE | re.IGNORECASE)


def recognise(sample: Sample) -> bool:
    return sample.has(_TASK) or (sample.has(_PART) and sample.has(_REQUIREMENTS))


def read(text: str, file: str) -> Batch:
    document = numbered.read(text, file, numbered.Numbering(kind="kiro"))
    waves = [] if any(item.depends_on for item in document.items) else _waves(document)
    parts = {
        own: [item.key for item in document.items if f"{item.id}.".startswith(f"{own}.")]
        for wave in waves
        for own in wave
    }
    needs: dict[str, list[str]] = {}
    for before, wave in pairwise(waves):
        for own in wave:
            for key in parts[own]:
                needs.setdefault(key, []).extend(key for needed in before for key in parts[needed])
    document.items = [
        msgspec.structs.replace(item, depends_on=tuple(dict.fromkeys(needs[item.key]))) if item.key in needs else item
        for item in document.items
    ]
    return document.batch(*numbered.NOTHING)


def _waves(document: Document) -> list[list[str]]:
    """The "Task Dependency Graph": lists of tasks, each of which waits for the list before."""
    for at, block in enumerate(document.blocks):
        found = _GRAPH.search(document.text[block.start : block.end])
        graph: dict[str, Any] = (decode_object(found[0]) or {}) if found else {}
        waves = graph.get("waves")
        if isinstance(waves, list):
            document.take(at, at + 1)
            listed = [wave.get("tasks") for wave in waves if isinstance(wave, dict)]
            return [[str(own) for own in tasks] for tasks in listed if isinstance(tasks, list)]
    return []
