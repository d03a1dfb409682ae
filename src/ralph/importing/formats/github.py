"""GitHub issues: `gh issue list --json …`, or the REST API's list."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ralph.core.errors import BadData
from ralph.core.plan import State
from ralph.core.problems import Place, Problem
from ralph.importing import body, wording
from ralph.importing.records import Record, names_in, records, text_of
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch, Item, remark
from ralph.plans.markdown import Kind, scan, with_plain_line_ends

KIND = "github"


def recognise(sample: Sample) -> bool:
    return "number" in sample.keys and "iid" not in sample.keys


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


def read(text: str, file: str) -> Batch:
    items: dict[str, Item] = {}
    left: list[Problem] = []
    for line, record in records(text, file):
        if why := _why_left_out(record):
            number = record.get("number", "?")
            left.append(remark("left-out", f"#{number} is {why}", file, line))
            continue
        item = _issue(record, file, line)
        if item.key in items:
            left.append(remark("left-out", f"{item.key} occurs twice; the later one counts", file, line))
        items[item.key] = item
    if not items and not left:
        raise BadData("no issues in this file", where=Place(file), hint="export them with `gh issue list --json …`")
    by_number = sorted(items.values(), key=lambda item: int(item.key.rpartition("#")[2]))
    return Batch(kind=KIND, file=file, items=tuple(by_number), left=tuple(left))


def _why_left_out(record: Record) -> str:
    url = text_of(record, "url") or text_of(record, "html_url")
    if record.get("pull_request") is not None or "/pull/" in url:
        return "a pull request"
    reason = (text_of(record, "state_reason") or text_of(record, "stateReason")).lower()
    return f"closed as {reason.replace('_', ' ')}" if reason in _GIVEN_UP else ""


def _issue(record: Record, file: str, line: int) -> Item:
    number = record.get("number")
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        hint = "export it with `--json number,title,body,…`"
        raise BadData("this issue has no number", where=Place(file, line), hint=hint)
    title = wording.title(text_of(record, "title"))
    if not title:
        hint = "export it with `--json …,title,…`"
        raise BadData(f"issue #{number} has no title", where=Place(file, line), hint=hint)
    url = text_of(record, "html_url") or text_of(record, "url")
    where = _URL.search(url)
    home = where[1] if where else ""
    text = with_plain_line_ends(text_of(record, "body"))
    content = body.read(text, scan(text), every_item=False)
    parts = [key for words in content.criteria if _ONLY_ISSUE.fullmatch(words) for key in _keys(words, home)]
    criteria = tuple(c for c in content.criteria if not _ONLY_ISSUE.fullmatch(c) and not _OATH.match(c))
    labels = names_in(record, "labels")
    milestone = record.get("milestone")
    awaited = dict.fromkeys((*needs(text, home), *parts))
    key = f"{KIND}:{home}#{number}"
    return Item(
        key=key,
        title=title,
        description=content.description,
        criteria=criteria,
        priority=next((found for label in labels if (found := level(label))), 0),
        depends_on=tuple(need for need in awaited if need != key),
        state=State.DONE if text_of(record, "state").lower() == "closed" else State.TODO,
        notes="\n".join(part for part in (content.notes, wording.line(url)) if part),
        phase=wording.title(text_of(milestone, "title")) if isinstance(milestone, dict) else "",
        line=line,
    )


def level(label: str) -> int:
    """Of labels such as `priority: high`, `P1` and `critical`; `high contrast` and `backlog` say something else."""
    return wording.level_of(label)


def needs(text: str, home: str) -> Iterator[str]:
    """Issues that this one depends on. References in code are examples and do not count."""
    for block in scan(text):
        if block.kind is not Kind.OTHER:
            for found in _NEEDS.finditer(wording.without_comments(text[block.text : block.end])):
                yield from _keys(found["what"], home)


def _keys(text: str, home: str) -> Iterator[str]:
    for found in _ONE.finditer(text):
        yield f"{KIND}:{found[1] or found[3] or home}#{int(found[2] or found[4])}"
