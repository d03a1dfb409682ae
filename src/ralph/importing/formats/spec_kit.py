"""spec-kit: `specs/NNN-name/tasks.md`, with tasks such as `- [ ] T012 [P] [US1] Create the model in src/user.py`.

Dependencies are in the text of a task (`depends on T003`) and in a section of their own (`T008 blocks T009, T015`;
`Tests (T004-T007) before implementation (T008-T014)`). There, one on a later task is not taken: it is usually prose.
"""

from __future__ import annotations

import re

import msgspec

from ralph.importing.document import Document
from ralph.importing.formats import numbered
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch, Item
from ralph.plans.markdown import Kind

_ID = r"T[0-9]{1,4}(?:\.[0-9]+)?[a-z]?"
_TASK = re.compile(rf"^[ \t]*[-*+][ \t]+\[[ xX~-]\][ \t]+\*{{0,2}}{_ID}\b", re.MULTILINE)
_IDS = rf"{_ID}(?:\s*(?:-|–|—|to|through|,|and|&|/|\+)\s*{_ID})*"
_NUMBERED = re.compile(rf"\*{{0,2}}(?P<id>{_ID})\*{{0,2}}[:.]?\*{{0,2}}[ \t]+(?P<title>.*)", re.DOTALL)
_STORY = re.compile(r"\[(US[0-9]+)\][ \t]*")
_MARKS = re.compile(r"\A(?:\[(?:P|US[0-9]+)\][ \t]*|\(P\)[ \t]*)+")
_FORWARD = re.compile(
    rf"({_IDS})(?:(?!{_ID})[^\n;.])*?\b(?:blocks?|before|unblocks?|precedes?)\b(?:(?!{_ID})[^\n;.])*?({_IDS})"
)
_BACKWARD = re.compile(
    rf"({_IDS})(?:(?!{_ID})[^\n;.])*?\b(?:depends?(?: on)?|requires?|after|needs?|blocked by|follows?)\b"
    rf"(?:(?!{_ID})[^\n;.])*?({_IDS})"
)
_RANGE = re.compile(rf"({_ID})\s*(?:-|–|—|to|through)\s*({_ID})|({_ID})")


def recognise(sample: Sample) -> bool:
    return sample.has(_TASK)


def read(text: str, file: str) -> Batch:
    form = numbered.Numbering(kind="spec-kit", id=_NUMBERED, in_progress="~", marks=_MARKS)
    document = numbered.read(text, file, form)
    order = {item.id: at for at, item in enumerate(document.items) if item.id}
    needs = _told(document, order)
    keys = {item.id: item.key for item in document.items}
    document.items = [
        msgspec.structs.replace(
            _of_story(document, item),
            depends_on=tuple(dict.fromkeys((*item.depends_on, *(keys[own] for own in needs.get(item.id, ()))))),
        )
        for item in document.items
    ]
    return document.batch("no tasks in this file", "a task is a line such as `- [ ] T001 Add a login page`")


def _of_story(document: Document, item: Item) -> Item:
    line = document.text.split("\n")[item.line - 1]
    story = _STORY.search(line)
    return msgspec.structs.replace(
        item, notes="\n".join(filter(None, (item.notes, f"Story: {story[1]}" if story else "")))
    )


def _told(document: Document, order: dict[str, int]) -> dict[str, list[str]]:
    """Task → what it waits for, as the text beside the tasks says."""
    needs: dict[str, list[str]] = {}
    for at, block in enumerate(document.blocks):
        if document.taken[at] or block.kind not in (Kind.ITEM, Kind.TEXT):
            continue
        for line in document.words(block).split("\n"):
            pairs = [(found[1], found[2]) for found in _FORWARD.finditer(line)]
            pairs += [(found[2], found[1]) for found in _BACKWARD.finditer(line)]
            for first, then in pairs:
                for own in _spread(then, order):
                    needs.setdefault(own, []).extend(one for one in _spread(first, order) if order[one] < order[own])
    return needs


def _spread(words: str, order: dict[str, int]) -> list[str]:
    """`T004-T006, T009` → each of them that exists."""
    found: list[str] = []
    for first, last, alone in _RANGE.findall(words):
        if alone:
            found += [alone] if alone in order else []
        elif first in order and last in order:
            found += [own for own, at in order.items() if order[first] <= at <= order[last]]
    return found
