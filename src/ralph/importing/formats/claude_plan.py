"""A plan that Claude Code wrote in plan mode: context, steps, critical files, verification.

A numbered heading is a story; else an item of the list under a heading such as *Steps*; else a checkbox; else the plan
is one story.
"""

from __future__ import annotations

import re

from ralph.importing import body, wording
from ralph.importing.document import BOX, Document
from ralph.importing.formats import bmad, checklist, fix_plan, task_plan
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch, Item
from ralph.plans.markdown import Kind
from ralph.plans.markdown_stories import after_item

_PLACE = re.compile(r"(?:\A|/)\.claude/plans/[^/]+\.md\Z")
_CONTEXT = re.compile(r"^##[ \t]+(?:Context|Problem|Background|Overview|Goal)\b", re.MULTILINE | re.IGNORECASE)
_REST = re.compile(
    r"^##[ \t]+(?:Verification|Critical files|Files to (?:modify|change|create)|Files modified"
    r"|Approach|Implementation|Changes)\b",
    re.MULTILINE | re.IGNORECASE,
)
_HEAD = re.compile(
    r"(?:(?:phase|part|change|fix|commit|stage|milestone)[ \t]+#?)?"
    r"(?P<number>[A-Z]?[0-9]+[a-z]?)[.):–—-]*[ \t]+(?:[–—-][ \t]+)?(?P<title>.*)",
    re.IGNORECASE | re.DOTALL,
)
_STEPS = re.compile(
    rf"{task_plan.TASKS.pattern}|approach|(?:proposed |code )?changes?|what to (?:do|change)|fix(?:es)?", re.IGNORECASE
)


def recognise(sample: Sample) -> bool:
    if not sample.is_markdown or any(one.recognise(sample) for one in (bmad, task_plan, fix_plan)):
        return False
    if _PLACE.search(sample.file.replace("\\", "/")):
        return True
    return sample.has(_CONTEXT) and sample.has(_REST) and not sample.has(BOX)


def read(text: str, file: str) -> Batch:
    document = Document(text, "claude-plan", file)
    heads = _heads(document)
    if heads:
        return task_plan.read_headed(document, heads)
    _listed(document)
    if not document.items and BOX.search(document.text):
        return checklist.read(text, file, "claude-plan")
    if not document.items:
        _whole(document)
    return document.batch("no plan in this file", "a plan has a title and steps")


def _heads(document: Document) -> dict[int, re.Match[str]]:
    """Numbered headings of one level, if there are at least two, or one that is marked as a step."""
    if heads := task_plan.heads_of(document):
        return heads
    blocks = document.blocks
    found = {
        at: head
        for at, block in enumerate(blocks)
        if block.kind is Kind.HEADING and block.level > 1 and (head := _HEAD.fullmatch(document.words(block)))
    }
    levels = [blocks[at].level for at in found]
    for level in sorted(set(levels)):
        if levels.count(level) > 1:
            heads = {at: head for at, head in found.items() if blocks[at].level == level}
            return {} if _is_beside_its_list(document, heads) else heads
    return {}


def _is_beside_its_list(document: Document, heads: dict[int, re.Match[str]]) -> bool:
    """Whether the work is a list of checkboxes elsewhere, so that these sections, mere numbers, only describe it."""
    blocks = document.blocks
    inside = {at for head in heads for at in range(head, document.end_of_section(head))}
    boxes = [at for at, block in enumerate(blocks) if block.box >= 0]
    is_named = any(document.words(blocks[at])[0].isalpha() for at in heads)
    return len(boxes) > len(heads) and not is_named and inside.isdisjoint(boxes)


def _listed(document: Document) -> None:
    blocks = document.blocks
    end = 0
    for at, block in enumerate(blocks):
        if block.kind is Kind.HEADING and not block.depth:
            document.enter(block)
            if _STEPS.fullmatch(wording.title(document.words(block))):
                end = max(end, document.end_of_section(at))
        elif at < end and block.kind is Kind.ITEM and not block.depth:
            document.add(at, after_item(blocks, at, len(blocks)))


def _whole(document: Document) -> None:
    content = body.read(document.text, [block for block in document.blocks if block.level != 1], every_item=False)
    document.take(0, len(document.blocks))
    title = re.sub(r"\A(?:Plan|Implementation Plan)[ \t]*[:–—-][ \t]*", "", document.title) or "Carry out the plan"
    key = document.unique(wording.slug(title))
    document.items = [
        Item(
            key=key,
            title=title,
            description=content.description,
            criteria=content.criteria,
            verify=content.verify,
            line=1,
        )
    ]
