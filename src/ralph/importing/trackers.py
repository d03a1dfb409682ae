"""Issues exported by trackers as JSON: GitHub (`gh issue list --json …` or the REST API) and beads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.plan import State
from ralph.core.problems import Place, Problem
from ralph.importing import body, wording
from ralph.importing.kinds import BEADS, GITHUB
from ralph.importing.markdown_sources import level_of
from ralph.importing.stories import Batch, Item, remark
from ralph.plans.json_text import Locator, decode_object
from ralph.plans.markdown import Kind, scan, with_plain_line_ends

Record = dict[str, Any]


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
        locator = Locator(text.encode())
        for number, record in enumerate(decode(text, file)):
            line = locator.position((number,)).line
            yield line, _checked(record, Place(file, line, path=f"[{number}]"))
    elif (whole := decode_object(text)) is not None:
        inner = inner_records(whole)
        for number, record in enumerate([whole] if inner is None else inner):
            yield 1, _checked(record, Place(file, path=f"[{number}]"))
    else:
        for number, line_text in enumerate(text.splitlines(), 1):
            if line_text.strip():
                yield number, _checked(decode(line_text, file, number), Place(file, number))


def inner_records(record: Record) -> list[Any] | None:
    """The list inside an answer such as `{"items": […]}`."""
    return next((record[key] for key in ("items", "issues", "nodes") if isinstance(record.get(key), list)), None)


def _checked(record: Any, where: Place) -> Record:
    if isinstance(record, dict):
        return record
    raise BadData("this is not an object", where=where, hint='every entry must be an object such as {"title": "…"}')


def _text_of(record: Record, key: str) -> str:
    """A string; empty if it is missing, null or another type."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _names_in(record: Record, key: str) -> list[str]:
    """The names in a list of names or of objects with a name."""
    value = record.get(key)
    listed = value if isinstance(value, list) else []
    names = [entry.get("name") if isinstance(entry, dict) else entry for entry in listed]
    return [name for name in names if isinstance(name, str)]


_URL = re.compile(r"https?://[^/\s]+/(?:repos/)?([\w.-]+/[\w.-]+)/(?:issues|pull)/([0-9]+)")
_ISSUE = r"(?:(?:[\w.-]+/[\w.-]+)?#[0-9]+|https?://[^\s)]+/issues/[0-9]+)"
_NEEDS = re.compile(
    r"\b(?:depends[ \t]+(?:up)?on|blocked[ \t]+by|requires)\b[ \t]*:?[*_]*[ \t]*"
    rf"(?P<what>{_ISSUE}(?:[ \t]*(?:,|and|&)+[ \t]*{_ISSUE})*)",
    re.IGNORECASE,
)
_ONE = re.compile(r"(?:([\w.-]+/[\w.-]+))?#([0-9]+)|https?://[^/\s]+/([\w.-]+/[\w.-]+)/issues/([0-9]+)")
_ONLY_ISSUE = re.compile(rf"{_ISSUE}[.]?")
_OATH = re.compile(r"i(?:['’]ve| have| agree| am| confirm| understand| would| searched| read)\b", re.IGNORECASE)
"""Checkboxes of issue templates about the reporter, not about the work."""
_GIVEN_UP = frozenset({"not_planned", "duplicate"})


def read_github(text: str, file: str) -> Batch:
    items: dict[str, Item] = {}
    problems: list[Problem] = []
    for line, record in records(text, file):
        if why := _why_left_out(record):
            number = record.get("number", "?")
            problems.append(remark("left-out", f"left out: #{number} is {why}", file, line))
            continue
        item = _issue(record, file, line)
        if item.key in items:
            problems.append(remark("left-out", f"left out: {item.key} occurs twice; the later one counts", file, line))
        items[item.key] = item
    if not items and not problems:
        raise BadData("no issues in this file", where=Place(file), hint="export them with `gh issue list --json …`")
    by_number = sorted(items.values(), key=lambda item: int(item.key.rpartition("#")[2]))
    return Batch(kind=GITHUB, file=file, items=tuple(by_number), problems=tuple(problems))


def _why_left_out(record: Record) -> str:
    url = _text_of(record, "url") or _text_of(record, "html_url")
    if record.get("pull_request") is not None or "/pull/" in url:
        return "a pull request"
    reason = (_text_of(record, "state_reason") or _text_of(record, "stateReason")).lower()
    return f"closed as {reason.replace('_', ' ')}" if reason in _GIVEN_UP else ""


def _issue(record: Record, file: str, line: int) -> Item:
    number = record.get("number")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        hint = "export it with `--json number,title,body,…`"
        raise BadData("this issue has no number", where=Place(file, line), hint=hint)
    title = wording.title(_text_of(record, "title"))
    if not title:
        hint = "export it with `--json …,title,…`"
        raise BadData(f"issue #{number} has no title", where=Place(file, line), hint=hint)
    url = _text_of(record, "html_url") or _text_of(record, "url")
    where = _URL.search(url)
    home = where[1] if where else ""
    text = with_plain_line_ends(_text_of(record, "body"))
    content = body.read(text, scan(text), every_item=False)
    parts = [key for words in content.criteria if _ONLY_ISSUE.fullmatch(words) for key in _keys(words, home)]
    criteria = tuple(c for c in content.criteria if not _ONLY_ISSUE.fullmatch(c) and not _OATH.match(c))
    labels = _names_in(record, "labels")
    milestone = record.get("milestone")
    needs = dict.fromkeys((*_needs(text, home), *parts))
    key = f"{GITHUB}:{home}#{number}"
    return Item(
        key=key,
        title=title,
        description=content.description,
        criteria=criteria,
        priority=next((level for label in labels if (level := level_of(label))), 0),
        depends_on=tuple(need for need in needs if need != key),
        state=State.DONE if _text_of(record, "state").lower() == "closed" else State.TODO,
        notes="\n".join(part for part in (content.notes, wording.line(url)) if part),
        phase=wording.title(_text_of(milestone, "title")) if isinstance(milestone, dict) else "",
        line=line,
    )


def _needs(text: str, home: str) -> Iterator[str]:
    """Issues that this one depends on. References in code are examples and do not count."""
    for block in scan(text):
        if block.kind is not Kind.OTHER:
            for found in _NEEDS.finditer(wording.without_comments(text[block.text : block.end])):
                yield from _keys(found["what"], home)


def _keys(text: str, home: str) -> Iterator[str]:
    for found in _ONE.finditer(text):
        yield f"{GITHUB}:{found[1] or found[3] or home}#{int(found[2] or found[4])}"


_REF = re.compile(r"[A-Za-z][A-Za-z0-9_]*(?:-[A-Za-z0-9_]+)+(?:\.[0-9]+)*")
"""What a spec can name as the bead of a step."""
_BLOCKING = frozenset({"blocks", "blocked-by", "conditional-blocks", "waits-for", ""})
_GONE = frozenset({"tombstone", "deleted"})
_WAITING = {"blocked": "blocked in beads", "deferred": "deferred in beads"}


class _Bead(Struct, frozen=True):
    item: Item
    parent: str
    is_epic: bool


def read_beads(text: str, file: str) -> Batch:
    beads: dict[str, _Bead] = {}
    problems: list[Problem] = []
    for line, record in records(text, file):
        name = _text_of(record, "id")
        if not name or not name.isprintable() or " " in name or len(name) > 100:
            hint = "export it again with `br sync` or `bd export`"
            raise BadData("this bead has no ID", where=Place(file, line), hint=hint)
        if _text_of(record, "status") in _GONE:
            continue
        if name in beads:
            problems.append(remark("left-out", f"left out: {name} occurs twice; the later one counts", file, line))
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
        message = f"left out: {name} is an epic; {parts}"
        problems.append(remark("left-out", message, file, beads[name].item.line))
    items = [_placed(bead, beads, children, epics) for name, bead in beads.items() if name not in epics]
    items.sort(key=lambda item: item.priority)
    return Batch(kind=BEADS, file=file, items=tuple(items), problems=tuple(problems))


def _bead(record: Record, name: str, file: str, line: int) -> _Bead:
    title = wording.title(_text_of(record, "title"))
    if not title:
        raise BadData(f"bead {name} has no title", where=Place(file, line), hint="add one, then export it again")
    texts = [_text_of(record, key) for key in ("description", "design")]
    bodies = [_body(text, every_item=False) for text in texts]
    wanted = _body(_text_of(record, "acceptance_criteria"), every_item=True)
    criteria = (*wanted.criteria, *(line for line in wanted.description.split("\n") if line), *bodies[0].criteria)
    status = _text_of(record, "status")
    needs, parent = _links(record, name)
    priority = record.get("priority")
    is_number = isinstance(priority, int) and not isinstance(priority, bool)
    return _Bead(
        Item(
            key=f"{BEADS}:{name}",
            title=title,
            description="\n\n".join(part.description for part in bodies if part.description),
            criteria=tuple(dict.fromkeys(criteria)),
            priority=min(max(int(priority), 0), 99) + 1 if is_number and priority is not None else 3,
            depends_on=tuple(needs),
            state=State.DONE if status == "closed" else State.BLOCKED if status in _WAITING else State.TODO,
            why=_WAITING.get(status, ""),
            notes=wording.prose(_text_of(record, "notes")),
            ref=name if _REF.fullmatch(name) else "",
            line=line,
        ),
        parent,
        _text_of(record, "issue_type") == "epic" or _text_of(record, "type") == "epic",
    )


def _body(text: str, *, every_item: bool) -> body.Body:
    plain = with_plain_line_ends(text)
    return body.read(plain, scan(plain), every_item=every_item)


def _links(record: Record, name: str) -> tuple[list[str], str]:
    """The beads that this one depends on, and its parent."""
    needs: dict[str, None] = {}
    parent = _text_of(record, "parent") or _text_of(record, "parent_id")
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
    if _text_of(link, "issue_id") not in ("", name):
        return "none", ""
    kind = _text_of(link, "type") if "depends_on_id" in link else _text_of(link, "dependency_type")
    return kind, _text_of(link, "depends_on_id") or _text_of(link, "id")


def _placed(bead: _Bead, beads: dict[str, _Bead], children: dict[str, list[str]], epics: set[str]) -> Item:
    """With the epic as its phase. Depending on an epic means depending on all of its parts."""
    own = bead.item.key.removeprefix(f"{BEADS}:")
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
            needs[f"{BEADS}:{name}"] = None
    phase = beads[bead.parent].item.title if bead.parent in beads else ""
    return msgspec.structs.replace(bead.item, depends_on=tuple(needs), phase=phase)
