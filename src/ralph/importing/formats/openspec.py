"""OpenSpec: `openspec/changes/NAME/tasks.md`, with sections `## 1. …` and tasks `- [ ] 1.1 …`."""

from __future__ import annotations

import re

from ralph.importing.formats import kiro, numbered
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch

_TASK = re.compile(r"^[-*+][ \t]+\[[ xX~-]\][ \t]+[0-9]+\.[0-9]+(?:\.[0-9]+)*[.:)]?[ \t]+\S", re.MULTILINE)


def recognise(sample: Sample) -> bool:
    return sample.has(_TASK) and not kiro.recognise(sample)


def read(text: str, file: str) -> Batch:
    return numbered.batch(text, file, numbered.Numbering(kind="openspec", in_progress="~"))
