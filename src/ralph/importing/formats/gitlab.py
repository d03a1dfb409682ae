"""GitLab issues: the CSV export of a project, `glab issue list -O json`, or the API's list."""

from __future__ import annotations

import re

import msgspec

from ralph.importing.formats import github
from ralph.importing.records import Form, Record, read_all, records, text_of
from ralph.importing.sample import Sample, rows
from ralph.importing.stories import Batch, Item

_FORM = Form(
    kind="gitlab",
    id=("iid", "issueid"),
    status=("state",),
    needs=(),
    priority=(),
    notes=("weburl", "url"),
    phase=("milestone",),
    silent=("id", "projectid", "labels", "closedatutc", "type", "references", "links"),
)
_URL = re.compile(r"https?://[^/\s]+/([\w./-]+?)/-/(?:issues|work_items)/[0-9]+")
_COLUMNS = frozenset({"issue id", "title", "url", "state"})


def recognise(sample: Sample) -> bool:
    return "iid" in sample.keys or sample.columns >= _COLUMNS


def read(text: str, file: str) -> Batch:
    found = list(records(text, file) if text.lstrip()[:1] in ("[", "{") else rows(text, file))
    url = next((text_of(record, key) for _, record in found for key in ("web_url", "URL") if record.get(key)), "")
    where = _URL.search(url)
    home = where[1] if where else ""

    def adapt(item: Item, record: Record) -> Item:
        labels = record.get("labels", record.get("Labels"))
        names = labels if isinstance(labels, list) else str(labels or "").split(",")
        level = next((level for name in names if (level := github.level(name))), 0)
        body = text_of(record, "description") or text_of(record, "Description")
        needs = tuple(key.replace("github:", "gitlab:", 1) for key in github.needs(body, home))
        return msgspec.structs.replace(
            item, priority=level, depends_on=tuple(need for need in needs if need != item.key)
        )

    return read_all(found, file, _FORM, home=home or "-", adapt=adapt)
