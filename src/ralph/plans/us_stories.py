"""Find the stories of a plan.md: checkboxes with a `US-` ID in their line, and headings that start with one."""

from __future__ import annotations

import re
from bisect import bisect_left

from msgspec import Struct

from ralph.core import problems
from ralph.core.errors import PlanError
from ralph.core.plan import State, Story
from ralph.core.problems import Problem
from ralph.core.text import one_line
from ralph.plans import plain_plan, story_text
from ralph.plans.blocks import Block, Kind
from ralph.plans.integrity import problems_of
from ralph.plans.markdown import scan
from ralph.plans.story_place import Place, Reading, after_item, blocks_below, blocks_nested, line_end

ID = re.compile(r"US-[0-9]+")
IDS = re.compile(r"(?<![\w-])[Uu][Ss]-[\w-]*\w")
"""Finds IDs in a line, including invalid ones, which are then reported as unknown."""
_HEAD = re.compile(
    r"[ \t]*(?P<bold>\*\*|__)?(?P<id>US-[0-9]+)(?![^\W_]|-|_(?!_))"
    r"(?(bold)(?:(?P=bold)[ \t]*[:.–—-]?|[ \t]*[:.–—-](?P=bold)|(?P<all>[ \t]*[:.–—-]?))|[ \t]*[:.–—-]?)"
    r"[ \t]*(?P<title>[^\n]*)"
)
_ANYWHERE = re.compile(r"(?P<before>[^\n]*?)(?<![\w-])(?:\*\*|__)?(?P<id>US-[0-9]+)(?![\w-])(?P<after>[^\n]*)")
"""Seed 000 finds a story by `- [ ]` and an ID anywhere after it: `- [ ] (P1) US-006: Log in`."""
_AROUND_TITLE = " \t:.–—-*_()[]"
_LIKE_A_STORY = re.compile(r"[ \t]*(?:\*\*|__)?US-[^ \t\n]*", re.IGNORECASE)
_LIKE = r"(?:\*\*|__)?[Uu][Ss]-"
SHAPE = plain_plan.shape("US-[0-9]+", "ID:[ ]", _LIKE, r"ID:[ ][^\s]", _LIKE)


class _Mark(Struct, frozen=True, gc=False):
    """A line that names a story: an item or a heading."""

    index: int
    id: str
    title: tuple[int, int]


def quickly(text: str) -> tuple[str, list[Story]] | None:
    """Name and stories of a plan in the plainest form, or None."""
    return plain_plan.read(text, SHAPE, IDS)


def read(text: str, file: str) -> Reading:
    """Strict. `text` has plain line ends. Raises PlanError with every problem found."""
    blocks = scan(text)
    marks, ends, unclear, _ = _find(text, blocks)
    found: list[Problem] = []
    headings: dict[str, int] = {}
    listed: set[str] = set()
    for number, mark in enumerate(marks):
        if blocks[mark.index].kind is Kind.ITEM:
            listed.add(mark.id)
        elif mark.id in headings:
            found.append(_second_heading(mark, blocks, marks[headings[mark.id]], file))
        else:
            headings[mark.id] = number
    places: list[Place] = []
    for number, mark in enumerate(marks):
        block = blocks[mark.index]
        if block.kind is Kind.ITEM:
            heading = headings.get(mark.id, -1)
            places.append(_place(text, blocks, marks, ends, number, heading, len(places) + 1))
        elif mark.id not in listed:
            if block.box >= 0:
                places.append(_place(text, blocks, marks, ends, -1, number, len(places) + 1))
            elif headings[mark.id] == number:
                found.append(_no_checkbox(mark, block, file))
    found += [_bad_id(text, blocks[at], file) for at in unclear]
    found += problems_of([place.story for place in places], file)
    if not places and not found:
        found.append(_no_stories(file))
    if found:
        raise PlanError.of(sorted(found, key=lambda problem: problem.where.line or 0))
    return Reading(text, blocks, places, _name(text, blocks))


def unnamed(text: str) -> list[tuple[int, str]]:
    """Line and text of each open checkbox that is neither a story nor part of one."""
    blocks = scan(text)
    _, _, _, others = _find(text, blocks)
    return [
        (blocks[at].line, text[blocks[at].box + 2 : blocks[at].end]) for at in others if text[blocks[at].box] == " "
    ]


def _find(text: str, blocks: list[Block]) -> tuple[list[_Mark], list[int], list[int], list[int]]:
    """The lines that name a story and where each story ends; checkboxes with an invalid ID; checkboxes without one."""
    marks, unclear, unnamed = _marks(text, blocks)
    ends = _ends(blocks, marks)
    others = _outside(unnamed, blocks, marks, ends)
    items = {mark.id for mark in marks if blocks[mark.index].box >= 0}
    loose: list[_Mark] = []
    for index in others:
        mark = _mark_anywhere(text, index, blocks[index])
        if mark is not None and mark.id not in items:  # `- [ ] Test US-001 again` is about a story and is none
            items.add(mark.id)
            loose.append(mark)
    if loose:
        marks = sorted([*marks, *loose], key=lambda mark: mark.index)
        ends = _ends(blocks, marks)
        others = _outside(unnamed, blocks, marks, ends)
        others = [index for index in others if not any(mark.index == index for mark in loose)]
    return marks, ends, _outside(unclear, blocks, marks, ends), others


def _mark_anywhere(text: str, index: int, block: Block) -> _Mark | None:
    """The title is the text after the ID, else the text before it."""
    found = _ANYWHERE.match(text, block.box + 2, block.end)
    if found is None:
        return None
    for name in ("after", "before"):
        part = found[name]
        left = len(part) - len(part.lstrip(_AROUND_TITLE if name == "after" else " \t"))
        right = len(part.rstrip(" \t" if name == "after" else _AROUND_TITLE))
        if right > left:
            return _Mark(index, found["id"], (found.start(name) + left, found.start(name) + right))
    return _Mark(index, found["id"], (found.end("id"), found.end("id")))


def _marks(text: str, blocks: list[Block]) -> tuple[list[_Mark], list[int], list[int]]:
    """The lines that start with a story's ID, those that nearly do, and the other checkboxes."""
    marks: list[_Mark] = []
    unclear: list[int] = []
    unnamed: list[int] = []
    match, heading = _HEAD.match, Kind.HEADING
    for index, block in enumerate(blocks):
        is_heading = block.kind is heading
        if block.box >= 0:
            at = block.box + 2
        elif is_heading:
            at = block.text
        else:
            continue
        if is_heading and block.depth:
            continue
        if found := match(text, at, block.end):
            start, end = found.span("title")
            if end > start and (found["all"] is not None or text[end - 1] in " \t"):
                title = found["title"].rstrip(" \t")
                title = title.removesuffix(found["bold"]) if found["all"] is not None else title
                end = start + len(title.rstrip(" \t"))
            marks.append(_Mark(index, found["id"], (start, end)))
        elif block.box >= 0:
            (unclear if _LIKE_A_STORY.match(text, at, block.end) else unnamed).append(index)
    return marks, unclear, unnamed


def _ends(blocks: list[Block], marks: list[_Mark]) -> list[int]:
    """For each mark, the index of the first block that no longer belongs to it."""
    ends = []
    for number, mark in enumerate(marks):
        block = blocks[mark.index]
        after = number + 1
        if block.kind is Kind.ITEM:
            limit = marks[after].index if after < len(marks) else len(blocks)
            ends.append(after_item(blocks, mark.index, limit))
            continue
        while after < len(marks) and marks[after].id == mark.id and blocks[marks[after].index].kind is Kind.ITEM:
            after += 1
        limit = marks[after].index if after < len(marks) else len(blocks)
        at = mark.index + 1
        while at < limit and not (blocks[at].kind is Kind.HEADING and blocks[at].level <= block.level):
            at += 1
        ends.append(at)
    return ends


def _place(
    text: str, blocks: list[Block], marks: list[_Mark], ends: list[int], item: int, heading: int, number: int
) -> Place:
    """The place of a story, and the story. `item` and `heading` are its marks."""
    mark = marks[item if item >= 0 else heading]
    at, at_end = (marks[item].index, ends[item]) if item >= 0 else (-1, -1)
    under, under_end = (marks[heading].index, ends[heading]) if heading >= 0 else (-1, -1)
    titles = tuple([marks[n].title for n in (item, heading) if n >= 0])
    body = blocks_below(blocks, under, under_end, at, at_end) if heading >= 0 else []
    in_block = heading >= 0
    if not body and item >= 0:
        body = blocks_nested(text, blocks, at, at_end)
        in_block = in_block and not body
    fields = story_text.NO_FIELDS
    if body:
        depth = 0 if in_block else blocks[at].depth + 1
        fields = story_text.fold(story_text.read(text, body, depth, IDS))
    block = blocks[mark.index]
    story = Story(
        id=mark.id,
        title=next((text[start:end] for start, end in titles if end > start), ""),
        description=fields.description,
        criteria=fields.criteria,
        priority=number,
        depends_on=fields.depends_on,
        state=State.TODO if text[block.box] == " " else State.DONE,
        notes=fields.notes,
        verify=fields.verify,
        line=block.line,
    )
    return Place(story, at, at_end, under, under_end, in_block, titles)


def _outside(indexes: list[int], blocks: list[Block], marks: list[_Mark], ends: list[int]) -> list[int]:
    """The blocks that belong to no story. A checkbox inside a story is a criterion."""
    reach: list[int] = []
    for number, mark in enumerate(marks):
        is_own_item = number and blocks[mark.index].kind is Kind.ITEM and marks[number - 1].id == mark.id
        reach.append(max(ends[number], reach[-1]) if is_own_item else ends[number])
    found = []
    for index in indexes:
        number = bisect_left(marks, index, key=lambda mark: mark.index) - 1
        if number < 0 or index >= reach[number]:
            found.append(index)
    return found


def _name(text: str, blocks: list[Block]) -> str:
    for block in blocks:
        if block.kind is Kind.HEADING:
            return text[block.text : block.end] if block.level == 1 and not block.depth else ""
    return ""


def _bad_id(text: str, block: Block, file: str) -> Problem:
    written = text[block.box + 2 : line_end(text, block.text)].split()
    word = one_line(written[0].strip("*_:"), 40) if written else ""
    return Problem(
        code="bad-id",
        message=f"{word} is not a valid story ID",
        where=problems.Place(file=file, line=block.line),
        hint="use US- and a number, e.g. `- [ ] US-001: Log in`",
        story=word,
    )


def _no_checkbox(mark: _Mark, block: Block, file: str) -> Problem:
    return Problem(
        code="no-checkbox",
        message=f"story {mark.id} has a heading but no checkbox, so it can never be marked as done",
        where=problems.Place(file=file, line=block.line),
        hint=f"add a line `- [ ] {mark.id}: title` to the list of stories",
        story=mark.id,
    )


def _second_heading(mark: _Mark, blocks: list[Block], first: _Mark, file: str) -> Problem:
    return Problem(
        code="duplicate-block",
        message=f"story {mark.id} has a second heading; the first is at line {blocks[first.index].line}",
        where=problems.Place(file=file, line=blocks[mark.index].line),
        hint="merge the two blocks, or give one of the stories another ID",
        story=mark.id,
    )


def _no_stories(file: str) -> Problem:
    return Problem(
        code="no-stories",
        message="the plan has no stories",
        where=problems.Place(file=file),
        hint="a story is a line such as `- [ ] US-001: Log in`",
    )
