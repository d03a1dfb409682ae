"""Where the stories of a Markdown plan are: the line with the checkbox, the heading, the body."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from ralph.core.plan import State, Story
from ralph.plans import story_text
from ralph.plans.blocks import Block, Kind
from ralph.plans.plain_plan import Shape
from ralph.plans.story_text import Piece


class Place(Struct, frozen=True, gc=False):
    """One story. `titles` are offsets; the numbers are indexes of blocks."""

    story: Story
    item: int
    """The list item with the checkbox, or -1."""
    item_end: int
    """The first block that is not nested in the item."""
    heading: int
    """The story's heading, or -1."""
    block_end: int
    """The first block that is not below the heading."""
    in_block: bool
    """Whether the body is below the heading rather than nested in the item."""
    titles: tuple[tuple[int, int], ...]


class Reading(Struct, frozen=True):
    """A Markdown plan split into stories. `text` has plain line ends and the offsets of the source."""

    text: str
    blocks: list[Block]
    places: list[Place]
    name: str = ""

    def boxes(self, place: Place) -> list[int]:
        """The offsets of the story's checkboxes: in its item, its heading, or both."""
        found = [self.blocks[index].box for index in (place.item, place.heading) if index >= 0]
        return [box for box in found if box >= 0]


class Body(Struct, frozen=True):
    """The text below a story's heading or item."""

    text: str
    blocks: list[Block]
    pieces: list[Piece]
    indent: str
    """White space before each of its lines."""
    start: int
    end: int
    in_block: bool


class Splice(Struct, frozen=True):
    """Replace what is between two offsets."""

    start: int
    end: int
    text: str


class Dialect(Struct, frozen=True):
    """What differs between the Markdown layouts."""

    layout: str
    speaks: frozenset[str]
    states: frozenset[State]
    ids: re.Pattern[str]
    """Finds the IDs in a `Depends on:`."""
    shape: Shape
    """The form of plans that can be read the fast way."""
    read: Callable[[str, str], Reading]
    """Text and file name. Raises PlanError."""
    write_head: Callable[[Story, str], str]
    """A new story's line after its checkbox, in the style of another story's. Raises IllegalChange."""


def body_of(reading: Reading, place: Place, ids: re.Pattern[str]) -> Body:
    text = reading.text
    head = reading.blocks[place.heading if place.in_block else place.item]
    if place.in_block:
        blocks = blocks_below(reading.blocks, place.heading, place.block_end, place.item, place.item_end)
    else:
        blocks = blocks_nested(text, reading.blocks, place.item, place.item_end)
    start = line_end(text, head.end if place.in_block else head.text)
    if place.in_block and head.marker == head.text:  # an underlined heading
        start = line_end(text, start)
    end = max([start, *(line_end(text, block.end) for block in blocks)])
    indent = "" if place.in_block else blank(text[line_start(text, head.text) : head.text])
    pieces = story_text.read(text, blocks, 0 if place.in_block else head.depth + 1, ids)
    return Body(text, blocks, pieces, indent, start, end, place.in_block)


def blocks_below(blocks: list[Block], heading: int, end: int, item: int, item_end: int) -> list[Block]:
    """The body below a heading. If the story's item is there, it is not part of the body."""
    if heading < item < end:
        return blocks[heading + 1 : item] + blocks[item_end:end]
    return blocks[heading + 1 : end]


def blocks_nested(text: str, blocks: list[Block], item: int, end: int) -> list[Block]:
    """The body nested in an item. The second line of the item's paragraph belongs to it."""
    rest = second_line(text, blocks[item])
    return [rest, *blocks[item + 1 : end]] if rest else blocks[item + 1 : end]


def after_item(blocks: list[Block], item: int, limit: int) -> int:
    """The first block that is not nested in a list item."""
    at, depth = item + 1, blocks[item].depth
    while at < limit and blocks[at].depth > depth:
        at += 1
    return at


def second_line(text: str, item: Block) -> Block | None:
    """The rest of a list item's first paragraph, as a separate paragraph."""
    start = text.find("\n", item.text, item.end) + 1
    if not start:
        return None
    at = start
    while text[at] in " \t":
        at += 1
    return Block(Kind.TEXT, item.depth + 1, item.line + 1, start, at, at, item.end)


def end_with_nested(text: str, blocks: list[Block], index: int, limit: int) -> int:
    """Where the line after a block and everything nested in it starts."""
    last = after_item(blocks, index, limit) - 1 if blocks[index].kind is Kind.ITEM else index
    return line_end(text, max(blocks[last].end, blocks[index].end))


def line_end(text: str, offset: int) -> int:
    """Where the next line starts. `text` ends with a line end."""
    return text.index("\n", offset) + 1 if offset < len(text) else len(text)


def line_start(text: str, offset: int) -> int:
    return text.rfind("\n", 0, offset) + 1


def blank(text: str) -> str:
    """White space of the same width as the text."""
    return "".join("\t" if char == "\t" else " " for char in text)


def item_span(reading: Reading, place: Place) -> tuple[int, int] | None:
    """The lines of the story's list item, with everything nested in it."""
    if place.item < 0:
        return None
    end = end_with_nested(reading.text, reading.blocks, place.item, place.item_end)
    return reading.blocks[place.item].start, end


def block_span(reading: Reading, place: Place) -> tuple[int, int] | None:
    """The lines from the story's heading to the end of its block, including empty lines."""
    if place.heading < 0:
        return None
    at_end = place.block_end >= len(reading.blocks)
    end = len(reading.text) if at_end else reading.blocks[place.block_end].start
    return reading.blocks[place.heading].start, end


def is_blank_line(text: str, start: int) -> bool:
    """Whether the line that starts here is empty or does not exist."""
    return not text[start : line_end(text, start)].strip()


def follows_blank_line(text: str, start: int) -> bool:
    return start == 0 or is_blank_line(text, line_start(text, start - 1))


def removal(text: str, start: int, end: int) -> Splice:
    """Remove lines. Of two empty lines that would meet, one is removed too; none is left at the end."""
    if not follows_blank_line(text, start):
        return Splice(start, end, "")
    if end < len(text):
        return Splice(start, line_end(text, end) if is_blank_line(text, end) else end, "")
    while start and follows_blank_line(text, start):
        start = line_start(text, start - 1)
    return Splice(start, end, "")
