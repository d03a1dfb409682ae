"""Taskmaster: `.taskmaster/tasks/tasks.json`, with a list of tasks, or with one for each tag.

A subtask is a story, and a task without subtasks. A task with subtasks is the phase of its subtasks, which repeat what
it says; to depend on it is to depend on all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ralph.importing.records import Form, Record, decode, located, read_all
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch, source_home

_OWN = {"details", "testStrategy", "subtasks", "dependencies"}
_FORM = Form(
    kind="taskmaster",
    description=("description", "details", "teststrategy"),
    needs=("dependencies",),
    status=("status",),
    phase=("tag",),
    parent=("parent",),
    silent=("subtasks", "previousstatus", "parenttaskid", "updatedat"),
    has_markup=False,
)


def lists_in(document: Any) -> dict[str, list[Any]]:
    """Tag → tasks. The older form has one list without a tag."""
    if not isinstance(document, dict):
        return {}
    if isinstance(document.get("tasks"), list):
        return {"": document["tasks"]}
    return {
        tag: of["tasks"] for tag, of in document.items() if isinstance(of, dict) and isinstance(of.get("tasks"), list)
    }


def recognise(sample: Sample) -> bool:
    tasks = [task for listed in lists_in(sample.record).values() for task in listed]
    return any(isinstance(task, dict) and _OWN & task.keys() and "status" in task for task in tasks[:20])


def read(text: str, file: str) -> Batch:
    lists = lists_in(decode(text, file))
    return read_all(_flat(text, file, lists), file, _FORM, home=source_home(file))


def _flat(text: str, file: str, lists: dict[str, list[Any]]) -> Iterator[tuple[int, Record]]:
    for tag, tasks in lists.items():
        prefix = f"{tag}:" if len(lists) > 1 else ""
        path = (tag, "tasks") if tag else ("tasks",)
        for line, task in located(text, file, tasks, path):
            own = f"{prefix}{task.get('id', '')}"
            needs = [f"{prefix}{need}" for need in task.get("dependencies") or ()]
            phase = {"tag": tag} if prefix else {}
            subtasks = [one for one in task.get("subtasks") or () if isinstance(one, dict)]
            yield (
                line,
                task | phase | {"id": own, "dependencies": needs} | ({"acceptanceCriteria": ""} if subtasks else {}),
            )
            for sub in subtasks:
                inner = [_full(str(need), own, prefix) for need in sub.get("dependencies") or ()]
                extra = {} if sub.get("subtasks") else {"subtasks": None}
                yield (
                    line,
                    sub | extra | phase | {"id": f"{own}.{sub.get('id', '')}", "dependencies": inner, "parent": own},
                )


def _full(need: str, task: str, prefix: str) -> str:
    """A subtask names its siblings by their own number, others as `4.2`."""
    return f"{prefix}{need}" if "." in need else f"{task}.{need}"
