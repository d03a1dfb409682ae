"""A config file as a tree of nodes with positions. YAML 1.2 scalars; JSON is YAML.

The parser's events are composed here, not by the YAML library, so that depth, size and aliases are limited while the
file is read, and so that `1:30` or `0777` is never converted to an unexpected number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NoReturn

import msgspec
import yaml
from msgspec import Struct

from ralph.core.errors import ConfigError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.problems import Place, Problem
from ralph.core.secrets import masked

DEEPEST = 50
MOST_NODES = 20_000

_CORE_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("str", "int", "float", "bool", "null", "map", "seq")}
_UNPRINTABLE = lazy_pattern("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_INTEGER = lazy_pattern(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT = lazy_pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?")
_WORDS: dict[str, Any] = {"": None, "~": None, "null": None, "true": True, "false": False}


class Node(Struct, frozen=True, kw_only=True):
    """`start` and `end` are offsets in the text; `end` is that of the last item in the node."""

    line: int = 0
    column: int = 0
    start: int = 0
    end: int = 0
    is_alias: bool = False
    size: int = 1
    """The number of nodes with every alias expanded."""


class Scalar(Node, frozen=True):
    text: str
    plain: bool = True
    """Written without quotes, so it may be a number, a boolean or null."""

    def resolve(self) -> Any:
        """The value by the rules of YAML 1.2's core schema, without octal and hexadecimal numbers."""
        if not self.plain:
            return self.text
        if self.text.lower() in _WORDS:
            return _WORDS[self.text.lower()]
        if _INTEGER.fullmatch(self.text):
            return int(self.text)
        if _FLOAT.fullmatch(self.text) and not re.fullmatch(r"[-+]?0[0-9]+", self.text):
            return float(self.text)
        return self.text

    @property
    def is_null(self) -> bool:
        return self.plain and self.text.lower() in ("", "~", "null")


class Sequence(Node, frozen=True):
    items: tuple[Node, ...]
    flow: bool = False


class Mapping(Node, frozen=True):
    items: tuple[tuple[Scalar, Node], ...]
    flow: bool = False

    def get(self, name: str) -> tuple[Scalar, Node] | None:
        return next((item for item in self.items if item[0].text == name), None)


EMPTY = Mapping(items=())


def is_json(file: str) -> bool:
    return file.endswith(".json")


def decode(source: bytes, file: str) -> str:
    """The text without a byte order mark. Invalid text is refused with its line."""
    try:
        text = source.decode()
    except UnicodeDecodeError as error:
        _refuse("not-utf8", "the file is not valid UTF-8", file, source.count(b"\n", 0, error.start) + 1)
    text = text.removeprefix("\ufeff")
    if bad := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, bad.start()) + 1
        _refuse("control-character", f"the character U+{ord(bad[0]):04X} is not allowed here", file, line)
    return text


def parse(text: str, file: str) -> Mapping:
    """The root of a file. An empty file is an empty mapping."""
    root = parse_value(text, file)
    if isinstance(root, Scalar) and root.is_null:
        return EMPTY
    if not isinstance(root, Mapping):
        _refuse("not-a-mapping", f"expected keys with values, found {describe(root)}", file, root.line)
    return root


def parse_value(text: str, file: str) -> Node:
    """Any one YAML value."""
    source = _json_as_yaml(text) if is_json(file) else text
    try:
        return _Composer(source, file).compose(yaml.parse(source, Loader=_loader()))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
        what = "JSON" if is_json(file) else "YAML"
        if line and "\t" in _indentation(text, line):
            _refuse("tab", "this line is indented with a tab; YAML requires spaces", file, line)
        _refuse("not-yaml", f"not valid {what}: {error.problem or error.context}", file, line, column)
    except yaml.YAMLError as error:
        _refuse("not-yaml", f"not valid YAML: {error}", file)


def _loader() -> Any:
    return getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C parser is ten times faster, where it was built


def _indentation(text: str, line: int) -> str:
    lines = text.split("\n")
    found = lines[line - 1] if line <= len(lines) else ""
    return found[: len(found) - len(found.lstrip())]


def _json_as_yaml(text: str) -> str:
    """JSON with `//` comments and tabs, as YAML of the same length: comments and tabs become spaces."""

    def blank(match: re.Match[str]) -> str:
        return match[0] if match[0].startswith('"') else " " * len(match[0])

    return re.sub(r'"(?:[^"\\]|\\.)*"?|//[^\r\n]*|\t', blank, text, flags=re.DOTALL)


class _Composer:
    """Builds nodes from parser events, and keeps the counts for the limits."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.anchors: dict[str, Node] = {}
        self.count = 0

    def compose(self, events: Iterator[Any]) -> Node:
        root: Node | None = None
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                if root is not None:
                    self.refuse("two-documents", "a second document starts here; only one is allowed", event)
            elif isinstance(event, yaml.NodeEvent):
                root = self.node(event, events, 1)
        return root or Scalar(text="")

    def node(self, event: Any, events: Iterator[Any], depth: int) -> Node:
        if depth > DEEPEST:
            self.refuse("too-deep", f"more than {DEEPEST} levels of nesting", event)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event)
        if event.tag and event.tag not in _CORE_TAGS and event.tag != "!":
            self.refuse("tag", f"the tag {event.tag} is not supported", event)
        self.add(1, event)
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = self.scalar(event)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = self.sequence(event, events, depth)
        else:
            node = self.mapping(event, events, depth)
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def add(self, size: int, event: Any) -> None:
        self.count += size
        if self.count > MOST_NODES:
            self.refuse("too-many-nodes", f"more than {MOST_NODES:,} values with aliases expanded", event)

    def alias(self, event: Any) -> Node:
        target = self.anchors.get(event.anchor)
        if target is None:
            self.refuse("alias", f"the alias *{event.anchor} has no anchor before it", event)
        self.add(target.size, event)
        return msgspec.structs.replace(target, is_alias=True, end=event.end_mark.index, **_position(event))

    def scalar(self, event: Any) -> Scalar:
        plain = event.style in (None, "") and event.tag not in ("!", "tag:yaml.org,2002:str")
        start, end = event.start_mark.index, event.end_mark.index
        if event.style in ("|", ">"):  # its end mark is where the next token starts
            end = start + len(self.text[start:end].rstrip())
        return Scalar(text=event.value, plain=plain, end=end, **_position(event))

    def sequence(self, start: Any, events: Iterator[Any], depth: int) -> Sequence:
        items: list[Node] = []
        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                end = _end(start, event, items)
                size = 1 + sum(item.size for item in items)
                position = _position(start)
                return Sequence(items=tuple(items), flow=bool(start.flow_style), end=end, size=size, **position)
            items.append(self.node(event, events, depth + 1))
        raise AssertionError("the parser ends every sequence it starts")

    def mapping(self, start: Any, events: Iterator[Any], depth: int) -> Mapping:
        items: list[tuple[Scalar, Node]] = []
        seen: dict[str, int] = {}
        for event in events:
            if isinstance(event, yaml.MappingEndEvent):
                end = _end(start, event, [value for _, value in items])
                size = 1 + sum(value.size + 1 for _, value in items)
                position = _position(start)
                return Mapping(items=tuple(items), flow=bool(start.flow_style), end=end, size=size, **position)
            name = self.name(self.node(event, events, depth + 1), event)
            if name.text in seen:
                first = seen[name.text]
                self.refuse("duplicate-key", f"duplicate key {name.text!r}, first in line {first}", event)
            seen[name.text] = name.line
            items.append((name, self.node(next(events), events, depth + 1)))
        raise AssertionError("the parser ends every mapping it starts")

    def name(self, node: Node, event: Any) -> Scalar:
        if not isinstance(node, Scalar):
            self.refuse("key", f"a key must be a string, found {describe(node)}", event)
        if node.text == "<<" and node.plain:
            self.refuse("merge-key", "merge keys (<<) are not supported; repeat the values", event)
        if not isinstance(node.resolve(), str):
            self.refuse("key", f"a key must be a string, found {describe(node)}", event, "put it in quotes")
        return node

    def refuse(self, code: str, message: str, event: Any, hint: str = "") -> NoReturn:
        mark = event.start_mark
        _refuse(code, message, self.file, mark.line + 1, mark.column + 1, hint)


def _position(event: Any) -> dict[str, Any]:
    mark = event.start_mark
    return {"line": mark.line + 1, "column": mark.column + 1, "start": mark.index}


def _end(start: Any, end: Any, items: list[Node]) -> int:
    """A flow collection ends with its bracket; a block ends with its last item, not at the next token."""
    if start.flow_style:
        return int(end.end_mark.index)
    return max((item.end for item in items), default=int(start.end_mark.index))


def describe(node: Node) -> str:
    """A description of the node for messages."""
    if isinstance(node, Sequence):
        return "a list"
    if isinstance(node, Mapping):
        return "a mapping"
    assert isinstance(node, Scalar)
    value = node.resolve()
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    text = masked(node.text) if "://" in node.text else node.text  # an address may be a secret in the wrong place
    shown = text if len(text) <= 40 else text[:39] + "…"
    return f"the number {shown}" if isinstance(value, int | float) else f"the text {shown!r}"


def _refuse(
    code: str, message: str, file: str, line: int | None = None, column: int | None = None, hint: str = ""
) -> NoReturn:
    raise ConfigError.of([Problem(code, message, Place(file, line, column), hint)])
