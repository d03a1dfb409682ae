"""A Markdown checklist: each task is a story, nested items are its criteria, headings are phases."""

from __future__ import annotations

import re

from ralph.core.errors import BadData
from ralph.core.plan import State
from ralph.core.problems import Place, Problem
from ralph.plans.importing import body, wording
from ralph.plans.importing.found import Batch, Item, remark, text_key
from ralph.plans.markdown import Block, Kind, scan, with_plain_line_ends
from ralph.plans.markdown_stories import after_item, blocks_nested

KIND = "checklist"
TITLE = "a Markdown checklist, with headings as parts of the work"

_MARK = re.compile(r"\[([-~/>!?*])\](?=[ \t])")
"""Marks that some tools use beside `[ ]` and `[x]`: `[-]` is dropped, the others are open."""
DROPPED = re.compile(r"\[-\](?=[ \t])")


class Outline:
    """The position in a document: the headings, and list items that only group others."""

    def __init__(self) -> None:
        self._headings: list[tuple[int, str]] = []
        self._groups: list[tuple[int, str]] = []

    def enter(self, level: int, words: str) -> None:
        self._groups = []
        self._headings = [one for one in self._headings if one[0] < level] + [(level, wording.title(words))]

    def group(self, depth: int, words: str) -> None:
        self.leave(depth)
        self._groups.append((depth, wording.title(words)))

    def leave(self, depth: int) -> None:
        self._groups = [one for one in self._groups if one[0] < depth]

    @property
    def path(self) -> tuple[str, ...]:
        return tuple(words for _, words in (*self._headings, *self._groups))

    @property
    def phase(self) -> str:
        """Without the title of the document."""
        inner = [words for level, words in self._headings if level > 1] + [words for _, words in self._groups]
        return " › ".join(inner)


def read(text: str, file: str) -> Batch:
    text = with_plain_line_ends(text)
    blocks = scan(text)
    outline = Outline()
    items: list[Item] = []
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    at = 0
    while at < len(blocks):
        block = blocks[at]
        if block.kind is Kind.HEADING and not block.depth:
            outline.enter(block.level, text[block.text : block.end])
        elif block.kind is Kind.ITEM:
            end = after_item(blocks, at, len(blocks))
            outline.leave(block.depth)
            mark = _MARK.match(text, block.text)
            if mark and mark[1] == "-":
                words = wording.title(text[mark.end() : block.end])
                problems.append(remark("left-out", f"left out: {words!r} is marked as dropped", file, block.line))
                at = end
                continue
            if block.box >= 0 or mark:
                items.append(task(text, blocks, at, end, outline, seen, KIND, file))
                at = end
                continue
            if any(inner.box >= 0 for inner in blocks[at + 1 : end]):
                outline.group(block.depth, text[block.text : block.end].split("\n")[0])
        at += 1
    if not items:
        raise BadData(
            "no tasks in this checklist",
            where=Place(file),
            hint="a task is a line such as `- [ ] Add a login page`",
        )
    return Batch(kind=KIND, file=file, items=tuple(items), name=name_of(text, blocks), problems=tuple(problems))


def task(
    text: str,
    blocks: list[Block],
    at: int,
    end: int,
    outline: Outline,
    seen: dict[str, int],
    kind: str,
    file: str,
    *,
    is_done: bool = False,
    priority: float = 0,
) -> Item:
    """The item at `at`, with everything nested in it up to `end`."""
    block = blocks[at]
    raw = text[block.text : min(block.end, block.text + wording.LONGEST_TEXT)].split("\n")[0]
    if block.box >= 0 or _MARK.match(raw):
        is_done = is_done or text[block.text + 1] in "xX"
        raw = raw[3:].lstrip()
    found = body.read(text, blocks_nested(text, blocks, at, end), every_item=True)
    title = wording.title(raw) or "(no title)"
    key = text_key(kind, file, *outline.path, wording.slug(raw))
    seen[key] = seen.get(key, 0) + 1
    return Item(
        key=key if seen[key] == 1 else f"{key}-{seen[key]}",
        title=title,
        description=_longer(raw, title, found.description),
        criteria=found.criteria,
        priority=priority,
        state=State.DONE if is_done or wording.looks_done(raw) else State.TODO,
        notes=found.notes,
        verify=found.verify,
        phase=outline.phase,
        line=block.line,
    )


def _longer(raw: str, title: str, description: str) -> str:
    """If the title had to be cut, the description starts with all of it."""
    return f"{wording.line(raw)}\n\n{description}".strip() if title.endswith("…") else description


def name_of(text: str, blocks: list[Block]) -> str:
    first = next((block for block in blocks if block.kind is Kind.HEADING and not block.depth), None)
    return wording.title(text[first.text : first.end]) if first and first.level == 1 else ""
