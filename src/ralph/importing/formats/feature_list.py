"""`feature_list.json`: features with steps to test them, which pass or do not. A list, or an object with one."""

from __future__ import annotations

from typing import Any

import msgspec

from ralph.importing import wording
from ralph.importing.formats import taskmaster
from ralph.importing.records import Form, decode, located, read_all, texts
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch, remark, source_home

_FORM = Form(
    kind="feature_list",
    title=("title", "name", "feature"),
    description=("description", "userstory", "details"),
    criteria=(
        "steps",
        "acceptancecriteria",
        "criteria",
        "verification",
        "teststeps",
        "acceptance",
        "donecriteria",
        "uservisiblebehavior",
    ),
    needs=("dependencies", "dependson", "requires"),
    status=("passes", "passed", "passing", "status", "state", "done", "completed", "implemented"),
    notes=("notes", "evidence"),
    phase=("category", "area", "phase"),
    verify=("verifycommand", "verificationcommand", "testcommand", "command"),
    has_markup=False,
)
_LISTS = ("features", "featureList", "feature_list", "tests", "items", "tasks")


def recognise(sample: Sample) -> bool:
    record = sample.record or {}
    if "userStories" in record or taskmaster.recognise(sample) or {"number", "iid"} & sample.keys:
        return False
    listed = isinstance(record.get("features"), list) or "feature_list" in sample.name
    return listed or bool({"passes", "passing"} & sample.keys)


def read(text: str, file: str) -> Batch:
    document: Any = decode(text, file)
    name = next((key for key in _LISTS if isinstance(document, dict) and isinstance(document.get(key), list)), "")
    path: tuple[str | int, ...] = (name,) if name else ()
    entries = document[name] if name else document if isinstance(document, list) else [document]
    batch = read_all(located(text, file, entries, path), file, _FORM, home=source_home(file))
    if not name:
        return batch
    said = ", ".join(wording.line(key) for key, value in document.items() if key != name and texts(value))
    left = (remark("left-out", f"what the document says beside its features: {said}", file, 1),) if said else ()
    title = next((words[0] for key in ("project", "name", "title") if (words := texts(document.get(key)))), "")
    return msgspec.structs.replace(batch, name=wording.title(title), left=batch.left + left)
