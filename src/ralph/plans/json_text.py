"""JSON as text, split and joined without losing a byte.

`Array` and `Object` hold one container as pieces: the text before the first item, the items as written, the text
between them, the text after the last. Joined, the pieces are the same bytes, so an edit changes only its own piece.
Everything works on UTF-8 bytes: outside strings, JSON is ASCII.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from json import dumps
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from ralph.core.lazy_pattern import lazy_pattern

BOM = b"\xef\xbb\xbf"
Path = tuple[str | int, ...]

_STRING = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SPACE = lazy_pattern(rb"[ \t\r\n]*+")
_COMMA = lazy_pattern(rb"[ \t\r\n]*+,[ \t\r\n]*+")
_KEY = lazy_pattern(rb"(%s)[ \t\r\n]*+:[ \t\r\n]*+" % _STRING, re.DOTALL)
_SCALAR = lazy_pattern(rb"%s|[^ \t\r\n,\]}]++" % _STRING, re.DOTALL)
_TO_BRACKET = lazy_pattern(rb'[^"\[\]{}]*+(?:%s[^"\[\]{}]*+)*+([\[\]{}])' % _STRING, re.DOTALL)
_NON_ASCII_ESCAPE = lazy_pattern(rb"\\u(?!00[0-7])[0-9a-fA-F]{4}")


def decode_object(text: bytes | str) -> dict[str, Any] | None:
    """The text as one object, if it is one."""
    try:
        value = msgspec.json.decode(text.removeprefix(BOM) if isinstance(text, bytes) else text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def key_of_list(document: dict[str, Any], ids: Sequence[str]) -> str:
    """The key whose list has as many objects as there are IDs and starts with the first of them; empty: none."""
    for key, value in document.items():
        has_objects = isinstance(value, list) and value and len(value) == len(ids) and isinstance(value[0], dict)
        if has_objects and str(value[0].get("id")) == ids[0]:
            return key
    return ""


class Style(Struct, frozen=True):
    """The style of a file, for new pieces in it."""

    one_line: bool = False
    flat_lists: bool = False
    """Lists of plain values stay on one line."""
    newline: bytes = b"\n"
    unit: bytes = b"  "
    """One step of indentation."""
    colon: bytes = b": "
    comma: bytes = b", "
    """Separator between values on one line."""
    escape: bool = False
    """Non-ASCII characters are written as `\\uXXXX`."""


class Array(Struct):
    head: bytes
    items: list[bytes]
    glues: list[bytes]
    tail: bytes

    @classmethod
    def of(cls, data: bytes) -> Array:
        """The pieces of a valid JSON array, which is all of `data`."""
        items = [bytes(raw) for raw in msgspec.json.decode(data, type=list[Raw])]
        at = _after(_SPACE, data, 1)
        head, glues = data[1:at], []
        for item in items[:-1]:
            end = at + len(item)
            at = _after(_COMMA, data, end)
            glues.append(data[end:at])
        end = at + len(items[-1]) if items else at
        return cls(head, items, glues, data[end:-1])

    def pieces(self) -> list[bytes]:
        pieces = [b"[", self.head]
        for item, glue in zip(self.items, [*self.glues, b""], strict=False):
            pieces += (item, glue)
        return [*pieces, self.tail, b"]"]

    def join(self) -> bytes:
        return b"".join(self.pieces())

    def insert(self, at: int, item: bytes, style: Style, indent: bytes = b"") -> None:
        """`indent` is that of the line the array starts on; needed only for an empty array."""
        _make_room(self, len(self.items), at, style, indent)
        self.items.insert(at, item)

    def remove(self, at: int) -> None:
        del self.items[at]
        if self.items:
            del self.glues[min(at, len(self.glues) - 1)]
        else:
            self.head = self.tail = b""

    def move(self, at: int, to: int) -> None:
        """Move an item to `to`. The text between the items stays where it is."""
        self.items.insert(to, self.items.pop(at))


class Member(Struct):
    key: str
    label: bytes
    """The key as written, with the colon and the space around it."""
    value: bytes


class Object(Struct):
    head: bytes
    members: list[Member]
    glues: list[bytes]
    tail: bytes

    @classmethod
    def of(cls, data: bytes) -> Object:
        """The pieces of a valid JSON object, which is all of `data`. Repeated keys are kept as they are."""
        raws = msgspec.json.decode(data, type=dict[str, Raw])
        at = _after(_SPACE, data, 1)
        head = data[1:at]
        members: list[Member] = []
        glues: list[bytes] = []
        while label := _KEY.match(data, at):
            key = msgspec.json.decode(label[1], type=str)
            value = _value(data, label.end(), raws[key])
            members.append(Member(key, label[0], value))
            end = label.end() + len(value)
            if (comma := _COMMA.match(data, end)) is None:
                return cls(head, members, glues, data[end:-1])
            glues.append(comma[0])
            at = comma.end()
        return cls(head, members, glues, b"")

    def pieces(self) -> list[bytes]:
        pieces = [b"{", self.head]
        for member, glue in zip(self.members, [*self.glues, b""], strict=False):
            pieces += (member.label, member.value, glue)
        return [*pieces, self.tail, b"}"]

    def join(self) -> bytes:
        return b"".join(self.pieces())

    def get(self, key: str) -> Member | None:
        return next((m for m in self.members if m.key == key), None)

    def set(self, key: str, value: bytes, style: Style, indent: bytes = b"") -> None:
        """Replace the value of a key, or add the key at the end in the style of its neighbours."""
        if member := self.get(key):
            member.value = value
            return
        colon = self.members[-1].label.rpartition(b'"')[2] if self.members else style.colon
        _make_room(self, len(self.members), len(self.members), style, indent)
        self.members.append(Member(key, dump(key, style) + colon, value))

    def indent(self) -> bytes:
        """The indentation of the members, if they are on separate lines."""
        return last_line(self.head)


def _after(pattern: re.Pattern[bytes], data: bytes, at: int) -> int:
    found = pattern.match(data, at)
    assert found is not None, "the text is valid JSON"
    return found.end()


def _value(data: bytes, start: int, last_of_key: Raw) -> bytes:
    """The text of the value that starts there."""
    if data[start] not in b"[{":
        return data[start : _after(_SCALAR, data, start)]
    # The decoder has measured the value already, unless this key comes again later with another value.
    text = bytes(last_of_key)
    if data.startswith(text, start):
        return text
    depth, end = 0, start
    while depth or end == start:
        found = _TO_BRACKET.match(data, end)
        assert found is not None, "the text is valid JSON"
        depth += 1 if found[1] in b"[{" else -1
        end = found.end()
    return data[start:end]


def _make_room(container: Array | Object, count: int, at: int, style: Style, indent: bytes) -> None:
    """Prepare the separators for an item at `at`, in the existing style."""
    if count == 0:
        line = style.newline + indent
        container.head, container.tail = (b"", b"") if style.one_line else (line + style.unit, line)
    else:
        if container.glues:
            glue = container.glues[min(max(at - 1, 0), len(container.glues) - 1)]
        else:
            glue = b"," + container.head if b"\n" in container.head else style.comma
        container.glues.insert(max(at - 1, 0), glue)


def last_line(space: bytes) -> bytes:
    return space.rpartition(b"\n")[2] if b"\n" in space else b""


def style_of(sample: Object) -> Style:
    """The style of an object, for writing another one like it."""
    one_line = b"\n" not in sample.head
    inside, outside = last_line(sample.head), last_line(sample.tail)
    colon = sample.members[-1].label.rpartition(b'"')[2] if sample.members else b": "
    flat = sample.glues[0] if one_line and sample.glues else b", " if colon.endswith(b" ") or not one_line else b","
    lists = [m.value for m in sample.members if m.value.startswith(b"[") and len(m.value) > 2]
    return Style(
        one_line=one_line,
        flat_lists=all(b"\n" not in text for text in lists) if lists else one_line,
        newline=b"\r\n" if b"\r\n" in sample.head else b"\n",
        unit=inside[len(outside) :] if inside.startswith(outside) and inside != outside else b"  ",
        colon=colon,
        comma=flat,
    )


def escapes_non_ascii(data: bytes) -> bool:
    """Whether the file writes é as `\\u00e9` throughout."""
    return data.isascii() and _NON_ASCII_ESCAPE.search(data) is not None


def dump(value: Any, style: Style, indent: bytes = b"") -> bytes:
    """A value written in a style. `indent` is that of the line it starts on."""
    if isinstance(value, dict):
        pairs = [dump(key, style) + style.colon + dump(item, style, indent + style.unit) for key, item in value.items()]
        return _bracket(b"{", pairs, b"}", style.one_line, style, indent)
    if isinstance(value, list | tuple):
        items = [dump(item, style, indent + style.unit) for item in value]
        flat = style.one_line or (style.flat_lists and not any(isinstance(item, dict | list | tuple) for item in value))
        return _bracket(b"[", items, b"]", flat, style, indent)
    return dumps(value, ensure_ascii=style.escape, allow_nan=False).encode()


def _bracket(opening: bytes, items: list[bytes], end: bytes, flat: bool, style: Style, indent: bytes) -> bytes:
    if flat or not items:
        return opening + style.comma.join(items) + end
    line = style.newline + indent
    return opening + line + style.unit + (b"," + line + style.unit).join(items) + line + end


class Position(NamedTuple):
    line: int
    column: int


class Locator:
    """Line and column of values, by path. Each container on the way is split once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._lines = [found.start() for found in re.finditer(rb"\n", data)]
        self._children: dict[Path, dict[str | int, tuple[int, bytes]]] = {}
        body = data.removeprefix(BOM)
        start = len(data) - len(body.lstrip(b" \t\r\n"))
        self._root = (start, data[start:].rstrip(b" \t\r\n"))

    def position(self, path: Path) -> Position:
        """Of the value, or of the innermost existing container on the way to it."""
        return self.position_at(self._find(path)[0])

    def position_at(self, offset: int) -> Position:
        before = bisect_left(self._lines, offset)
        start = self._lines[before - 1] + 1 if before else 0
        text = self._data[start:offset].decode(errors="replace").removeprefix("\ufeff")
        return Position(before + 1, len(text) + 1)

    def repeated_keys(self) -> Iterator[tuple[Path, Position]]:
        """Each key that its object already has, with the position of the repetition."""
        waiting: list[tuple[Path, int, bytes]] = [((), *self._root)]
        while waiting:
            path, start, text = waiting.pop()
            seen: set[str | int] = set()
            for key, at, value in _children_of(text):
                if key in seen:
                    yield (*path, key), self.position_at(start + at)
                seen.add(key)
                if value[:1] in (b"[", b"{"):
                    waiting.append(((*path, key), start + at, value))

    def _find(self, path: Path) -> tuple[int, bytes]:
        here = self._root
        for depth, key in enumerate(path):
            way = path[:depth]
            if way not in self._children:
                self._children[way] = {k: (here[0] + at, value) for k, at, value in _children_of(here[1])}
            if key not in self._children[way]:
                break
            here = self._children[way][key]
        return here


def _children_of(text: bytes) -> Iterator[tuple[str | int, int, bytes]]:
    """Key or index, offset and text of each value in a container; nothing for a scalar."""
    if text.startswith(b"["):
        array = Array.of(text)
        at = 1 + len(array.head)
        for index, (item, glue) in enumerate(zip(array.items, [*array.glues, b""], strict=False)):
            yield index, at, item
            at += len(item) + len(glue)
    elif text.startswith(b"{"):
        found = Object.of(text)
        at = 1 + len(found.head)
        for member, glue in zip(found.members, [*found.glues, b""], strict=False):
            at += len(member.label)
            yield member.key, at, member.value
            at += len(member.value) + len(glue)


def show_path(path: Path) -> str:
    """`userStories[2].title`"""
    text = ""
    for key in path:
        if isinstance(key, int):
            text += f"[{key}]"
        elif re.fullmatch(r"[A-Za-z_$][\w$-]*", key):
            text += f".{key}" if text else key
        else:
            text += f"[{dumps(key)}]"
    return text
