"""Read and edit a Markdown plan: a change touches only its own lines; every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from itertools import pairwise
from typing import Any

from ralph.core.changes import EDITABLE, AddStory, Change, MoveStory, RemoveStory, SetFields, apply
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.plan import Order, Plan, State, Story
from ralph.core.text import one_line
from ralph.plans.integrity import checked_fields, decode_utf8, prove_written
from ralph.plans.markdown import Block, Kind, newline_of, with_plain_line_ends
from ralph.plans.markdown_stories import (
    FIELDS,
    Body,
    Dialect,
    Form,
    Piece,
    Place,
    Reading,
    Splice,
    blank,
    block_span,
    body_of,
    code_span,
    criteria_field,
    end_with_nested,
    escape,
    fold,
    follows_blank_line,
    is_blank_line,
    item_span,
    line_end,
    removal,
    unescape,
)

_LIKE_A_STORY = re.compile(r"[\W_]*(?:US-|\[[ xX]\])", re.IGNORECASE)
_NUMBERED = re.compile(r"([0-9]+)(?=[.)])")


def parse(source: bytes, file: str, dialect: Dialect) -> Plan:
    reading = dialect.read(with_plain_line_ends(decode_utf8(source, file)), file)
    return Plan(name=reading.name, stories=tuple(place.story for place in reading.places), order=Order.FILE)


def salvage(source: bytes, before: bytes, dialect: Dialect) -> bytes | None:
    """The previous plan, with those stories ticked that have a ticked line anywhere in the new, unreadable text."""
    text = source.decode("utf-8", "replace")
    ticked = []
    for story in parse(before, dialect.layout, dialect).stories:
        line = rf"^\s*(?:[-*+]|\d+[.)]|#+)\s*\[[xX✓✔✅]\][^\n]*?(?<![\w.-]){re.escape(story.id)}(?![\w-]|\.\w)"
        if not story.is_done and re.search(line, text, re.MULTILINE):
            ticked.append(SetFields(story.id, {"state": State.DONE}))
    return edit(before, ticked, dialect) if ticked else None


def edit(source: bytes, changes: Sequence[Change], dialect: Dialect) -> bytes:
    """The same bytes with only these changes. `source` must be a plan that was read before."""
    checked = [_checked(change, dialect) for change in changes]
    draft = _Draft(source.decode(), dialect)
    before = draft.reading()
    for change in checked:
        draft.apply(change)
    text = draft.finish()
    meant = apply(Plan(name="", stories=tuple(place.story for place in before.places)), checked).stories
    prove_written(meant, [place.story for place in _read(text, dialect).places], dialect.speaks, dialect.layout)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise IllegalChange("the text of this change is not Unicode") from None


def _checked(change: Change, dialect: Dialect) -> Change:
    """The change with the right types. Raises IllegalChange for what the format cannot represent."""
    if isinstance(change, SetFields):
        return SetFields(change.story, _checked_fields(change.story, change.fields, dialect))
    if isinstance(change, AddStory):
        fields = {name: getattr(change.story, name) for name in EDITABLE & dialect.speaks}
        _checked_fields(change.story.id, fields, dialect)
    return change


def _checked_fields(story_id: str, fields: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    values = checked_fields(story_id, fields, dialect.speaks, dialect.layout)
    if values.get("state", State.TODO) not in dialect.states:
        hint = f"it supports {', '.join(sorted(dialect.states))}"
        raise IllegalChange(f"{dialect.layout} has no state for {values['state']}", hint=hint)
    return values


def _read(text: str, dialect: Dialect) -> Reading:
    try:
        if "\0" in text:
            raise IllegalChange("a plan cannot contain a NUL character")
        return dialect.read(with_plain_line_ends(text), dialect.layout)
    except PlanError as error:
        message = f"this change would make the plan invalid: {error.message}"
        raise IllegalChange(message, hint=error.hint) from None


class _Draft:
    """A plan being edited. Its text always ends with a line end."""

    def __init__(self, source: str, dialect: Dialect) -> None:
        self._dialect = dialect
        self._newline = newline_of(source)
        self._is_closed = source.endswith(("\n", "\r"))
        self._text = source if self._is_closed else source + self._newline
        self._reading: Reading | None = None
        self._numbers: dict[str, int] = {}
        self._boxes: dict[int, str] = {}

    def reading(self) -> Reading:
        """The current content. Boxes may have been ticked since; that moves nothing."""
        if self._reading is None:
            self._reading = _read(self._text, self._dialect)
            self._numbers = {place.story.id: number for number, place in enumerate(self._reading.places)}
        return self._reading

    def finish(self) -> str:
        self._splice(())
        return self._text if self._is_closed else self._text.removesuffix(self._newline)

    def apply(self, change: Change) -> None:
        if not isinstance(change, SetFields):
            self._splice(())
        match change:
            case SetFields(story_id, fields):
                self._set(story_id, fields)
            case AddStory(story, after):
                self._add(story, None if after is None else self._find(after))
            case RemoveStory(story_id):
                place, reading = self._find(story_id), self.reading()
                self._splice(removal(reading.text, *span) for span in _parts(reading, place))
            case MoveStory(story_id, before):
                self._move(self._find(story_id), None if before is None else self._find(before))

    def _find(self, story_id: str) -> Place:
        reading = self.reading()
        if story_id not in self._numbers:
            hint = "`ralph task list` shows the IDs"
            raise IllegalChange(f"no story {one_line(story_id, 60)} in the plan", hint=hint)
        return reading.places[self._numbers[story_id]]

    def _splice(self, splices: Iterable[Splice]) -> None:
        """Apply these changes, and those of the boxes."""
        boxes, self._boxes = self._boxes, {}
        both = [*splices, *(Splice(at, at + 1, mark) for at, mark in boxes.items())]
        if not both:
            return
        parts = []
        at = 0
        for splice in sorted(both, key=lambda splice: (splice.start, splice.end)):
            parts += [self._text[at : splice.start], splice.text]
            at = max(at, splice.end)
        self._text = "".join([*parts, self._text[at:]])
        self._reading = None

    def _set(self, story_id: str, fields: dict[str, Any]) -> None:
        place = self._find(story_id)
        if "state" in fields:
            is_done = fields["state"] is State.DONE
            for box in self.reading().boxes(place):
                self._boxes.pop(box, None)
                if (self._text[box] != " ") != is_done:
                    self._boxes[box] = "x" if is_done else " "
        if fields.get("title", place.story.title) != place.story.title:
            spans = [span for span in place.titles if span[1] > span[0]] or place.titles[:1]
            self._splice([Splice(start, end, self._gap(start) + fields["title"]) for start, end in spans])
        for name in FIELDS:
            if name in fields:
                place = self._find(story_id)
                body = body_of(self._text, self._newline, self.reading(), place, self._dialect.ids)
                self._splice(set_field(body, name, fields[name]))

    def _gap(self, at: int) -> str:
        """The separator between an ID and a title."""
        before = self._text[at - 1]
        return "" if before in " \t" else " " if before == ":" else ": "

    def _move(self, place: Place, before: Place | None) -> None:
        reading = self.reading()
        if before is place:
            raise IllegalChange(f"story {place.story.id} cannot be moved before itself")
        if before is None and reading.places[-1] is place:
            return
        target = before or reading.places[-1]
        item, block = item_span(reading, target), block_span(reading, target)
        splices: list[Splice] = []
        for span in _parts(reading, place):
            if span != block_span(reading, place):
                to = item or block
            elif place.item >= 0 and len(_parts(reading, place)) == 2:
                to = block  # it stays where it is when the other story has none
            else:
                to = block or item
            if to:
                splices += self._moved(reading, span, to[0] if before else to[1], is_item=to == item)
        self._splice(splices)

    def _moved(self, reading: Reading, span: tuple[int, int], at: int, *, is_item: bool) -> list[Splice]:
        start, end = span
        if start <= at <= end:
            return []
        text = self._text[start : start + len(reading.text[start:end].rstrip())] + self._newline
        return [removal(reading.text, start, end), self._insertion(reading, at, text, is_tight=is_item)]

    def _insertion(self, reading: Reading, at: int, text: str, *, is_tight: bool) -> Splice:
        """Insert lines, with an empty line before and after unless they belong to a tight list."""
        if is_tight and not _is_loose(reading):
            return Splice(at, at, text)
        before = "" if follows_blank_line(reading.text, at) else self._newline
        after = "" if is_blank_line(reading.text, at) else self._newline
        return Splice(at, at, before + text + after)

    def _add(self, story: Story, after: Place | None) -> None:
        reading = self.reading()
        if story.id in self._numbers:
            raise IllegalChange(f"story {story.id} is already in the plan")
        neighbour = after or reading.places[-1]
        other = next((place for place in self._nearest(neighbour) if place.heading >= 0), None)
        is_list = neighbour.item >= 0 and not neighbour.heading < neighbour.item < neighbour.block_end
        splices = [self._new_item(neighbour, story, has_body=other is None)] if is_list else []
        if other:
            splices.append(self._new_block(other, story, has_box=not is_list))
        self._splice(splices)

    def _nearest(self, place: Place) -> Iterator[Place]:
        """This one, those before it, then those after it."""
        places = self.reading().places
        number = self._numbers[place.story.id]
        yield from reversed(places[: number + 1])
        yield from places[number + 1 :]

    def _marker(self, like: Place) -> str:
        """The text before the checkbox of an item that follows this one."""
        text, block = self.reading().text, self.reading().blocks[like.item]
        marker = text[block.start : block.text]
        if "\n" in marker:  # the text of the item starts on its second line
            marker = text[block.start : line_end(text, block.start)].rstrip() + " "
        return _NUMBERED.sub(lambda found: str(int(found[1]) + 1), marker)

    def _new_item(self, like: Place, story: Story, *, has_body: bool) -> Splice:
        reading = self.reading()
        marker = self._marker(like)
        lines = [f"{marker}{box(story)} {self._head(story, reading.blocks[like.item])}"]
        if has_body:
            lines += write_body(story, blank(marker), in_block=False)
        _, at = item_span(reading, like) or (0, 0)
        return self._insertion(reading, at, joined(lines, self._newline), is_tight=True)

    def _new_block(self, like: Place, story: Story, *, has_box: bool) -> Splice:
        reading = self.reading()
        block = reading.blocks[like.heading]
        mark = f"{box(story)} " if has_box and like.item < 0 else ""
        lines = [f"{'#' * block.level} {mark}{self._head(story, block)}"]
        if has_box and like.item >= 0:  # the plan has the item of a story inside its block
            lines += ["", f"{self._marker(like)}{box(story)} {self._head(story, reading.blocks[like.item])}"]
        lines += write_body(story, "", in_block=True)
        _, at = block_span(reading, like) or (0, 0)
        return self._insertion(reading, at, joined(lines, self._newline), is_tight=False)

    def _head(self, story: Story, like: Block) -> str:
        text = self.reading().text[like.text : like.end]
        return self._dialect.write_head(story, text[3:] if like.box >= 0 else text)


def box(story: Story) -> str:
    return "[x]" if story.is_done else "[ ]"


def _parts(reading: Reading, place: Place) -> list[tuple[int, int]]:
    """The lines of a story: its item, its block, or one of them if it contains the other."""
    spans = [span for span in (item_span(reading, place), block_span(reading, place)) if span]
    return [span for span in spans if not any(o != span and o[0] <= span[0] and span[1] <= o[1] for o in spans)]


def _is_loose(reading: Reading) -> bool:
    """Whether empty lines separate the items of the list."""
    listed = [place for place in reading.places[:3] if place.item >= 0]
    for one, other in pairwise(listed):
        end, start = (item_span(reading, one) or (0, 0))[1], reading.blocks[other.item].start
        if end < start and not reading.text[end:start].strip():
            return True
    return False


_LABELS = {"verify": "Verify", "touches": "Touches", "depends_on": "Depends on", "notes": "Notes"}


def write_body(story: Story, indent: str, *, in_block: bool) -> list[str]:
    """The lines of a new body: the fields that have a value, in the usual order."""
    lines: list[str] = []
    labels: list[str] = []
    if story.description:
        lines += [*([""] if in_block else []), *_paragraphs(story.description, indent)]
    if story.criteria and in_block:
        lines += ["", "**Acceptance Criteria:**", "", *(f"- [ ] {_after_mark(value)}" for value in story.criteria)]
    elif story.criteria:
        lines += [f"{indent}- {escape(value, in_item=True)}" for value in story.criteria]
    for field in _LABELS:
        if value := getattr(story, field):
            labels += _with_label(field, value, indent, in_block=in_block)
    return [*lines, "", *labels] if labels and in_block else lines + labels


def set_field(body: Body, field: str, value: Any) -> list[Splice]:
    """The replacements that give the field this value."""
    if fold(body.pieces)[field] == value:
        return []
    wanted = criteria_field(body.pieces) if field == "criteria" else field
    own = [piece for piece in body.pieces if piece.field == wanted and piece.form is not Form.HEAD]
    head = next((piece for piece in body.pieces if piece.field == wanted and piece.form is Form.HEAD), None)
    if own:
        spans = [_span(body, piece) for piece in own]
        if field == "criteria" and all(piece.form is Form.ITEM for piece in own):
            return _change_items(body, own, spans, value)
        return _replace(body, spans, joined(_in_style_of(body, own[0], field, value), body.newline))
    if not value:
        return []
    if head:
        return [_below(body, head, field, value)]
    return [_in_its_usual_place(body, field, value)]


def joined(lines: Sequence[str], newline: str) -> str:
    return "".join(line + newline for line in lines)


def _span(body: Body, piece: Piece) -> tuple[int, int]:
    """The lines of a piece, with everything nested in it."""
    if body.blocks[piece.block].kind is Kind.ITEM:
        return piece.start, end_with_nested(body.text, body.blocks, piece.block, len(body.blocks))
    return piece.start, line_end(body.text, piece.stop)


def _replace(body: Body, spans: Sequence[tuple[int, int]], text: str) -> list[Splice]:
    """Replace the first span with `text`, and remove the others."""
    merged = [spans[0]]
    for start, end in spans[1:]:
        if start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    first = Splice(*merged[0], text) if text else removal(body.text, *merged[0])
    return [first, *(removal(body.text, *span) for span in merged[1:])]


def _change_items(
    body: Body, own: Sequence[Piece], spans: Sequence[tuple[int, int]], values: Sequence[str]
) -> list[Splice]:
    """Unchanged criteria are not touched."""
    splices: list[Splice] = []
    matcher = SequenceMatcher(None, [piece.values[0] for piece in own], list(values), autojunk=False)
    for action, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if action == "equal":
            continue
        like = own[min(old_from, len(own) - 1)]
        text = joined([_item(body, like, value) for value in values[new_from:new_to]], body.newline)
        if old_from < old_to:
            splices += _replace(body, spans[old_from:old_to], text)
        else:
            at = spans[old_from][0] if old_from < len(spans) else spans[-1][1]
            splices.append(Splice(at, at, text))
    return splices


def _item(body: Body, like: Piece, value: str) -> str:
    """A list item in the style of another one."""
    block = body.blocks[like.block]
    marker = body.source[block.start : block.text]
    if not marker.strip() or "\n" in marker or "\r" in marker:
        marker = f"{body.indent}- "
    return marker + (f"[ ] {_after_mark(value)}" if block.box >= 0 else escape(value, in_item=True))


def _in_style_of(body: Body, first: Piece, field: str, value: Any) -> list[str]:
    """The lines of a field that had a value before, in the style of its first piece."""
    if not value:
        return []
    block = body.blocks[first.block]
    is_item = block.kind is Kind.ITEM
    indent = blank(body.source[block.start : block.text]) if is_item else _leading_space(body.source, first.start)
    if first.form is Form.ITEM:
        return [_item(body, first, text) for text in _as_items(field, value)]
    if first.form is Form.LINE:
        return _lines(field, value, indent)
    label = body.source[first.start : first.text]
    if field == "criteria":
        marker = "- [ ] " if body.in_block else "- "
        return [label.rstrip(), *([] if is_item else [""]), *(f"{indent}{marker}{_after_mark(v)}" for v in value)]
    return _labelled(label if label.endswith((" ", "\t")) else f"{label} ", field, value, indent)


def _below(body: Body, head: Piece, field: str, value: Any) -> Splice:
    """The value for a label that had none."""
    block = body.blocks[head.block]
    is_item = block.kind is Kind.ITEM
    indent = blank(body.source[block.start : block.text]) if is_item else body.indent
    at = line_end(body.text, head.stop)
    if block.kind is Kind.HEADING and block.marker == block.text:  # underlined
        at = line_end(body.text, at)
    if field in ("notes", "description"):
        lines = _lines(field, value, indent)
    else:
        marker = "- [ ] " if field == "criteria" and body.in_block else "- "
        lines = [f"{indent}{marker}{_after_mark(text)}" for text in _as_items(field, value)]
        lines += [""] if _would_run_on(body, at) else []
    return Splice(at, at, joined(lines, body.newline))


def _in_its_usual_place(body: Body, field: str, value: Any) -> Splice:
    if field in _LABELS:
        at = body.end
        lines = _with_label(field, value, body.indent, in_block=body.in_block)
        if body.in_block and not _ends_with_label(body):
            lines = ["", *lines]
    else:
        at = body.start
        if field == "criteria":
            at = max([at, *(_span(body, piece)[1] for piece in body.pieces if piece.field == "description")])
        alone: dict[str, Any] = {"id": "", "title": "", field: value}
        lines = write_body(Story(**alone), body.indent, in_block=body.in_block)
    if (body.in_block and not is_blank_line(body.text, at)) or (field == "criteria" and _would_run_on(body, at)):
        lines = [*lines, ""]
    return Splice(at, at, joined(lines, body.newline))


def _ends_with_label(body: Body) -> bool:
    """Whether the last line is a label with its value, so that another can follow right below it."""
    if not body.pieces or body.pieces[-1].form is not Form.LABELLED:
        return False
    last = body.pieces[-1]
    return body.blocks[last.block].kind is Kind.TEXT and _span(body, last)[1] == body.end


def _would_run_on(body: Body, at: int) -> bool:
    """Whether the line here would become part of a list item written before it."""
    starts = any(block.start == at and block.kind in (Kind.ITEM, Kind.HEADING) for block in body.blocks)
    return at < body.end and not is_blank_line(body.text, at) and not starts


def _with_label(field: str, value: Any, indent: str, *, in_block: bool) -> list[str]:
    mark = "" if in_block else "- "
    return _labelled(f"{indent}{mark}{_LABELS[field]}: ", field, value, indent + blank(mark))


def _labelled(label: str, field: str, value: Any, indent: str) -> list[str]:
    if field in ("notes", "description"):
        first, *rest = str(value).split("\n")
        return [label + _after_mark(first), *(_paragraphs("\n".join(rest), indent) if rest else ())]
    return [label + ", ".join(_as_items(field, value))]


def _lines(field: str, value: Any, indent: str) -> list[str]:
    if field in ("notes", "description"):
        return _paragraphs(value, indent)
    return [indent + ", ".join(_as_items(field, value))]


def _as_items(field: str, value: Any) -> list[str]:
    if field == "notes":
        return str(value).split("\n")
    return [code_span(text) for text in value] if field in ("verify", "touches") else list(value)


def _paragraphs(text: str, indent: str) -> list[str]:
    return [indent + escape(line) if line else "" for line in text.split("\n")]


def _after_mark(text: str) -> str:
    """Text after a label or a checkbox, where no Markdown block can start."""
    return f"\\{text}" if unescape(text) != text else text


def _leading_space(source: str, start: int) -> str:
    rest = source[start : start + 200]
    return rest[: len(rest) - len(rest.lstrip(" \t"))]


def top_lines(plan: Plan) -> list[str]:
    lines = [f"# {heading_text(plan.name) or 'Plan'}", ""]
    if plan.description.strip():
        lines += [*(escape(line.strip()) if line.strip() else "" for line in plan.description.splitlines()), ""]
    return lines


def heading_text(words: str) -> str:
    """On one line, and not mistakable for the heading of a story."""
    line = one_line(words).rstrip("#").rstrip()
    return f"Part {line}" if _LIKE_A_STORY.match(line) else line


def joined_lines(lines: Sequence[str]) -> str:
    """The text of a new plan, without runs of empty lines."""
    return "\n".join(line for at, line in enumerate(lines) if line or not at or lines[at - 1]) + "\n"
