"""`.ralph/prd_archive.json`: finished tasks of the layout `steps`, moved out of the plan when work is added."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from ralph.core.errors import BadData
from ralph.core.plan import Plan
from ralph.core.ports import PlanRef
from ralph.core.problems import Place
from ralph.host.files import read_bytes, write_bytes
from ralph.plans.registry import traits

FILE = "prd_archive.json"


def archive_path(ref: PlanRef) -> Path:
    return ref.folder / FILE


def to_archive(plan: Plan, wanted: Iterable[str]) -> list[str]:
    """The wanted tasks that are done and that no remaining task depends on."""
    going = {story.id for story in plan.stories if story.is_done} & set(wanted)
    while kept := going & {need for story in plan.stories if story.id not in going for need in story.depends_on}:
        going -= kept
    return [story.id for story in plan.stories if story.id in going]


def archived_ids(ref: PlanRef) -> tuple[str, ...]:
    if not traits(ref.layout).archives_done:
        return ()
    return tuple(str(task.get("id", "")) for task in _read(ref)["tasks"] if isinstance(task, dict))


def put_into_archive(ref: PlanRef, source: bytes, ids: Iterable[str], now: float) -> None:
    """Their text as it is in the plan, with the time. A task that is already archived is not written twice."""
    document = _read(ref)
    there = {str(task.get("id", "")) for task in document["tasks"] if isinstance(task, dict)}
    wanted = set(ids) - there
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))
    tasks = msgspec.json.decode(source)["tasks"]
    document["tasks"] += [task | {"archivedAt": at} for task in tasks if str(task["id"]) in wanted]
    write_bytes(archive_path(ref), msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n")


def _read(ref: PlanRef) -> dict[str, Any]:
    """Read strictly: nothing is added to a damaged archive, so that nothing in it is lost."""
    path = archive_path(ref)
    if not path.exists():
        return {"tasks": []}
    try:
        document = msgspec.json.decode(read_bytes(path, within=ref.root))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadData(
            f"it is not valid JSON: {error}", where=Place(str(path)), hint="fix it, or move it away"
        ) from None
    if not isinstance(document, dict) or not isinstance(document.get("tasks"), list):
        raise BadData('it has no list of "tasks"', where=Place(str(path)), hint="fix it, or move it away")
    return document
