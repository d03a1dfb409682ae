"""Entries of a JSON file or rows of a table as stories, by a table of the names that fields have."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.plan import State
from ralph.core.problems import Place, Problem
from ralph.importing import body, wording
from ralph.importing.stories import Batch, Item, NoTasks, plain_key, remark
from ralph.importing.wording import Fate
from ralph.plans.json_text import Locator, decode_object
from ralph.plans.markdown import scan, with_plain_line_ends

Record = dict[str, Any]


class Form(Struct, frozen=True, kw_only=True):
    """The names of the fields, in small letters without marks: `acceptancecriteria`."""

    kind: str
    id: tuple[str, ...] = ("id",)
    title: tuple[str, ...] = ("title", "name")
    description: tuple[str, ...] = ("description",)
    criteria: tuple[str, ...] = ("acceptancecriteria", "criteria")
    needs: tuple[str, ...] = ("dependencies", "dependson", "blockedby")
    status: tuple[str, ...] = ("status", "passes")
    """The first that says something counts."""
    priority: tuple[str, ...] = ("priority",)
    notes: tuple[str, ...] = ("notes",)
    phase: tuple[str, ...] = ()
    parent: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    """Empty for trackers: anyone can write an issue."""
    silent: tuple[str, ...] = ()
    """Read by the format itself."""
    has_markup: bool = True
    """A description can hold criteria of its own, under a heading or as checkboxes."""


_ALL = ("description", "criteria", "needs", "notes", "verify")
"""Fields that take everything said under any of their names."""
_FIRST = ("id", "title", "status", "priority", "phase", "parent")
"""Fields that take the first that says something."""


def slim(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def texts(value: Any) -> list[str]:
    """What a value says, as lines: a text, a number, or a list of them or of objects with a text."""
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, bool) or value is None:
        return []
    if isinstance(value, int | float):
        return [f"{value:g}" if abs(value) < 1e6 else str(value)]
    if isinstance(value, list):
        return [line for entry in value for line in texts(entry)]
    if isinstance(value, dict):
        for key in ("description", "text", "title", "name", "step", "criterion", "content", "body", "id"):
            if found := texts(value.get(key)):
                return found
        return [f"{key}: {line}" for key, inner in value.items() for line in texts(inner)]
    return []


def _says_something(value: Any) -> bool:
    return isinstance(value, bool) or bool(texts(value))


class Entry:
    """One record, with what was taken of it."""

    def __init__(self, record: Record, form: Form) -> None:
        self.record = {slim(key): value for key, value in record.items()}
        self.names = {slim(key): key for key in record}
        self.form = form

    def all(self, field: str) -> list[str]:
        return [line for name in getattr(self.form, field) for line in texts(self.record.get(name))]

    def one(self, field: str) -> str:
        return next(iter(self.all(field)), "")

    def left(self) -> Iterator[str]:
        known = {name for field in _ALL for name in getattr(self.form, field)} | set(self.form.silent)
        for field in _FIRST:
            names = getattr(self.form, field)
            known |= {next((name for name in names if _says_something(self.record.get(name))), "")}
        for name, value in self.record.items():
            if name not in known and _says_something(value) and value is not False:
                yield self.names[name] or "cells without a column"

    def fate(self) -> tuple[Fate, str]:
        """What became of the work, and the word that says so."""
        for name in self.form.status:
            value = self.record.get(name)
            if isinstance(value, bool):
                return (Fate.DONE if value else Fate.OPEN), str(value).lower()
            for word in texts(value):
                return wording.fate(word), word
        return Fate.OPEN, ""


def read_all(
    found: Iterable[tuple[int, Record]],
    file: str,
    form: Form,
    *,
    home: str = "",
    adapt: Callable[[Item, Record], Item] = lambda item, _record: item,
) -> Batch:
    """`home`: where IDs are unique. `adapt`: what the format adds to a story."""
    items: dict[str, Item] = {}
    parents: dict[str, str] = {}
    left: list[Problem] = []
    unplaced: dict[str, list[int]] = {}
    odd: dict[str, list[int]] = {}
    for line, record in found:
        entry = Entry(record, form)
        own = wording.line(entry.one("id"))
        item = _item(entry, file, line, home)
        fate, word = entry.fate()
        if fate is Fate.GONE:
            left.append(remark("left-out", f"{own or item.title!r} is {wording.line(word).lower()}", file, line))
            continue
        if fate is Fate.UNKNOWN:
            odd.setdefault(wording.line(word), []).append(line)
        if item.key in items:
            left.append(remark("left-out", f"{own} occurs twice; the later one counts", file, line))
        for name in entry.left():
            unplaced.setdefault(name, []).append(line)
        items[item.key] = adapt(item, record)
        if parent := entry.one("parent"):
            parents[item.key] = _key(form.kind, home, parent)
    for key, parent in parents.items():
        if parent not in items and key in items:
            said = f"Part of {parent.rpartition('#')[2].rpartition(':')[2]}"
            items[key] = msgspec.structs.replace(items[key], notes="\n".join(filter(None, (items[key].notes, said))))
    placed, remarks = under_parents(items, parents, file)
    left += remarks
    left += [
        remark(
            "left-out",
            f"the status {word!r}; {_count(lines, 'story is', 'stories are')} open",
            file,
            lines[0],
        )
        for word, lines in odd.items()
    ]
    if not items and not left:
        raise NoTasks("no entries in this file", where=Place(file), hint="export one that has some")
    fields = {wording.line(name): tuple(lines) for name, lines in unplaced.items()}
    return Batch(kind=form.kind, file=file, items=tuple(placed), left=tuple(left), fields=fields)


def _count(lines: list[int], one: str, many: str) -> str:
    return f"1 {one}" if len(lines) == 1 else f"{len(lines)} {many}"


def _key(kind: str, home: str, own: str) -> str:
    return plain_key(f"{kind}:{home}#{wording.line(own)}" if home else f"{kind}:{wording.line(own)}")


def _item(entry: Entry, file: str, line: int, home: str) -> Item:
    form = entry.form
    own = wording.line(entry.one("id"))
    said = entry.all("description")
    title = wording.title(entry.one("title") or (said[0].strip().split("\n")[0] if said else ""))
    if not title:
        raise BadData(f"entry {own or '?'} has no title", where=Place(file, line), hint="add one, then import it again")
    if not entry.one("title") and said and wording.title(said[0]) == title:
        said = said[1:]
    content = markup("\n\n".join(said), every_item=False) if form.has_markup else body.Body("\n\n".join(said))
    criteria = [line for text in entry.all("criteria") for line in listed(text)]
    needs = [own for text in entry.all("needs") for own in re.split(r"[,;\s]+", text.strip()) if own]
    fate, word = entry.fate()
    return Item(
        key=_key(form.kind, home, own or title),
        id=own,
        title=title,
        description=wording.prose(content.description),
        criteria=tuple(dict.fromkeys((*criteria, *content.criteria))),
        priority=rank(entry.record, form.priority),
        depends_on=tuple(dict.fromkeys(_key(form.kind, home, need) for need in needs)),
        state={Fate.DONE: State.DONE, Fate.BLOCKED: State.BLOCKED}.get(fate, State.TODO),
        why=f"{wording.line(word).lower()} in {form.kind}" if fate is Fate.BLOCKED else "",
        notes="\n".join((*(wording.prose(text) for text in entry.all("notes")), *filter(None, (content.notes,)))),
        verify=tuple(command for text in entry.all("verify") if (command := wording.line(text))),
        phase=wording.title(entry.one("phase")),
        line=line,
    )


def markup(text: str, *, every_item: bool) -> body.Body:
    plain = with_plain_line_ends(text)
    return body.read(plain, scan(plain), every_item=every_item)


def listed(text: str) -> list[str]:
    """One criterion, or several as bullets."""
    if "\n" not in text.strip():
        return (
            [words] if (words := wording.line(re.sub(r"^\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?", "", text))) else []
        )
    content = markup(text, every_item=True)
    return [*content.criteria, *(line for line in content.description.split("\n") if line.strip())]


def rank(record: Mapping[str, Any], names: tuple[str, ...]) -> float:
    """1 is the highest; 0: not said."""
    for name in names:
        value = record.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return max(0.0, min(float(value), 10_000))
        for word in texts(value):
            return float(word) if re.fullmatch(r"[0-9]{1,4}", word.strip()) else wording.level_of(word)
    return 0


def under_parents(items: dict[str, Item], parents: Mapping[str, str], file: str) -> tuple[list[Item], list[Problem]]:
    """An entry with parts and no criteria of its own is the phase of its parts; others follow their parts."""
    parts: dict[str, list[str]] = {}
    for key, parent in parents.items():
        if parent in items and parent != key:
            parts.setdefault(parent, []).append(key)
    groups = {key for key in parts if not items[key].criteria}
    placed, left = [], []
    for key, item in items.items():
        if key in groups:
            count = "its one part is a story" if len(parts[key]) == 1 else f"its {len(parts[key])} parts are stories"
            left.append(remark("left-out", f"{item.id or item.title!r} itself: {count}", file, item.line))
            continue
        above = items.get(parents.get(key, ""))
        awaited = [*item.depends_on, *parts.get(key, ())]
        if above and above.key in groups:
            awaited += above.depends_on
        needs = [leaf for need in awaited for leaf in _leaves(need, parts, groups) if leaf != key]
        whole = _in_parent(item, above, above.key in groups) if above else item
        placed.append(msgspec.structs.replace(whole, depends_on=tuple(dict.fromkeys(needs))))
    return placed, left


def _in_parent(item: Item, parent: Item, is_group: bool) -> Item:
    return part_of(item, parent) if is_group else msgspec.structs.replace(item, phase=parent.title)


def part_of(item: Item, parent: Item) -> Item:
    """With what its parent says: a session sees only this story."""
    context = "\n\n".join(
        filter(None, (f"Part of {parent.id}: {parent.title}" if parent.id else "", parent.description))
    )
    said = "\n\n".join(filter(None, (item.description, context if parent.description else "")))
    return msgspec.structs.replace(item, description=wording.prose(said), phase=item.phase or parent.title)


def _leaves(key: str, parts: Mapping[str, list[str]], groups: set[str]) -> Iterator[str]:
    seen, todo = set(), [key]
    while todo:
        one = todo.pop(0)
        if one in seen:
            continue
        seen.add(one)
        if one in groups:
            todo += parts[one]
        else:
            yield one


def decode(text: str, file: str, line: int = 1) -> Any:
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise BadData("the JSON is nested too deeply", where=Place(file, line), hint="export it again") from None
    except msgspec.DecodeError as error:
        message, where = str(error), Place(file, line)
        try:
            json.loads(text)
        except json.JSONDecodeError as located:  # it knows line and column
            message, where = located.msg, Place(file, line + located.lineno - 1, located.colno)
        except (RecursionError, ValueError):
            pass
        raise BadData(f"not valid JSON: {message}", where=where, hint="export the complete file again") from None


def records(text: str, file: str) -> Iterator[tuple[int, Record]]:
    """The objects of a JSON list, a single object, or JSON lines; each with its line."""
    text = text.lstrip("\ufeff")
    if text.lstrip("\ufeff \t\r\n").startswith("["):
        yield from located(text, file, decode(text, file), ())
    elif (whole := decode_object(text)) is not None:
        inner = inner_records(whole)
        for number, record in enumerate([whole] if inner is None else inner):
            yield 1, checked(record, Place(file, path=f"[{number}]"))
    else:
        for number, line_text in enumerate(text.splitlines(), 1):
            if line_text.strip():
                yield number, checked(decode(line_text, file, number), Place(file, number))


def located(text: str, file: str, entries: list[Any], path: tuple[str | int, ...]) -> Iterator[tuple[int, Record]]:
    """The entries of the list at `path`, with their lines."""
    locator = Locator(text.encode())
    for number, record in enumerate(entries):
        line = locator.position((*path, number)).line
        yield line, checked(record, Place(file, line, path=f"[{number}]"))


def text_of(record: Record, key: str) -> str:
    """A string; empty if it is missing, null or another type."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def names_in(record: Record, key: str) -> list[str]:
    """The names in a list of names or of objects with a name."""
    value = record.get(key)
    listed = value if isinstance(value, list) else []
    names = [entry.get("name") if isinstance(entry, dict) else entry for entry in listed]
    return [name for name in names if isinstance(name, str)]


def inner_records(record: Record) -> list[Any] | None:
    """The list inside an answer such as `{"items": […]}`."""
    return next((record[key] for key in ("items", "issues", "nodes") if isinstance(record.get(key), list)), None)


def checked(record: Any, where: Place) -> Record:
    if isinstance(record, dict):
        return record
    raise BadData("this is not an object", where=where, hint='every entry must be an object such as {"title": "…"}')
