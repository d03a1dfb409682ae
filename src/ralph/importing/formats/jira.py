"""Jira: the CSV export of a search. An epic, and an issue with sub-tasks and no criteria, is the phase of its parts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import msgspec

from ralph.core.plan import State
from ralph.importing.records import Form, Record, read_all, slim, texts
from ralph.importing.sample import Sample, rows
from ralph.importing.stories import Batch, Item

_FORM = Form(
    kind="jira",
    id=("issuekey",),
    title=("summary",),
    criteria=("customfieldacceptancecriteria", "acceptancecriteria"),
    needs=("blockedby",),
    status=("status",),
    phase=("fixversions", "fixversion", "sprint"),
    parent=("parentkey",),
    silent=(
        "issueid",
        "statuscategory",
        "resolution",
        "parent",
        "parentid",
        "customfieldepiclink",
        "epiclink",
        "parentsummary",
    ),
)
_BLOCKED = re.compile(r"inwardissuelinkblock\w*|isblockedby|blockedby")
_GIVEN_UP = re.compile(r"won.?t |duplicate|cannot reproduce|declined|incomplete", re.IGNORECASE)
_MARKUP = (
    (re.compile(r"^h([1-6])\.[ \t]*", re.MULTILINE), lambda found: "#" * int(found[1]) + " "),
    (re.compile(r"^(\*+)(?=[ \t])", re.MULTILINE), lambda found: "  " * (len(found[1]) - 1) + "-"),
    (re.compile(r"^#(?=[ \t](?!#))", re.MULTILINE), lambda _found: "1."),
    (re.compile(r"\{(?:code|noformat)(?::[^}\n]*)?\}"), lambda _found: "\n```\n"),
)
"""Jira's own markup as Markdown: headings, lists, code."""


def recognise(sample: Sample) -> bool:
    return sample.columns >= {"summary", "issue key"}


def read(text: str, file: str) -> Batch:
    found = list(rows(text, file))
    keys = {own: key for _, row in found for own in texts(row.get("Issue id")) for key in texts(row.get("Issue key"))}

    def adapt(item: Item, record: Record) -> Item:
        is_done = "done" in [word.strip().lower() for word in texts(record.get("Status Category"))]
        state = State.DONE if is_done and item.state is State.TODO else item.state
        return msgspec.structs.replace(item, state=state)

    return read_all(_readable(found, keys), file, _FORM, adapt=adapt)


def _readable(found: list[tuple[int, Record]], keys: dict[str, str]) -> Iterator[tuple[int, Record]]:
    for line, row in found:
        by_name: dict[str, Any] = {slim(name): value for name, value in row.items()}
        listed = [by_name.get(name) for name in ("parent", "parentid", "customfieldepiclink", "epiclink")]
        parent = next((words[0] for words in map(texts, listed) if words), "")
        given_up = [word for word in texts(by_name.get("resolution")) if _GIVEN_UP.search(word)]
        readable = {name: value for name, value in row.items() if not _BLOCKED.fullmatch(slim(name))}
        blockers = [key for name, value in row.items() if name not in readable for key in texts(value)]
        if blockers:
            readable["blocked by"] = blockers
        if parent:
            readable["parent key"] = keys.get(parent, parent)
        if given_up:
            readable["Status"] = "won't do"
        if description := "\n".join(texts(row.get("Description"))):
            for pattern, replacement in _MARKUP:
                description = pattern.sub(replacement, description)
            readable["Description"] = description
        yield line, readable
