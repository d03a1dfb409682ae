"""A session for an agent, with its task and its rights among the fields."""

from __future__ import annotations

from typing import Any

from ralph.core.ports import Rights, Session, Task


def session_of(**fields: Any) -> Session:
    parts: dict[str, dict[str, Any]] = {"task": {}, "rights": {}, "": {}}
    for name, value in fields.items():
        part = "task" if name in Task.__struct_fields__ else "rights" if name in Rights.__struct_fields__ else ""
        parts[part][name] = value
    return Session(task=Task(**parts["task"]), rights=Rights(**parts["rights"]), **parts[""])
