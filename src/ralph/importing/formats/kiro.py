"""Kiro: `.kiro/specs/NAME/tasks.md`. `[-]` is in progress, `[~]` is queued, `[ ]*` is optional."""

from __future__ import annotations

import re

from ralph.importing.formats import numbered
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch

_TASK = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX~-]\]\*?[ \t]+[0-9]+[.)]?[ \t]+\S", re.MULTILINE)
_PART = re.compile(r"^[ \t]*[-*+][ \t]+\[[ xX~-]\]\*?[ \t]+[0-9]+\.[0-9]+[.)]?[ \t]+\S", re.MULTILINE)
_REQUIREMENTS = re.compile(r"^[ \t]*[-*+][ \t]+_?\**(?:Requirements|Validates)\b[^\n]*:", re.MULTILINE | re.IGNORECASE)


def recognise(sample: Sample) -> bool:
    return sample.has(_TASK) or (sample.has(_PART) and sample.has(_REQUIREMENTS))


def read(text: str, file: str) -> Batch:
    return numbered.batch(text, file, numbered.Numbering(kind="kiro"))
