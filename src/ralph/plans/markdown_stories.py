"""The stories of a Markdown plan: where each one is, and what the text below its line says.

The text is read as pieces. A piece is a line or a list item that belongs to one field: description, criteria,
`Verify:`, `Touches:`, `Depends on:`, `Notes:`. It knows its position, so that a change of one field leaves every other
line alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from itertools import chain
from typing import Any

from msgspec import Struct

from ralph.core.plan import State, Story
from ralph.plans.markdown import CHECKBOX, Block, Kind, scan

FIELDS = ("description", "criteria", "verify", "touches", "depends_on", "notes")
BULLET = "bullet"
"""An item under no label. It is a criterion if there is no criteria label."""

_SPELLINGS = {
    "criteria": "acceptance criteria|acceptance|criteria",
    "verify": "verify|verification",
    "touches": "touches",
    "depends_on": "depends on|depends|dependencies",
    "notes": "notes|note",
    "description": "description",
}
LABELS = {name: field for field, names in _SPELLINGS.items() for name in names.split("|")}
_NAMES = "|".join(sorted(LABELS, key=len, reverse=True))
_LABEL = re.compile(
    rf"(?i:(?P<bold>\*\*|__|\*|_)(?P<name>{_NAMES})(?::(?P=bold)|(?P=bold):|(?P=bold)(?=[ \t]*(?:\n|\Z)))"
    rf"|(?P<plain>{_NAMES}):)[ \t]*"
)
"""`Notes:`, `**Notes:**`, `**Notes**:`, or `**Notes**` alone on a line."""
_NOTHING = frozenset({"none", "nothing", "-", "–", "—", "n/a"})
_TICKS = re.compile(r"`+")
_PATH = re.compile(r"(?=.*[./*])[^\s`,;:<>|]+")
"""A word that can only be a path. `Touches: the login page` is a sentence."""
_PUNCTUATION = r"[!-/:-@\[-`{-~]"
_ESCAPED = re.compile(rf"\\(?={_PUNCTUATION})|([0-9]{{1,9}})\\(?=[.)])")
_UNDERLINE = re.compile(r"(?:=+|-+)\Z")


class Form(IntEnum):
    HEAD = 0
    """A label alone: what follows belongs to its field."""
    LABELLED = 1
    """A label and a value on one line."""
    LINE = 2
    ITEM = 3


class Piece(Struct, frozen=True, gc=False):
    field: str
    form: Form
    values: tuple[str, ...]
    block: int
    """Index of its block among the blocks of the body."""
    start: int
    """Where its first line starts."""
    text: int
    """Where its value starts."""
    stop: int
    """Where its own text ends; an item extends to the end of what is nested in it."""


def fold(pieces: Sequence[Piece]) -> dict[str, Any]:
    """The values of `FIELDS`."""
    own: dict[str, list[Piece]] = {}
    for piece in pieces:
        own.setdefault(piece.field, []).append(piece)
    values = {field: tuple(chain.from_iterable(piece.values for piece in own[field])) for field in own}
    return {
        "description": _joined(own.get("description", ())),
        "criteria": values.get(criteria_field(pieces), ()),
        "verify": values.get("verify", ()),
        "touches": values.get("touches", ()),
        "depends_on": tuple(dict.fromkeys(values.get("depends_on", ()))),
        "notes": _joined(own.get("notes", ())),
    }


def criteria_field(pieces: Iterable[Piece]) -> str:
    """The pieces with the criteria: those under the label or, if there is none, the unlabelled items."""
    return "criteria" if any(piece.field == "criteria" for piece in pieces) else BULLET


def _joined(pieces: Sequence[Piece]) -> str:
    """Lines of a paragraph and items are joined by line breaks; paragraphs are separated by an empty line."""
    text = ""
    before: Piece | None = None
    for piece in pieces:
        for value in piece.values:
            if before is not None:
                text += "\n" if before.block == piece.block or Form.ITEM in (piece.form, before.form) else "\n\n"
            text += value
            before = piece
    return text


def read_pieces(text: str, blocks: Sequence[Block], depth: int, ids: re.Pattern[str]) -> list[Piece]:
    """The pieces of a story's body. `depth` is that of its own items; `ids` finds the IDs in a `Depends on:`."""
    return _Body(text, depth, ids).read(blocks)


class _Body:
    def __init__(self, text: str, depth: int, ids: re.Pattern[str]) -> None:
        self.text = text
        self.depth = depth
        self.ids = ids
        self.section = ""
        self.takes_items = True
        """The section's label had no value on its line, so the items below it are the value."""
        self.level = depth
        """The depth of the items that count; one deeper below an item that is a label."""
        self.pieces: list[Piece] = []

    def read(self, blocks: Sequence[Block]) -> list[Piece]:
        for index, block in enumerate(blocks):
            kind, depth = block.kind, block.depth
            if depth < self.level:
                self.level = max(depth, self.depth)
                self._enter("")
            if kind is Kind.ITEM:
                if depth == self.level:
                    self._read_item(index, block)
            elif kind is Kind.TEXT:
                if depth == self.depth:
                    self._read_paragraph(index, block)
                elif depth == self.depth + 1 and self._is_in_notes_item():
                    values = _lines(self.text[block.text : block.end])
                    self.pieces.append(Piece("notes", Form.LINE, values, index, block.start, block.text, block.end))
            elif kind is Kind.HEADING and depth == self.depth:
                self._read_heading(index, block)
        return self.pieces

    def _enter(self, section: str, *, takes_items: bool = True) -> None:
        self.section, self.takes_items = section, takes_items

    def _read_heading(self, index: int, block: Block) -> None:
        name = self.text[block.text : block.end].strip(" \t*_:").lower()
        field = LABELS.get(name, "other")
        self._enter(field)
        self.pieces.append(Piece(field, Form.HEAD, (), index, block.start, block.text, block.end))

    def _read_paragraph(self, index: int, block: Block) -> None:
        start, at = block.start, block.text
        while True:
            stop = self.text.find("\n", at, block.end)
            stop = block.end if stop < 0 else stop
            self._read_line(index, start, at, stop)
            if stop >= block.end:
                return
            start = at = stop + 1
            while self.text[at] in " \t":
                at += 1

    def _read_line(self, index: int, start: int, at: int, stop: int) -> None:
        if found := self._labelled(at, stop):
            field, value_at, values = found
            self._enter("" if values and field not in ("notes", "criteria") else field, takes_items=not values)
            form = Form.LABELLED if values else Form.HEAD
            self.pieces.append(Piece(field, form, values, index, start, value_at, stop))
            return
        line = self.text[at:stop].rstrip(" \t")
        match self.section:
            case "" | "description":
                self.pieces.append(Piece("description", Form.LINE, (unescape(line),), index, start, at, stop))
            case "notes":
                self.pieces.append(Piece("notes", Form.LINE, (unescape(line),), index, start, at, stop))
            case "verify" if commands := code_spans(line):
                self.pieces.append(Piece("verify", Form.LINE, commands, index, start, at, stop))
            case "touches" if paths := paths_listed(line):
                self.pieces.append(Piece("touches", Form.LINE, paths, index, start, at, stop))
            case "depends_on" if ids := self._ids(line):
                self.pieces.append(Piece("depends_on", Form.LINE, ids, index, start, at, stop))

    def _read_item(self, index: int, block: Block) -> None:
        text, at = self.text, block.text
        if block.box >= 0:
            at += 3
            while at < block.end and text[at] in " \t":
                at += 1
        if self.level == self.depth and (found := self._labelled(at, block.end)):
            field, value_at, values = found
            if not values:
                self.level = block.depth + 1
                self._enter(field)
            form = Form.LABELLED if values else Form.HEAD
            self.pieces.append(Piece(field, form, values, index, block.start, value_at, block.end))
            return
        value = _one_line(text[at : block.end])
        field, values = BULLET, (unescape(value),)
        match self.section:
            case "criteria":
                field = "criteria"
            case "notes" if self.takes_items:
                field = "notes"
            case "verify" if self.takes_items:
                field, values = "verify", code_spans(value)
            case "touches" if self.takes_items:
                field, values = "touches", paths_listed(value)
            case "depends_on" if self.takes_items:
                field, values = "depends_on", self._ids(value)
        if value:
            self.pieces.append(Piece(field, Form.ITEM, values, index, block.start, at, block.end))

    def _labelled(self, at: int, stop: int) -> tuple[str, int, tuple[str, ...]] | None:
        """The field, where its value starts, and the values. None if it only looks like a label."""
        label = _LABEL.match(self.text, at, stop)
        if label is None:
            return None
        field = LABELS[(label["name"] or label["plain"]).lower()]
        value = self.text[label.end() : stop].strip(" \t\n")
        if not value:
            return field, label.end(), ()
        values: tuple[str, ...]
        if field == "verify":
            values = code_spans(value)
        elif field == "touches":
            values = paths_listed(value)
        elif field == "depends_on":
            values = self._ids(value)
            if not values and value.rstrip(".").lower() in _NOTHING:
                return field, label.end(), ()
        else:
            values = _lines(value) if field in ("notes", "description") else (unescape(_one_line(value)),)
        return (field, label.end(), values) if values else None

    def _ids(self, value: str) -> tuple[str, ...]:
        return tuple(self.ids.findall(value))

    def _is_in_notes_item(self) -> bool:
        return bool(self.pieces) and self.pieces[-1].field == "notes" and self.pieces[-1].form is not Form.ITEM


def _one_line(text: str) -> str:
    if "\n" not in text:
        return text.rstrip(" \t")
    return " ".join(line.strip(" \t") for line in text.split("\n"))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(unescape(line.strip(" \t")) for line in text.split("\n"))


def code_spans(text: str) -> tuple[str, ...]:
    """The `code` in a line of Markdown."""
    runs = list(_TICKS.finditer(text))
    closing: dict[int, list[int]] = {}
    for number, run in reversed(list(enumerate(runs))):
        closing.setdefault(len(run[0]), []).append(number)
    spans = []
    at = 0
    while at < len(runs):
        same = closing[len(runs[at][0])]
        while same and same[-1] <= at:
            same.pop()
        if not same:
            at += 1
            continue
        spans.append(_trimmed(text[runs[at].end() : runs[same[-1]].start()]))
        at = same[-1] + 1
    return tuple(code for code in spans if code.strip())


def paths_listed(text: str) -> tuple[str, ...]:
    """The paths of a `Touches:` line: as code, or separated by commas. Empty if it is something else."""
    spans = code_spans(text)
    if not spans:
        words = [_without_stop(word) for word in text.split(",")]
        return tuple(words) if all(map(_PATH.fullmatch, words)) else ()
    paths: list[str] = []
    rest = text
    for span in spans:
        before, _, rest = rest.partition(span)
        paths += _plain_paths(before)
        paths.append(span)
    return (*paths, *_plain_paths(rest))


def _plain_paths(text: str) -> list[str]:
    """The paths between code spans."""
    words = (_without_stop(word.strip("` \t")) for word in text.split(","))
    return [word for word in words if _PATH.fullmatch(word) and word.strip(".")]


def _without_stop(word: str) -> str:
    """Without the full stop at the end of a sentence."""
    word = word.strip()
    return word[:-1] if word.endswith(".") and word.strip(".") else word


def _trimmed(code: str) -> str:
    """A single space on both sides separates adjacent backticks."""
    return code[1:-1] if code[:1] == code[-1:] == " " and code.strip() else code


def code_span(command: str) -> str:
    """A command as Markdown code, whatever backticks it contains."""
    runs = {len(run) for run in _TICKS.findall(command)}
    fence = "`" * next(n for n in range(1, len(runs) + 2) if n not in runs)
    pad = " " if command[:1] in "` " or command[-1:] in "` " else ""
    return f"{fence}{pad}{command}{pad}{fence}"


def unescape(line: str) -> str:
    r"""`\- text` → `- text`, `1\. text` → `1. text`: the backslash only prevents Markdown from starting a list."""
    if "\\" in line and (escaped := _ESCAPED.match(line)):
        return (escaped[1] or "") + line[escaped.end() :]
    return line


def escape(line: str, *, in_item: bool = False) -> str:
    """A line that reads as this text, even if it would otherwise start a list, a heading or similar."""
    blocks = scan(line)
    is_text = len(blocks) == 1 and blocks[0].kind is Kind.TEXT and not _UNDERLINE.match(line)
    if is_text and unescape(line) == line and not (in_item and CHECKBOX.match(line)):
        return line
    digits = len(line) - len(line.lstrip("0123456789"))
    return f"{line[:digits]}\\{line[digits:]}"


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
        boxes = [self.blocks[index].box for index in (place.item, place.heading) if index >= 0]
        return [box for box in boxes if box >= 0]


class Body(Struct, frozen=True):
    """The text below a story's heading or item. `source` and `newline` are as in the file."""

    source: str
    newline: str
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
    read: Callable[[str, str], Reading]
    """Text and file name. Raises PlanError."""
    write_head: Callable[[Story, str], str]
    """A new story's line after its checkbox, in the style of another story's. Raises IllegalChange."""


def name_of(text: str, blocks: list[Block]) -> str:
    """The name of a plan: its first heading, if that is one of the first level."""
    for block in blocks:
        if block.kind is Kind.HEADING:
            return text[block.text : block.end] if block.level == 1 and not block.depth else ""
    return ""


def body_of(source: str, newline: str, reading: Reading, place: Place, ids: re.Pattern[str]) -> Body:
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
    pieces = read_pieces(text, blocks, 0 if place.in_block else head.depth + 1, ids)
    return Body(source, newline, text, blocks, pieces, indent, start, end, place.in_block)


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
