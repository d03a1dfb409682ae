"""Linear: the CSV export of a team."""

from __future__ import annotations

import re

import msgspec

from ralph.importing.records import Form, Record, read_all
from ralph.importing.sample import Sample, rows
from ralph.importing.stories import Batch, Item

_FORM = Form(
    kind="linear",
    needs=("blockedby",),
    status=("status",),
    phase=("projectmilestone", "project"),
    parent=("parentissue",),
    silent=("uuid", "team"),
)
_KEY = re.compile(r"[A-Z][A-Z0-9]*-[0-9]+")


def recognise(sample: Sample) -> bool:
    return sample.columns >= {"id", "team", "title", "status"}


def read(text: str, file: str) -> Batch:
    def adapt(item: Item, record: Record) -> Item:
        keys = _KEY.findall(str(record.get("Blocked by", "")))
        return msgspec.structs.replace(item, depends_on=tuple(f"linear:{key}" for key in keys))

    return read_all(rows(text, file), file, _FORM, adapt=adapt)
