"""Backlog.md: a file for each task, with front matter, a description and acceptance criteria."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ralph.core.errors import BadData
from ralph.core.problems import Place
from ralph.importing import body, wording
from ralph.importing.document import Document
from ralph.importing.records import Form, read_all, texts
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch
from ralph.plans.markdown import Block, Kind

_FRONT = re.compile(r"\A\s*---[ \t]*\n(?P<yaml>.*?\n)---[ \t]*\n", re.DOTALL)
_KEYS = re.compile(
    r"\A\s*---[ \t]*\n(?=(?:.*\n)*?id:)(?=(?:.*\n)*?title:)(?=(?:.*\n)*?status:)(?:(?!---).*\n)*---[ \t]*\n"
)
_FORM = Form(
    kind="backlog",
    description=("description",),
    criteria=("criteria",),
    needs=("dependencies",),
    status=("status",),
    phase=("milestone",),
    parent=("parenttaskid", "parent"),
    silent=("references", "documentation", "ordinal", "body"),
    has_markup=False,
)
_CRITERIA = re.compile(r"acceptance criteria|definition of done", re.IGNORECASE)
_DESCRIBED = re.compile(r"description|implementation plan|plan", re.IGNORECASE)
_NOTED = re.compile(r"implementation notes|notes|final summary", re.IGNORECASE)
_MOST_BRACKETS = 200
_NUMBER = re.compile(r"#[0-9]+[ \t]+")


def recognise(sample: Sample) -> bool:
    return sample.has(_KEYS)


def read(text: str, file: str) -> Batch:
    front = _FRONT.match(text)
    record = _fields(front["yaml"], file) if front else None
    if not isinstance(record, dict):
        raise BadData("there is no front matter", where=Place(file, 1), hint="a task starts with `---` and its `id:`")
    skipped = text[: front.end()].count("\n") if front else 0
    document = Document("\n" * skipped + (text[front.end() :] if front else text), "backlog", file)
    fields = {str(key): value if isinstance(value, list | int) else str(value or "") for key, value in record.items()}
    fields |= _sections(document)
    linked = [line for key in ("references", "documentation") for line in texts(fields.get(key))]
    batch = read_all([(1, fields)], file, _FORM)
    document.items = [
        msgspec.structs.replace(
            item,
            criteria=tuple(
                _NUMBER.sub("", words, count=1) if _NUMBER.match(words) else words for words in item.criteria
            ),
            notes="\n".join(filter(None, (item.notes, f"References: {', '.join(linked)}" if linked else ""))),
        )
        for item in batch.items
    ]
    if not batch.items:
        return batch
    document.left += batch.left
    return document.batch("no task in this file", "a task has a title")


def _fields(text: str, file: str) -> Any:
    """Every value as a text. Aliases are refused: a few lines of them can stand for gigabytes."""
    import yaml

    if text.count("[") + text.count("{") > _MOST_BRACKETS:
        raise BadData("the front matter is nested too deeply", where=Place(file, 1), hint="flatten it")
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.BaseLoader)):
            hint = "write the value itself"
            raise BadData("the front matter has a YAML alias", where=Place(file, 1), hint=hint)
        return yaml.load(text, Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = text[: mark.index].count("\n") + 2 if mark else 1
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise BadData(f"the front matter is not YAML: {problem}", where=Place(file, line), hint="correct it") from None


def _sections(document: Document) -> dict[str, Any]:
    found: dict[str, Any] = {"description": [], "criteria": [], "notes": []}
    blocks = document.blocks
    for at, block in enumerate(blocks):
        if block.kind is not Kind.HEADING or block.level > 2:
            continue
        title = wording.title(document.words(block))
        inner = blocks[at + 1 : document.end_of_section(at)]
        if _CRITERIA.fullmatch(title):
            found["criteria"] += [list(body.read(document.text, inner, every_item=True).criteria)]
        elif _DESCRIBED.fullmatch(title) or _NOTED.fullmatch(title):
            said = _prose(document, inner)
            kept = f"{title}:\n\n{said}" if said and title.lower() != "description" else said
            found["notes" if _NOTED.fullmatch(title) else "description"].append(kept)
        else:
            continue
        document.take(at, document.end_of_section(at))
    return {key: value for key, value in found.items() if value}


def _prose(document: Document, inner: list[Block]) -> str:
    """As it is written: what looks like a criterion here is a remark."""
    if not inner:
        return ""
    end = max(block.end for block in inner)
    return wording.prose(wording.without_comments(document.text[inner[0].start : end]))
