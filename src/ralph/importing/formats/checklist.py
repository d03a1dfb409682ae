"""A Markdown checklist: each task that is not nested in another is a story."""

from __future__ import annotations

from ralph.importing import wording
from ralph.importing.document import BOX, MARK, Document
from ralph.importing.sample import Sample
from ralph.importing.stories import Batch
from ralph.plans.markdown import Kind
from ralph.plans.markdown_stories import after_item


def recognise(sample: Sample) -> bool:
    return sample.has(BOX)


def read(text: str, file: str, kind: str = "checklist") -> Batch:
    document = Document(text, kind, file)
    blocks = document.blocks
    at = 0
    while at < len(blocks):
        block = blocks[at]
        at += 1
        if block.kind is Kind.HEADING and not block.depth:
            document.enter(block)
        elif block.kind is Kind.ITEM:
            end = after_item(blocks, at - 1, len(blocks))
            document.leave(block.depth)
            mark = MARK.match(document.text, block.text)
            if mark and mark[1] == "-":
                title = wording.title(document.text[mark.end() : block.end])
                document.leave_out(title, "is marked as dropped", block.line)
                at = end
            elif block.box >= 0 or mark:
                document.add(at - 1, end)
                at = end
            elif any(inner.box >= 0 for inner in blocks[at:end]):
                document.group(at - 1)
    return document.batch("no tasks in this checklist", "a task is a line such as `- [ ] Add a login page`")
