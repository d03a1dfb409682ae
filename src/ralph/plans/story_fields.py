"""Write one field of a story into its Markdown body: only the lines of that field change."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from ralph.plans.blocks import Kind
from ralph.plans.story_place import Body, Splice, blank, end_with_nested, is_blank_line, line_end, removal
from ralph.plans.story_text import Form, Piece, code_span, criteria_field, escape, fold, unescape

_LABELS = {"verify": "Verify", "depends_on": "Depends on", "notes": "Notes"}


def write_body(values: dict[str, Any], indent: str, *, in_block: bool) -> list[str]:
    """The lines of a new body: the fields that have a value, in the usual order."""
    lines: list[str] = []
    labels: list[str] = []
    if text := values.get("description"):
        lines += ["", *_paragraphs(text, indent)] if in_block else _paragraphs(text, indent)
    if criteria := values.get("criteria"):
        lines += _criteria(criteria, indent, in_block=in_block)
    for field in _LABELS:
        if value := values.get(field):
            labels += _with_label(field, value, indent, in_block=in_block)
    return [*lines, "", *labels] if labels and in_block else lines + labels


def set_field(source: str, body: Body, field: str, value: Any, newline: str) -> list[Splice]:
    """The replacements in `source` that give the field this value."""
    if getattr(fold(body.pieces), field) == value:
        return []
    wanted = criteria_field(body.pieces) if field == "criteria" else field
    own = [piece for piece in body.pieces if piece.field == wanted and piece.form is not Form.HEAD]
    head = next((piece for piece in body.pieces if piece.field == wanted and piece.form is Form.HEAD), None)
    if own:
        spans = [_span(body, piece) for piece in own]
        if field == "criteria" and all(piece.form is Form.ITEM for piece in own):
            return _change_items(source, body, own, spans, value, newline)
        return _replace(body, spans, joined(_in_style_of(source, body, own[0], field, value), newline))
    if not value:
        return []
    if head:
        return [_below(source, body, head, field, value, newline)]
    return [_in_its_usual_place(body, field, value, newline)]


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
    source: str,
    body: Body,
    own: Sequence[Piece],
    spans: Sequence[tuple[int, int]],
    values: Sequence[str],
    newline: str,
) -> list[Splice]:
    """Unchanged criteria are not touched."""
    splices: list[Splice] = []
    matcher = SequenceMatcher(None, [piece.values[0] for piece in own], list(values), autojunk=False)
    for action, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        if action == "equal":
            continue
        like = own[min(old_from, len(own) - 1)]
        text = joined([_item(source, body, like, value) for value in values[new_from:new_to]], newline)
        if old_from < old_to:
            splices += _replace(body, spans[old_from:old_to], text)
        else:
            at = spans[old_from][0] if old_from < len(spans) else spans[-1][1]
            splices.append(Splice(at, at, text))
    return splices


def _item(source: str, body: Body, like: Piece, value: str) -> str:
    """A list item in the style of another one."""
    block = body.blocks[like.block]
    marker = source[block.start : block.text]
    if not marker.strip() or "\n" in marker or "\r" in marker:
        marker = f"{body.indent}- "
    return marker + (f"[ ] {_after_mark(value)}" if block.box >= 0 else escape(value, in_item=True))


def _in_style_of(source: str, body: Body, first: Piece, field: str, value: Any) -> list[str]:
    """The lines of a field that had a value before, in the style of its first piece."""
    if not value:
        return []
    block = body.blocks[first.block]
    is_item = block.kind is Kind.ITEM
    indent = blank(source[block.start : block.text]) if is_item else _leading_space(source, first.start)
    if first.form is Form.ITEM:
        return [_item(source, body, first, text) for text in _as_items(field, value)]
    if first.form is Form.LINE:
        return _lines(field, value, indent)
    label = source[first.start : first.text]
    if field == "criteria":
        marker = "- [ ] " if body.in_block else "- "
        return [label.rstrip(), *([] if is_item else [""]), *(f"{indent}{marker}{_after_mark(v)}" for v in value)]
    return _labelled(label if label.endswith((" ", "\t")) else f"{label} ", field, value, indent)


def _below(source: str, body: Body, head: Piece, field: str, value: Any, newline: str) -> Splice:
    """The value for a label that had none."""
    block = body.blocks[head.block]
    is_item = block.kind is Kind.ITEM
    indent = blank(source[block.start : block.text]) if is_item else body.indent
    at = line_end(body.text, head.stop)
    if block.kind is Kind.HEADING and block.marker == block.text:  # underlined
        at = line_end(body.text, at)
    if field in ("notes", "description"):
        lines = _lines(field, value, indent)
    else:
        marker = "- [ ] " if field == "criteria" and body.in_block else "- "
        lines = [f"{indent}{marker}{_after_mark(text)}" for text in _as_items(field, value)]
        lines += [""] if _would_run_on(body, at) else []
    return Splice(at, at, joined(lines, newline))


def _in_its_usual_place(body: Body, field: str, value: Any, newline: str) -> Splice:
    if field in _LABELS:
        at = body.end
        lines = _with_label(field, value, body.indent, in_block=body.in_block)
        if body.in_block and not _ends_with_label(body):
            lines = ["", *lines]
    else:
        at = body.start
        if field == "criteria":
            at = max([at, *(_span(body, piece)[1] for piece in body.pieces if piece.field == "description")])
        lines = write_body({field: value}, body.indent, in_block=body.in_block)
    if (body.in_block and not is_blank_line(body.text, at)) or (field == "criteria" and _would_run_on(body, at)):
        lines = [*lines, ""]
    return Splice(at, at, joined(lines, newline))


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


def _criteria(values: Sequence[str], indent: str, *, in_block: bool) -> list[str]:
    if in_block:
        return ["", "**Acceptance Criteria:**", "", *(f"- [ ] {_after_mark(value)}" for value in values)]
    return [f"{indent}- {escape(value, in_item=True)}" for value in values]


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
    return [code_span(command) for command in value] if field == "verify" else list(value)


def _paragraphs(text: str, indent: str) -> list[str]:
    return [indent + escape(line) if line else "" for line in text.split("\n")]


def _after_mark(text: str) -> str:
    """Text after a label or a checkbox, where no Markdown block can start."""
    return f"\\{text}" if unescape(text) != text else text


def _leading_space(source: str, start: int) -> str:
    rest = source[start : start + 200]
    return rest[: len(rest) - len(rest.lstrip(" \t"))]
