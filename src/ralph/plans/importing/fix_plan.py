"""`fix_plan.md`: tasks as bullets, most important first, with or without checkboxes."""

from __future__ import annotations

import re

from ralph.core.errors import BadData
from ralph.core.problems import Place, Problem
from ralph.plans.importing import wording
from ralph.plans.importing.checklist import DROPPED, Outline, name_of, task
from ralph.plans.importing.found import Batch, Item, remark
from ralph.plans.markdown import Block, Kind, scan, with_plain_line_ends
from ralph.plans.markdown_stories import after_item

KIND = "fix_plan"
TITLE = "fix_plan.md: bullets in order of importance, with or without checkboxes"

_DONE = re.compile(r"\b(?:completed?|done|finished|fixed|resolved|archived?)\b", re.IGNORECASE)
_NO_TASKS = re.compile(
    r"\b(?:notes?|context|learnings?|overview|legend|background|summary|goals?|references?|links|status|principles|rules"
    r"|instructions|how to|conventions)\b",
    re.IGNORECASE,
)
LEVELS = (
    (re.compile(r"\b(?:critical|urgent|blockers?|immediate|must|p0)\b", re.IGNORECASE), 1),
    (re.compile(r"\b(?:high|important|p1)\b", re.IGNORECASE), 2),
    (re.compile(r"\b(?:medium|normal|should|p2)\b", re.IGNORECASE), 3),
    (re.compile(r"\b(?:low|minor|nice|could|p3)\b", re.IGNORECASE), 4),
    (re.compile(r"\b(?:someday|backlog|later|future|ideas|p4)\b", re.IGNORECASE), 5),
)


def level_of(words: str) -> int:
    """1 to 5 for words that express importance, 0 for others."""
    return next((level for pattern, level in LEVELS if pattern.search(words)), 0)


def read(text: str, file: str) -> Batch:
    text = with_plain_line_ends(text)
    blocks = scan(text)
    outline = Outline()
    items: list[Item] = []
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    section, priority = "", 0
    boxes = _has_boxes(blocks, 0)
    at = 0
    while at < len(blocks):
        block = blocks[at]
        if block.kind is Kind.HEADING and not block.depth:
            section = text[block.text : block.end]
            outline.enter(block.level, section)
            priority = level_of(section)
            boxes = _has_boxes(blocks, at + 1)
        elif block.kind is Kind.ITEM and not block.depth:
            end = after_item(blocks, at, len(blocks))
            words = wording.title(text[block.text : block.end].split("\n")[0])
            if DROPPED.match(text, block.text):
                problems.append(remark("left-out", f"left out: {words!r} is marked as dropped", file, block.line))
            elif block.box < 0 and (boxes or _NO_TASKS.search(section)):
                why = (
                    "has no checkbox, but others in the section do" if boxes else f"is under {wording.title(section)!r}"
                )
                problems.append(remark("left-out", f"left out: {words!r} {why}", file, block.line))
            else:
                done = bool(_DONE.search(section)) and not priority
                items.append(task(text, blocks, at, end, outline, seen, KIND, file, is_done=done, priority=priority))
            at = end
            continue
        at += 1
    if not items:
        raise BadData(
            "no tasks in this file", where=Place(file), hint="a task is a bullet such as `- Fix the login page`"
        )
    return Batch(
        kind=KIND, file=file, items=tuple(_ranked(items)), name=name_of(text, blocks), problems=tuple(problems)
    )


def _has_boxes(blocks: list[Block], start: int) -> bool:
    """Whether a bullet of the section that starts here has a checkbox; then those without one are remarks."""
    for block in blocks[start:]:
        if block.kind is Kind.HEADING and not block.depth:
            return False
        if block.kind is Kind.ITEM and not block.depth and block.box >= 0:
            return True
    return False


def _ranked(items: list[Item]) -> list[Item]:
    """By importance; within a section in file order."""
    return sorted(items, key=lambda item: item.priority or 3) if any(item.priority for item in items) else items


def is_named_so(file: str) -> bool:
    return wording.slug(file.rpartition("/")[2].removesuffix(".md")) == "fix plan"
