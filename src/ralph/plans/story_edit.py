"""Edit a Markdown plan: a change touches only its own lines; every other byte stays."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec

from ralph.core.changes import EDITABLE, AddStory, Change, MoveStory, RemoveStory, SetFields, apply
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.plan import Plan, State, Story
from ralph.core.text import one_line
from ralph.plans.blocks import Block
from ralph.plans.markdown import newline_of, with_plain_line_ends
from ralph.plans.plain_plan import find_boxes
from ralph.plans.story_fields import joined, set_field, write_body
from ralph.plans.story_place import (
    Dialect,
    Place,
    Reading,
    Splice,
    blank,
    block_span,
    body_of,
    follows_blank_line,
    is_blank_line,
    item_span,
    line_end,
    removal,
)
from ralph.plans.story_text import FIELDS

_FEW = 10
_NUMBERED = re.compile(r"([0-9]+)(?=[.)])")


def edit(source: bytes, changes: Sequence[Change], dialect: Dialect) -> bytes:
    """The same bytes with only these changes. `source` must be a plan that was read before."""
    checked = [_checked(change, dialect) for change in changes]
    marks = {c.story: c.fields["state"] for c in checked if isinstance(c, SetFields) and c.fields.keys() == {"state"}}
    is_marking = len(marks) == len(checked)
    if is_marking and len(marks) <= _FEW and (marked := _marked(source.decode(), marks, dialect)) is not None:
        return marked.encode()
    draft = _Draft(source.decode(), dialect)
    before = draft.reading()
    for change in checked:
        draft.apply(change)
    text = draft.finish()
    if is_marking:
        return text.encode()
    _must_mean(apply(Plan(name="", stories=tuple(place.story for place in before.places)), checked), text, dialect)
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise IllegalChange("the text of this change is not Unicode") from None


def _marked(text: str, states: dict[str, State], dialect: Dialect) -> str | None:
    """The most frequent edit: tick the box of one story. None if the plan needs the thorough way."""
    boxes = find_boxes(text, dialect.shape, dialect.ids, states)
    if boxes is None:
        return None
    for story_id, box in boxes.items():
        is_done = states[story_id] is State.DONE
        if (text[box] != " ") != is_done:
            text = f"{text[:box]}{'x' if is_done else ' '}{text[box + 1 :]}"
    return text


def _checked(change: Change, dialect: Dialect) -> Change:
    """The change with the right types. Raises IllegalChange for what the format cannot represent."""
    if isinstance(change, SetFields):
        return SetFields(change.story, _checked_fields(change.story, change.fields, dialect))
    if isinstance(change, AddStory):
        said = {name: getattr(change.story, name) for name in EDITABLE & dialect.speaks}
        _checked_fields(change.story.id, said, dialect)
    return change


def _checked_fields(story_id: str, fields: dict[str, Any], dialect: Dialect) -> dict[str, Any]:
    name = f"story {one_line(story_id, 60)}"
    if wrong := sorted(set(fields) - (EDITABLE & dialect.speaks)):
        raise IllegalChange(f"{name}: {dialect.layout} has no field for {wrong[0]}")
    try:
        values = {key: msgspec.convert(value, _types_of_fields()[key]) for key, value in fields.items()}
    except msgspec.ValidationError as error:
        raise IllegalChange(f"{name} would not be valid in {dialect.layout}: {error}") from None
    if values.get("state", State.TODO) not in dialect.states:
        raise IllegalChange(
            f"{dialect.layout} has no state for {values['state']}",
            hint=f"it supports {', '.join(sorted(dialect.states))}",
        )
    return values


@cache
def _types_of_fields() -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(Story)}


def _must_mean(meant: Plan, text: str, dialect: Dialect) -> None:
    """The written text must read back as intended; otherwise nothing is written."""
    read = _read(text, dialect).places
    if [place.story.id for place in read] != [story.id for story in meant.stories]:
        raise IllegalChange(
            f"{dialect.layout} cannot represent this change without affecting another story",
            hint="edit the file by hand",
        )
    for name in sorted(dialect.speaks):
        for place, story in zip(read, meant.stories, strict=True):
            if getattr(place.story, name) != getattr(story, name):
                raise IllegalChange(
                    f"story {one_line(story.id, 60)}: {dialect.layout} cannot represent this {name}",
                    hint="use plain text, with titles and criteria on one line each; or edit the file by hand",
                )


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
                self._remove(self._find(story_id))
            case MoveStory(story_id, before):
                self._move(self._find(story_id), None if before is None else self._find(before))

    def _find(self, story_id: str) -> Place:
        reading = self.reading()
        if story_id not in self._numbers:
            raise IllegalChange(
                f"no story {one_line(story_id, 60)} in the plan", hint="`ralph task list` shows the IDs"
            )
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
            self._mark(place, is_done=fields["state"] is State.DONE)
        if fields.get("title", place.story.title) != place.story.title:
            self._splice(self._retitled(place, fields["title"]))
        for name in FIELDS:
            if name in fields:
                body = body_of(self.reading(), self._find(story_id), self._dialect.ids)
                self._splice(set_field(self._text, body, name, fields[name], self._newline))

    def _mark(self, place: Place, *, is_done: bool) -> None:
        for box in self.reading().boxes(place):
            self._boxes.pop(box, None)
            if (self._text[box] != " ") != is_done:
                self._boxes[box] = "x" if is_done else " "

    def _retitled(self, place: Place, title: str) -> list[Splice]:
        spans = [span for span in place.titles if span[1] > span[0]] or list(place.titles[:1])
        return [Splice(start, end, self._gap(start) + title) for start, end in spans]

    def _gap(self, at: int) -> str:
        """The separator between an ID and a title."""
        before = self._text[at - 1]
        return "" if before in " \t" else " " if before == ":" else ": "

    def _remove(self, place: Place) -> None:
        reading = self.reading()
        self._splice(removal(reading.text, *span) for span in _parts(reading, place))

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
        lines = [f"{marker}{_box(story)} {self._head(story, reading.blocks[like.item])}"]
        if has_body:
            lines += write_body(_body_values(story), blank(marker), in_block=False)
        _, at = item_span(reading, like) or (0, 0)
        return self._insertion(reading, at, joined(lines, self._newline), is_tight=True)

    def _new_block(self, like: Place, story: Story, *, has_box: bool) -> Splice:
        reading = self.reading()
        block = reading.blocks[like.heading]
        box = f"{_box(story)} " if has_box and like.item < 0 else ""
        lines = [f"{'#' * block.level} {box}{self._head(story, block)}"]
        if has_box and like.item >= 0:  # the plan has the item of a story inside its block
            lines += ["", f"{self._marker(like)}{_box(story)} {self._head(story, reading.blocks[like.item])}"]
        lines += write_body(_body_values(story), "", in_block=True)
        _, at = block_span(reading, like) or (0, 0)
        return self._insertion(reading, at, joined(lines, self._newline), is_tight=False)

    def _head(self, story: Story, like: Block) -> str:
        text = self.reading().text[like.text : like.end]
        return self._dialect.write_head(story, text[3:] if like.box >= 0 else text)


def _box(story: Story) -> str:
    return "[x]" if story.is_done else "[ ]"


def _body_values(story: Story) -> dict[str, Any]:
    return {name: getattr(story, name) for name in FIELDS}


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
