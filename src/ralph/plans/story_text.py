"""Parse the Markdown below a story's line: description, criteria, `Verify:`, `Depends on:`, `Notes:`.

The result is pieces. A piece is a line or a list item that belongs to one field; it knows its position, so that a
change of one field leaves every other line alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from enum import IntEnum

from msgspec import Struct

from ralph.plans.blocks import CHECKBOX, Block, Kind
from ralph.plans.markdown import scan

FIELDS = ("description", "criteria", "verify", "depends_on", "notes")
BULLET = "bullet"
"""An item under no label. It is a criterion if there is no criteria label."""

LABELS = {
    "acceptance criteria": "criteria",
    "acceptance": "criteria",
    "criteria": "criteria",
    "verify": "verify",
    "verification": "verify",
    "depends on": "depends_on",
    "depends": "depends_on",
    "dependencies": "depends_on",
    "notes": "notes",
    "note": "notes",
    "description": "description",
}
_NAMES = "|".join(sorted(LABELS, key=len, reverse=True))
LABEL = (
    rf"(?i:(?P<bold>\*\*|__|\*|_)(?P<name>{_NAMES})(?::(?P=bold)|(?P=bold):|(?P=bold)(?=[ \t]*(?:\n|\Z)))"
    rf"|(?P<plain>{_NAMES}):)[ \t]*"
)
"""`Notes:`, `**Notes:**`, `**Notes**:`, or `**Notes**` alone on a line."""
_LABEL = re.compile(LABEL)
_NOTHING = frozenset({"none", "nothing", "-", "–", "—", "n/a"})
_TICKS = re.compile(r"`+")
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


class Fields(Struct, frozen=True, gc=False):
    description: str = ""
    criteria: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    notes: str = ""


NO_FIELDS = Fields()


def fold(pieces: Sequence[Piece]) -> Fields:
    """The values of the fields."""
    criterion = criteria_field(pieces)
    description: list[Piece] = []
    notes: list[Piece] = []
    criteria: list[str] = []
    verify: list[str] = []
    depends_on: dict[str, None] = {}
    for piece in pieces:
        field = piece.field
        if field == criterion:
            criteria += piece.values
        elif field == "verify":
            verify += piece.values
        elif field == "depends_on":
            depends_on.update(dict.fromkeys(piece.values))
        elif field == "description":
            description.append(piece)
        elif field == "notes":
            notes.append(piece)
    return Fields(_joined(description), tuple(criteria), tuple(verify), tuple(depends_on), _joined(notes))


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


def read(text: str, blocks: Sequence[Block], depth: int, ids: re.Pattern[str]) -> list[Piece]:
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
                    self._add("notes", Form.LINE, values, index, block.start, block.text, block.end)
            elif kind is Kind.HEADING and depth == self.depth:
                self._read_heading(index, block)
        return self.pieces

    def _enter(self, section: str, *, takes_items: bool = True) -> None:
        self.section, self.takes_items = section, takes_items

    def _read_heading(self, index: int, block: Block) -> None:
        name = self.text[block.text : block.end].strip(" \t*_:").lower()
        field = LABELS.get(name, "other")
        self._enter(field)
        self._add(field, Form.HEAD, (), index, block.start, block.text, block.end)

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
            self._add(field, Form.LABELLED if values else Form.HEAD, values, index, start, value_at, stop)
            return
        line = self.text[at:stop].rstrip(" \t")
        match self.section:
            case "" | "description":
                self._add("description", Form.LINE, (unescape(line),), index, start, at, stop)
            case "notes":
                self._add("notes", Form.LINE, (unescape(line),), index, start, at, stop)
            case "verify" if commands := code_spans(line):
                self._add("verify", Form.LINE, commands, index, start, at, stop)
            case "depends_on" if ids := self._ids(line):
                self._add("depends_on", Form.LINE, ids, index, start, at, stop)

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
            self._add(field, Form.LABELLED if values else Form.HEAD, values, index, block.start, value_at, block.end)
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
            case "depends_on" if self.takes_items:
                field, values = "depends_on", self._ids(value)
        if value:
            self._add(field, Form.ITEM, values, index, block.start, at, block.end)

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

    def _add(
        self, field: str, form: Form, values: tuple[str, ...], index: int, start: int, text: int, stop: int
    ) -> None:
        self.pieces.append(Piece(field, form, values, index, start, text, stop))


def _one_line(text: str) -> str:
    if "\n" not in text:
        return text.rstrip(" \t")
    return " ".join(line.strip(" \t") for line in text.split("\n"))


def _lines(text: str) -> tuple[str, ...]:
    return tuple(unescape(line.strip(" \t")) for line in text.split("\n"))


def code_spans(text: str) -> tuple[str, ...]:
    """The `code` in a line of Markdown."""
    if text.count("`") == 2:  # the usual case
        start, end = text.find("`"), text.rfind("`")
        code = text[start + 1 : end]
        return (_trimmed(code),) if code.strip() else ()
    runs = list(_TICKS.finditer(text))
    closing: dict[int, list[int]] = {}
    for number, run in reversed(list(enumerate(runs))):
        closing.setdefault(len(run[0]), []).append(number)
    found = []
    at = 0
    while at < len(runs):
        same = closing[len(runs[at][0])]
        while same and same[-1] <= at:
            same.pop()
        if not same:
            at += 1
            continue
        found.append(_trimmed(text[runs[at].end() : runs[same[-1]].start()]))
        at = same[-1] + 1
    return tuple(code for code in found if code.strip())


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
