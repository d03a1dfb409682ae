"""Beads: `.beads/issues.jsonl`, or what `br list --json` and `bd list --json` print."""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.plan import State
from ralph.core.problems import Place, Problem
from ralph.importing import wording
from ralph.importing.records import Record, inner_records, markup, records, text_of
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch, Item, remark

KIND = "beads"


def recognise(sample: Sample) -> bool:
    record = sample.record or {}
    inner = inner_records(record)
    first = inner[0] if inner and isinstance(inner[0], dict) else record
    if (
        "feature_list" in sample.name
        or not isinstance(first.get("id"), str)
        or {"number", "iid", "passes", "steps", "tasks"} & first.keys()
    ):
        return False
    return bool({"title", "issue_type", "status"} & first.keys())


_REF = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)+(?:\.[0-9]+)*")
"""What a spec can name as the bead of a step."""
_BLOCKING = frozenset({"blocks", "blocked-by", "conditional-blocks", "waits-for", ""})
GONE = frozenset({"tombstone", "deleted"})
_WAITING = {"blocked": "blocked in beads", "deferred": "deferred in beads"}


class _Bead(Struct, frozen=True):
    item: Item
    parent: str
    is_epic: bool


def read(text: str, file: str) -> Batch:
    beads: dict[str, _Bead] = {}
    left: list[Problem] = []
    for line, record in records(text, file):
        name = text_of(record, "id")
        if not name or not name.isprintable() or " " in name or len(name) > 100:
            hint = "export it again with `br sync` or `bd export`"
            raise BadData("this bead has no ID", where=Place(file, line), hint=hint)
        if text_of(record, "status") in GONE:
            continue
        if name in beads:
            left.append(remark("left-out", f"{name} occurs twice; the later one counts", file, line))
        beads[name] = _bead(record, name, file, line)
    if not beads:
        raise BadData("no beads in this file", where=Place(file), hint="export them with `br list --json`")
    children: dict[str, list[str]] = {}
    for name, bead in beads.items():
        if bead.parent in beads:
            children.setdefault(bead.parent, []).append(name)
    epics = {name for name, bead in beads.items() if bead.is_epic and children.get(name)}
    for name in sorted(epics):
        count = len(children[name])
        parts = "its one part is a story" if count == 1 else f"its {count} parts are stories"
        message = f"{name} is an epic; {parts}"
        left.append(remark("left-out", message, file, beads[name].item.line))
    items = [_placed(bead, beads, children, epics) for name, bead in beads.items() if name not in epics]
    items.sort(key=lambda item: item.priority)
    return Batch(kind=KIND, file=file, items=tuple(items), left=tuple(left))


def _bead(record: Record, name: str, file: str, line: int) -> _Bead:
    title = wording.title(text_of(record, "title"))
    if not title:
        raise BadData(f"bead {name} has no title", where=Place(file, line), hint="add one, then export it again")
    texts = [text_of(record, key) for key in ("description", "design")]
    bodies = [markup(text, every_item=False) for text in texts]
    wanted = markup(text_of(record, "acceptance_criteria"), every_item=True)
    criteria = (*wanted.criteria, *(line for line in wanted.description.split("\n") if line), *bodies[0].criteria)
    status = text_of(record, "status")
    needs, parent = _links(record, name)
    priority = record.get("priority")
    is_number = isinstance(priority, int) and not isinstance(priority, bool)
    return _Bead(
        Item(
            key=f"{KIND}:{name}",
            title=title,
            description="\n\n".join(part.description for part in bodies if part.description),
            criteria=tuple(dict.fromkeys(criteria)),
            priority=min(max(int(priority), 0), 99) + 1 if is_number and priority is not None else 3,
            depends_on=tuple(needs),
            state=State.DONE if status == "closed" else State.BLOCKED if status in _WAITING else State.TODO,
            why=_WAITING.get(status, ""),
            notes=wording.prose(text_of(record, "notes")),
            ref=name if _REF.fullmatch(name) else "",
            line=line,
        ),
        parent,
        text_of(record, "issue_type") == "epic" or text_of(record, "type") == "epic",
    )


def _links(record: Record, name: str) -> tuple[list[str], str]:
    """The beads that this one depends on, and its parent."""
    needs: dict[str, None] = {}
    parent = text_of(record, "parent") or text_of(record, "parent_id")
    listed = record.get("dependencies")
    for link in listed if isinstance(listed, list) else ():
        kind, other = _link(link, name)
        if kind == "parent-child":
            parent = other
        elif kind in _BLOCKING and other and other != name:
            needs[other] = None
    return list(needs), parent


def _link(link: Any, name: str) -> tuple[str, str]:
    """Kind and target of a dependency: as in the file, as `show` prints it, or a bare ID."""
    if isinstance(link, str):
        return "", link
    if not isinstance(link, dict):
        return "none", ""
    if text_of(link, "issue_id") not in ("", name):
        return "none", ""
    kind = text_of(link, "type") if "depends_on_id" in link else text_of(link, "dependency_type")
    return kind, text_of(link, "depends_on_id") or text_of(link, "id")


def _placed(bead: _Bead, beads: dict[str, _Bead], children: dict[str, list[str]], epics: set[str]) -> Item:
    """With the epic as its phase. Depending on an epic means depending on all of its parts."""
    own = bead.item.key.removeprefix(f"{KIND}:")
    needs: dict[str, None] = {}
    todo, seen = list(bead.item.depends_on), set()
    while todo:
        name = todo.pop(0)
        if name in seen:
            continue
        seen.add(name)
        if name in epics:
            todo += [child for child in children[name] if child != own]
        else:
            needs[f"{KIND}:{name}"] = None
    phase = beads[bead.parent].item.title if bead.parent in beads else ""
    return msgspec.structs.replace(bead.item, depends_on=tuple(needs), phase=phase)
