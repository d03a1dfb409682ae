"""Find the headings, list items and checkboxes of a Markdown text, as CommonMark defines them.

Fences, indented code, HTML comments and quotes can hold lines that only look like a task. The reader keeps byte-exact
offsets, which a plan needs to change one line and no other; a Markdown library gives lines only.

Two simplifications. A link reference definition is read as a paragraph. Containers nested deeper than `DEEPEST` are not
opened, so that hostile input costs linear time.
"""

from __future__ import annotations

import re
from enum import IntEnum

from msgspec import Struct

DEEPEST = 100
CHECKBOX = re.compile(r"\[[ xX]\](?=[ \t\n]|\Z)")

_ATX = re.compile(r"(#{1,6})(?:[ \t]+|\Z)")
_FENCE = re.compile(r"(`{3,}+)[^`]*\Z|(~{3,})")
_SETEXT = re.compile(r"(?:=+|-+)[ \t]*\Z")
_RULE = re.compile(r"(?:(?:\*[ \t]*+){3,}+|(?:-[ \t]*+){3,}+|(?:_[ \t]*+){3,}+)\Z")
_MARKER = re.compile(r"(?:[-+*]|([0-9]{1,9})[.)])(?=[ \t]|\Z)")
_SPACE = re.compile(r"[ \t]*")
_LINE_END = re.compile(r"\r\n|\n|\r")
_TAG = r"[A-Za-z][A-Za-z0-9-]*"
_ATTRIBUTE = r"[ \t]+[A-Za-z_:][A-Za-z0-9:._-]*(?:[ \t]*=[ \t]*(?:[^ \t\"'=<>`]+|'[^']*'|\"[^\"]*\"))?"
_BLOCK_TAGS = (
    "address|article|aside|base|basefont|blockquote|body|caption|center|col|colgroup|dd|details|dialog|dir|div|dl|dt"
    "|fieldset|figcaption|figure|footer|form|frame|frameset|h1|h2|h3|h4|h5|h6|head|header|hr|html|iframe|legend|li|link"
    "|main|menu|menuitem|nav|noframes|ol|optgroup|option|p|param|search|section|summary|table|tbody|td|tfoot|th|thead"
    "|title|tr|track|ul"
)
_HTML_STARTS = (
    (
        re.compile(r"<(?:script|pre|style|textarea)(?=[ \t>]|\Z)", re.I),
        re.compile(r"</(?:script|pre|style|textarea)>", re.I),
    ),
    (re.compile(r"<!--"), re.compile(r"-->")),
    (re.compile(r"<\?"), re.compile(r"\?>")),
    (re.compile(r"<![A-Za-z]"), re.compile(r">")),
    (re.compile(r"<!\[CDATA\["), re.compile(r"\]\]>")),
    (re.compile(rf"</?(?:{_BLOCK_TAGS})(?=[ \t]|/?>|\Z)", re.I), None),
)
"""How an HTML block starts, and how its last line looks. None: a blank line ends it."""
_LONE_TAG = re.compile(rf"<(?:{_TAG}(?:{_ATTRIBUTE})*[ \t]*/?|/{_TAG}[ \t]*)>[ \t]*\Z")


class Kind(IntEnum):
    HEADING = 0
    ITEM = 1
    TEXT = 2
    """A paragraph that is not the first one of a list item."""
    OTHER = 3
    """Code, HTML, a rule, anything in a quote: it takes up lines and never holds a task."""


class Block(Struct, frozen=True, gc=False):
    """One block of a document. All positions are offsets into the text."""

    kind: Kind
    depth: int
    """The number of enclosing list items."""
    line: int
    start: int
    """Offset of its first line."""
    marker: int
    """Offset of its bullet, number or `#`; the same as `text` if there is none."""
    text: int
    """Offset of its text, including a checkbox."""
    end: int
    """Offset of the end of its text, without trailing spaces on the last line."""
    box: int = -1
    """The character inside the checkbox that the text starts with, or -1."""
    level: int = 0
    """1 to 6 for a heading."""


def scan(source: str) -> list[Block]:
    """The blocks of a text, in order. Offsets are those of `source`, whatever its line ends."""
    return Reader(with_plain_line_ends(source)).read()


def newline_of(source: str) -> str:
    """The first line end used in the text."""
    found = _LINE_END.search(source)
    return found[0] if found else "\n"


def with_plain_line_ends(source: str) -> str:
    """The same offsets, with `\\n` for every line end and at the end. A trailing space has no meaning in Markdown."""
    if "\r" in source:
        source = source.replace("\r\n", " \n").replace("\r", "\n")
    return source if source.endswith("\n") else source + "\n"


class _Container(Struct, gc=False):
    is_quote: bool
    width: int
    """Columns that a line must be indented by to belong to this list item."""
    depth: int
    quoted: bool
    index: int
    """Index of the block for this list item."""
    is_empty: bool = True


class _Leaf(Struct, gc=False):
    """The innermost open block."""

    line: int
    start: int
    text: int
    end: int
    is_text: bool = False
    heads_item: bool = False
    """It is the first paragraph of a list item."""
    fence: str = ""
    """The run of ` or ~ that a fence was opened with."""
    closer: re.Pattern[str] | None = None
    """The text that marks the last line of an HTML block."""
    until_blank: bool = False

    @property
    def is_opaque(self) -> bool:
        """Its content is not parsed until it ends."""
        return bool(self.fence) or self.closer is not None or self.until_blank


class Reader:
    """`text` must use `\\n` line ends, also at its end."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.out: list[Block] = []
        self.containers: list[_Container] = []
        self.leaf: _Leaf | None = None
        self.line = 0
        self.start = self.stop = self.at = self.column = 0

    def read(self) -> list[Block]:
        self.start = int(self.text.startswith("\ufeff"))
        while self.start < len(self.text):
            self.stop, self.line = self.text.index("\n", self.start), self.line + 1
            self._read_line()
            self.start = self.stop + 1
        self._close(0)
        return self.out

    def _read_line(self) -> None:
        self.at, self.column = self.start, 0
        matched = self._match_containers()
        all_matched = matched == len(self.containers)
        if self.leaf and not self.leaf.is_text:
            if all_matched and self._goes_on(self.leaf):
                return
            self._close_leaf()
        self._read_starts(matched)

    def _match_containers(self) -> int:
        """The number of open containers this line belongs to. Moves past their markers and indentation."""
        for number, container in enumerate(self.containers):
            at, width = self._indent()
            if container.is_quote:
                if width > 3 or at == self.stop or self.text[at] != ">":
                    return number
                self._enter_quote(at, width)
            elif at == self.stop:
                if container.is_empty:  # a list item may start with one blank line, not with two
                    return number
                self.at, self.column = at, self.column + width
            elif width >= container.width:
                self._advance(container.width)
            else:
                return number
        return len(self.containers)

    def _goes_on(self, leaf: _Leaf) -> bool:
        """Whether this line belongs to the open code or HTML."""
        at, width = self._indent()
        is_blank = at == self.stop
        if leaf.until_blank and is_blank:
            return False
        if not leaf.is_opaque:  # indented code; blank lines at its end are not part of it
            if not is_blank and width >= 4:
                leaf.end = self.stop
            return is_blank or width >= 4
        leaf.end = self.stop
        is_last = (
            width <= 3 and _closes(leaf.fence, self.text[at : self.stop])
            if leaf.fence
            else leaf.closer is not None and leaf.closer.search(self.text, self.at, self.stop)
        )
        if is_last:
            self._close_leaf()
        return True

    def _read_starts(self, matched: int) -> None:
        """Open what starts on this line: containers first, then one leaf; or continue the paragraph."""
        text = self.text
        while True:
            at, width = self._indent()
            paragraph = self.leaf
            if at == self.stop:
                if paragraph or matched < len(self.containers):
                    self._close(matched)
                return
            if width >= 4:
                if paragraph is None:
                    self._close(matched)
                    self._open(_Leaf(self.line, self.start, at, self.stop))
                    return
                break
            continues = paragraph is not None and matched == len(self.containers)
            first = text[at]
            if first == ">" and len(self.containers) < DEEPEST:
                self._close(matched)
                self._enter_quote(at, width)
                self._push(is_quote=True, width=0, at=at)
            elif self._starts_leaf(at, first, matched, continues):
                return
            elif (marker := _MARKER.match(text, at, self.stop)) and self._may_start_item(marker, continues):
                self._close(matched)
                self._enter_item(marker, width)
            else:
                break
            matched = len(self.containers)
        end = self._trimmed(self.stop)
        if self.leaf:
            self.leaf.end = end  # the next line of the paragraph, be it a lazy one
        else:
            self._close(matched)
            self._open(_Leaf(self.line, self.start, at, end, is_text=True))

    def _starts_leaf(self, at: int, first: str, matched: int, continues: bool) -> bool:
        text, stop = self.text, self.stop
        if first == "#" and (atx := _ATX.match(text, at, stop)):
            self._close(matched)
            self._mark_child()
            end = atx.end() + len(_without_closing(text[atx.end() : stop]))
            self._emit(Kind.HEADING, at, atx.end(), end, len(atx[1]))
            return True
        if first in "`~" and (fence := _FENCE.match(text, at, stop)):
            self._close(matched)
            self._open(_Leaf(self.line, self.start, at, stop)).fence = fence[1] or fence[2]
            return True
        if first == "<" and self._starts_html(at, matched):
            return True
        if continues and first in "=-" and _SETEXT.match(text, at, stop):
            self._turn_into_heading(1 if first == "=" else 2)
            self._emit(Kind.OTHER, at, at, self._trimmed(stop))
            return True
        if first in "*-_" and _RULE.match(text, at, stop):
            self._close(matched)
            self._mark_child()
            self._emit(Kind.OTHER, at, at, self._trimmed(stop))
            return True
        return False

    def _starts_html(self, at: int, matched: int) -> bool:
        text, stop = self.text, self.stop
        closers = [closer for opening, closer in _HTML_STARTS if opening.match(text, at, stop)]
        if not closers and (self.leaf is not None or not _LONE_TAG.match(text, at, stop)):
            return False  # a lone tag does not interrupt a paragraph
        closer = closers[0] if closers else None
        self._close(matched)
        leaf = self._open(_Leaf(self.line, self.start, at, stop))
        leaf.closer, leaf.until_blank = closer, closer is None
        if closer and closer.search(text, at, stop):
            self._close_leaf()
        return True

    def _may_start_item(self, marker: re.Match[str], continues: bool) -> bool:
        if len(self.containers) >= DEEPEST:
            return False
        if not continues:
            return True
        starts_at_one = marker[1] is None or int(marker[1]) == 1
        return starts_at_one and bool(self.text[marker.end() : self.stop].strip(" \t"))

    def _enter_quote(self, at: int, width: int) -> None:
        self.column += width + 1
        self.at = at + 1
        self._advance(1)

    def _enter_item(self, marker: re.Match[str], width: int) -> None:
        length = marker.end() - marker.start()
        self.at, self.column = marker.end(), self.column + width + length
        at, spaces = self._indent()
        if at == self.stop or spaces > 4:
            spaces = 1  # the item starts with a blank line or with indented code
        self._advance(spaces)
        self._push(is_quote=False, width=width + length + spaces, at=marker.start())

    def _push(self, *, is_quote: bool, width: int, at: int) -> None:
        depth, quoted = self._around()
        self._mark_child()
        index = len(self.out)
        self._emit(Kind.OTHER if is_quote else Kind.ITEM, at, self.at, self.at)
        inside = depth if is_quote or quoted else depth + 1
        self.containers.append(_Container(is_quote, width, inside, quoted or is_quote, index))

    def _open(self, leaf: _Leaf) -> _Leaf:
        around = self.containers[-1] if self.containers else None
        leaf.heads_item = leaf.is_text and around is not None and around.is_empty and not around.quoted
        self._mark_child()
        self.leaf = leaf
        return leaf

    def _close(self, matched: int) -> None:
        """Close the leaf, and the containers past the first `matched`."""
        self._close_leaf()
        del self.containers[matched:]

    def _close_leaf(self) -> None:
        leaf, self.leaf = self.leaf, None
        if leaf is not None and leaf.heads_item:
            self._fill_item(leaf)
        elif leaf is not None:
            self._emit(Kind.TEXT if leaf.is_text else Kind.OTHER, leaf.text, leaf.text, leaf.end, 0, leaf)

    def _fill_item(self, leaf: _Leaf) -> None:
        """The item was added when its marker was read; now its text is known."""
        index = self.containers[-1].index
        item = self.out[index]
        box = leaf.text + 1 if CHECKBOX.match(self.text, leaf.text, leaf.end) else -1
        self.out[index] = Block(Kind.ITEM, item.depth, item.line, item.start, item.marker, leaf.text, leaf.end, box)

    def _turn_into_heading(self, level: int) -> None:
        leaf, self.leaf = self.leaf, None
        assert leaf is not None
        if leaf.heads_item:
            self._fill_item(leaf)
        self._emit(Kind.HEADING, leaf.text, leaf.text, leaf.end, level, leaf)

    def _emit(self, kind: Kind, marker: int, text: int, end: int, level: int = 0, leaf: _Leaf | None = None) -> None:
        """Add a block that starts on the first line of this leaf, or else on the current line."""
        depth, quoted = self._around()
        first = leaf or self
        box = -1
        if quoted:
            kind, level = Kind.OTHER, 0
        elif kind is Kind.HEADING and CHECKBOX.match(self.text, text, end):
            box = text + 1
        self.out.append(Block(kind, depth, first.line, first.start, marker, text, end, box, level))

    def _around(self) -> tuple[int, bool]:
        if not self.containers:
            return 0, False
        return self.containers[-1].depth, self.containers[-1].quoted

    def _mark_child(self) -> None:
        if self.containers:
            self.containers[-1].is_empty = False

    def _indent(self) -> tuple[int, int]:
        """The offset of the next character that is not white space, and its distance in columns."""
        found = _SPACE.match(self.text, self.at, self.stop)
        assert found is not None
        at = found.end()
        width = at - self.at
        if width and self.text.find("\t", self.at, at) >= 0:
            before = self.column % 4
            width = len((" " * before + found[0]).expandtabs(4)) - before
        return at, width

    def _advance(self, columns: int) -> None:
        """Skip this many columns of white space. Inside a tab, `at` stays on the tab and `column` advances."""
        while columns > 0 and self.at < self.stop and self.text[self.at] in " \t":
            width = 1 if self.text[self.at] == " " else 4 - self.column % 4
            if width > columns:
                self.column += columns
                return
            self.at += 1
            self.column += width
            columns -= width

    def _trimmed(self, end: int) -> int:
        return self.start + len(self.text[self.start : end].rstrip(" \t"))


def _closes(fence: str, line: str) -> bool:
    return line.startswith(fence) and not line.lstrip(fence[0]).strip(" \t")


def _without_closing(heading: str) -> str:
    """`Title ##` → `Title`."""
    heading = heading.rstrip(" \t")
    bare = heading.rstrip("#")
    return bare.rstrip(" \t") if not bare or bare[-1] in " \t" else heading
