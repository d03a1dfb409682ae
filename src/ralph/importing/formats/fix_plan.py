"""`fix_plan.md`, `IMPLEMENTATION_PLAN.md` and plain bullets: the most important first."""

from __future__ import annotations

import re

from ralph.importing import wording
from ralph.importing.document import BOX, MARK, Document
from ralph.importing.formats import task_plan
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch
from ralph.plans.markdown import Block, Kind
from ralph.plans.markdown_stories import after_item

_FIRST = re.compile(r"\A\s*[^\n]*\bfix[ _-]?plan\b", re.IGNORECASE)
_BULLET = re.compile(r"^[ \t]*(?:[-*+]|[0-9]{1,9}[.)])[ \t]+\S", re.MULTILINE)
_DONE = re.compile(
    r"\b(?:completed?|done|finished|fixed|resolved|archived?|implemented|erledigt|fertig|completad[oa]s?|terminad[oa]s?)\b"
    r"|(?:完了(?:済み?)?|実装済み?|已完成|完成|완료)\W*\Z",
    re.IGNORECASE,
)
_NO_TASKS = re.compile(
    r"\b(?:notes?|context|learnings?|overview|legend|background|summary|goals?|references?|links|status|principles|rules"
    r"|instructions|how to|conventions|architecture|decisions?|risks?|constraints|assumptions|success criteria)\b",
    re.IGNORECASE,
)


_STAGE = re.compile(
    r"(?:\W|[0-9]+[.)]?\s)*(?:(?:phase|stage|milestone|step|sprint|iteration|week|part|task)s?\b.*"
    r"|.*\b(?:tasks|to-?dos?|work items|next steps|backlog|implementation order|milestones|phases))\W*",
    re.IGNORECASE | re.DOTALL,
)
"""A heading with work below it. Where a plan without checkboxes has such headings, its other bullets are prose."""


def recognise(sample: Sample) -> bool:
    if not sample.is_markdown or task_plan.recognise(sample):
        return False
    name = wording.slug(sample.name.removesuffix(".md"))
    if name == "fix plan" or sample.has(_FIRST):
        return True
    return name == "implementation plan" and not sample.has(BOX) and sample.has(_BULLET)


def has_bullets(sample: Sample) -> bool:
    return sample.has(_BULLET)


def read(text: str, file: str) -> Batch:
    document = Document(text, "fix_plan", file)
    if phases := _described_phases(document):
        return task_plan.read_headed(document, phases)
    blocks = document.blocks
    section, priority = "", 0
    boxes = _has_boxes(blocks, 0)
    staged = _in_stages(document)
    for at, block in enumerate(blocks):
        if block.kind is Kind.HEADING and not block.depth:
            section = document.words(block)
            document.enter(block)
            priority = wording.level_of(section)
            boxes = _has_boxes(blocks, at + 1)
        elif block.kind is Kind.ITEM and not block.depth:
            title = wording.title(document.words(block).split("\n")[0])
            if (mark := MARK.match(document.text, block.text)) and mark[1] == "-":
                document.leave_out(title[3:].strip(), "is marked as dropped", block.line)
            elif block.box < 0 and boxes:
                document.leave_out(title, "has no checkbox, but others in the section do", block.line)
            elif staged and at not in staged:
                continue  # reported by section
            elif block.box < 0 and _NO_TASKS.search(section):
                document.leave_out(title, f"is under {wording.title(section)!r}", block.line)
            else:
                is_done = bool(_DONE.search(section)) and not priority
                document.add(at, after_item(blocks, at, len(blocks)), is_done=is_done, priority=priority)
    return document.batch("no tasks in this file", "a task is a bullet such as `- Fix the login page`")


def _described_phases(document: Document) -> dict[int, re.Match[str]]:
    """Numbered phases, if most of them are described in more than bullets: each is a story then, not its bullets."""
    blocks = document.blocks
    if any(block.box >= 0 for block in blocks):
        return {}
    heads = {
        at: head
        for at, block in enumerate(blocks)
        if block.kind is Kind.HEADING and not block.depth and (head := task_plan.PHASE.fullmatch(document.words(block)))
    }
    levels = [blocks[at].level for at in heads]
    level = max(levels, key=levels.count, default=0)
    heads = {at: head for at, head in heads.items() if blocks[at].level == level}
    rich = sum(
        any(one.kind is not Kind.ITEM and not one.depth for one in blocks[at + 1 : document.end_of_section(at)])
        for at in heads
    )
    return heads if len(heads) > 1 and rich * 2 > len(heads) else {}


def _in_stages(document: Document) -> set[int]:
    """The blocks under headings of tasks, if bullets alone say what to do; empty if there are no such headings."""
    blocks = document.blocks
    if any(block.box >= 0 for block in blocks):
        return set()
    heads = [
        at for at, block in enumerate(blocks) if block.kind is Kind.HEADING and not block.depth and block.level > 1
    ]
    found = {
        inner
        for at in heads
        if _STAGE.fullmatch(wording.title(document.words(blocks[at])))
        for inner in range(at, document.end_of_section(at))
    }
    return found if any(blocks[at].kind is Kind.ITEM for at in found) else set()


def _has_boxes(blocks: list[Block], start: int) -> bool:
    """Whether a bullet of the section that starts here has a checkbox; then those without one are remarks."""
    for block in blocks[start:]:
        if block.kind is Kind.HEADING and not block.depth:
            return False
        if block.kind is Kind.ITEM and not block.depth and block.box >= 0:
            return True
    return False
