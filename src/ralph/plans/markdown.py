"""Find the real headings, list items and checkboxes of a Markdown text.

Fences, indented code, HTML comments and quotes can hold lines that only look like a task. Plain lines, which nearly all
lines of a plan are, are recognised by one regular expression; at the first other line, the section is read again by
`commonmark.Reader`, up to the next line that closes everything.
"""

from __future__ import annotations

import re

from ralph.plans.blocks import CHECKBOX, Block, Kind
from ralph.plans.commonmark import Reader, without_closing

# A line that starts like this is text whatever came before it, unless it is inside code or HTML.
TEXT = r"(?=[A-Za-z\x80-\U0010ffff\[\"'(@/]|[0-9]++[^0-9.)\n]|\*\*[A-Za-z\x80-\U0010ffff]|`[^`\n])"
_MORE = rf"(?:\n[ ]*+{TEXT}[^\n]*+)"
_PLAIN = re.compile(
    rf"""
    (?: ([ ]*+[-*+][ ]) ({TEXT}[^\n]*+) ({_MORE}++)?
      | (\#{{1,6}})[ ]++ ([^\#\s][^\n]*+)
      | ([ ]*+) ({TEXT}[^\n]*+{_MORE}*+)
      | [ \t]*+ (?=\n)
      | ([^\n]) [^\n]*+
    ) \n (?:[ \t]*+\n)*+
    """,
    re.VERBOSE,
)
_ITEM, _LONG_ITEM, _HEADING, _PARAGRAPH, _STRANGE = 2, 3, 5, 7, 8
"""The last matching group identifies the kind of line."""
_CLOSES_ALL = re.compile(rf"[-*+][ ]{TEXT}|\#{{1,6}}[ ]++[^\#\s]")
"""At the start of a line: it ends every open list, quote and paragraph."""

_LINE_END = re.compile(r"\r\n|\n|\r")


def scan(source: str) -> list[Block]:
    """The blocks of a text, in order. Offsets are those of `source`, whatever its line ends."""
    text = with_plain_line_ends(source)
    out: list[Block] = []
    at, line = int(text.startswith("\ufeff")), 1
    while at < len(text):
        at, line = _scan_plain(text, at, line, out)
        if at < len(text):
            at, line = Reader(text, out).read(at, line, _CLOSES_ALL)
    return out


def newline_of(source: str) -> str:
    """The first line end used in the text."""
    found = _LINE_END.search(source)
    return found[0] if found else "\n"


def with_plain_line_ends(source: str) -> str:
    """The same offsets, with `\\n` for every line end and at the end. A trailing space has no meaning in Markdown."""
    if "\r" in source:
        source = source.replace("\r\n", " \n").replace("\r", "\n")
    return source if source.endswith("\n") else source + "\n"


def _scan_plain(text: str, at: int, line: int, out: list[Block]) -> tuple[int, int]:
    """Read plain lines. Returns the end, or the start of the section that contains another kind of line.

    One loop, written for speed: every plan passes through it.
    """
    section = at, line, len(out)
    columns: list[int] = []  # where the text of each open list item starts
    append = out.append
    item, alone = Kind.ITEM, Kind.TEXT
    for found in _PLAIN.finditer(text, at):
        group = found.lastindex
        at, after = found.span()
        if group in (_ITEM, _LONG_ITEM):
            begin, end = found.span(2)
            indent = begin - at - 2
            if indent == 0:
                section = at, line, len(out)
                columns = [2]
                depth = 0
            else:
                while columns and indent < columns[-1]:
                    columns.pop()
                depth = len(columns)
                if indent - (columns[-1] if columns else 0) > 3:
                    break
                columns.append(indent + 2)
            lines = 1
            if group == _LONG_ITEM or after > end + 1:
                end = max(end, found.end(3))
                lines = text.count("\n", at, after)
            if text[end - 1] in " \t":
                end = begin + len(text[begin:end].rstrip(" \t"))
            box = begin + 1 if text[begin] == "[" and CHECKBOX.match(text, begin) else -1
            append(Block(item, depth, line, at, at + indent, begin, end, box))
            line += lines
        elif group == _PARAGRAPH:
            begin, end = found.span(7)
            indent = begin - at
            while columns and indent < columns[-1]:
                columns.pop()
            if indent - (columns[-1] if columns else 0) > 3:
                break
            if text[end - 1] in " \t":
                end = begin + len(text[begin:end].rstrip(" \t"))
            append(Block(alone, len(columns), line, at, begin, begin, end))
            line += text.count("\n", at, after)
        elif group == _HEADING:
            section = at, line, len(out)
            columns = []
            append(_heading(found, line))
            line += text.count("\n", at, after)
        elif group == _STRANGE:
            break
        else:
            line += text.count("\n", at, after)
    else:
        return len(text), line
    del out[section[2] :]
    return section[0], section[1]


def _heading(found: re.Match[str], line: int) -> Block:
    at, begin = found.start(), found.start(5)
    title = found[5]
    if title[-1] in "# \t":
        title = without_closing(title)
    box = begin + 1 if title[0] == "[" and CHECKBOX.match(title) else -1
    return Block(Kind.HEADING, 0, line, at, at, begin, begin + len(title), box, found.end(4) - at)
