"""Set or remove one key in the text of a config file, and leave every other character as it is.

The text is cut and joined at the positions the parser reports. Then the result is parsed again: if anything but that
one key reads differently, nothing is changed and the error shows what to write.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from ralph.config.document import Mapping, Node, Scalar, Sequence, is_json, parse
from ralph.config.durations import parse_duration
from ralph.core.errors import ConfigError
from ralph.core.problems import Place

Path = tuple[str, ...]
_SIMPLE = re.compile(r"[A-Za-z][A-Za-z0-9_/.-]*(?: [A-Za-z0-9_/.-]+)*")
_TRUTH_ELSEWHERE = frozenset({"yes", "no", "on", "off", "y", "n"})
"""Words that other YAML readers take for booleans."""
_COMMENT = re.compile(r"#|//")


def set_key(text: str, file: str, path: Path, value: Node) -> str:
    """The text with the value at `path`, which is created if missing."""
    return _Editor(text, file, path).set(value)


def remove_key(text: str, file: str, path: Path) -> str:
    """The text without `path`; unchanged if it does not exist."""
    return _Editor(text, file, path).remove()


def render(value: Node, *, quoted: bool) -> str:
    """A value on one line, as YAML in flow style or, with `quoted`, as JSON."""
    if isinstance(value, Sequence):
        return "[" + ", ".join(render(item, quoted=True) for item in value.items) + "]"
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(name.text)}: {render(item, quoted=True)}" for name, item in value.items)
        return "{" + ", ".join(pairs) + "}"
    assert isinstance(value, Scalar)
    resolved = value.resolve()
    if not isinstance(resolved, str):
        return json.dumps(resolved)
    is_word = _SIMPLE.fullmatch(resolved) and resolved.lower() not in _TRUTH_ELSEWHERE
    is_text = isinstance(Scalar(text=resolved).resolve(), str)
    if not quoted and is_text and (is_word or parse_duration(resolved) is not None):
        return resolved
    return json.dumps(resolved, ensure_ascii=False)


class _Editor:
    def __init__(self, text: str, file: str, path: Path) -> None:
        self.text = text
        self.file = file
        self.path = path
        self.root = parse(text, file)
        self.newline = "\r\n" if "\r\n" in text else "\n"
        self.quoted = is_json(file)

    def set(self, value: Node) -> str:
        node: Node = self.root
        for depth, name in enumerate(self.path):
            if not isinstance(node, Mapping) or node.is_alias:
                self.refuse(value)
            item = node.get(name)
            rest = self.path[depth + 1 :]
            if item is None:
                return self.proved(self.insert(node, depth, value), value)
            if rest and isinstance(item[1], Scalar) and item[1].is_null:
                return self.proved(self.fill(node, item, rest, value), value)
            if not rest:
                return self.proved(self.replace(item, value), value)
            node = item[1]
        raise AssertionError("a path has at least one name")

    def remove(self) -> str:
        parents: list[Mapping] = []
        node: Node = self.root
        item: tuple[Scalar, Node] | None = None
        for name in self.path:
            if not isinstance(node, Mapping):
                return self.text
            parents.append(node)
            item = node.get(name)
            if item is None:
                return self.text
            node = item[1]
        assert item is not None
        if any(parent.is_alias for parent in parents):
            self.refuse(None)
        cut = self.cut_flow if parents[-1].flow else self.cut_block
        return self.proved(cut(item), None)

    # -- the places to cut ------------------------------------------------------------------------------------

    def replace(self, item: tuple[Scalar, Node], value: Node) -> str:
        name, old = item
        new = render(value, quoted=self.quoted or _is_inside_flow(self.root, self.path))
        if self.has_comment(name.end, old):
            self.refuse(value, "its current value contains comments that would be lost")
        if isinstance(old, Scalar) and old.is_null and old.start == old.end:
            return f"{self.text[: old.end]} {new}{self.text[old.end :]}"
        start = old.start
        gap = self.text[name.end : start]
        if "\n" in gap:  # a block that starts on its own line moves up
            start = name.end + gap.index(":") + 1
            new = f" {new}"
        return self.text[:start] + new + self.text[old.end :]

    def fill(self, parent: Mapping, item: tuple[Scalar, Node], rest: Path, value: Node) -> str:
        """A section that exists but is empty."""
        name, null = item
        if parent.flow or null.start != null.end:
            new = self.nested_flow(rest, value)
            gap = " " if null.start == null.end else ""
            return self.text[: null.start] + gap + new + self.text[null.end :]
        at = self.end_of_line(null.end)
        return self.text[:at] + self.newline + self.nested_block(rest, value, name.column + 1) + self.text[at:]

    def insert(self, parent: Mapping, depth: int, value: Node) -> str:
        rest = self.path[depth:]
        if parent.flow:
            return self.insert_flow(parent, rest, value)
        if not parent.items:
            return self.append(rest, value)
        at = self.end_of_line(parent.end)
        column = parent.items[0][0].column - 1
        return self.text[:at] + self.newline + self.nested_block(rest, value, column) + self.text[at:]

    def insert_flow(self, parent: Mapping, rest: Path, value: Node) -> str:
        new = self.nested_flow(rest, value)[1:-1]
        if not parent.items:
            at = self.text.index("{", parent.start) + 1
            return self.text[:at] + new + self.text[at:]
        first, (_, last) = parent.items[0][0], parent.items[-1]
        after = self.text[last.end : parent.end - 1]
        comma = "" if re.match(r"\s*,", after) else ","
        if "\n" not in self.text[parent.start : first.start]:
            at = last.end + (len(after) - len(after.lstrip(" \t,")) if not comma else 0)
            return f"{self.text[: last.end]}{comma or self.text[last.end : at].rstrip()} {new}{self.text[at:]}"
        at = min(self.end_of_line(last.end), parent.end - 1)
        indent = self.newline + " " * (first.column - 1)
        if "\t" in self.text[self.start_of_line(first.start) : first.start]:
            indent = self.newline + self.text[self.start_of_line(first.start) : first.start]
        return self.text[: last.end] + comma + self.text[last.end : at] + indent + new + self.text[at:]

    def append(self, rest: Path, value: Node) -> str:
        """Add to a file without values; it may hold comments."""
        gap = "" if not self.text or self.text.endswith("\n") else self.newline
        if self.quoted:
            new = "{" + self.newline + "  " + self.nested_flow(rest, value)[1:-1] + self.newline + "}"
        else:
            new = self.nested_block(rest, value, 0)
        return self.text + gap + new + self.newline

    def cut_block(self, item: tuple[Scalar, Node]) -> str:
        name, value = item
        start, end = self.start_of_line(name.start), self.end_of_line(max(value.end, name.end))
        if self.text[start : name.start].strip() or self.has_comment(name.end, value):
            self.refuse(None)
        if self.text.startswith("\r\n", end):
            end += 2
        elif end < len(self.text):
            end += 1
        return self.text[:start] + self.text[end:]

    def cut_flow(self, item: tuple[Scalar, Node]) -> str:
        name, value = item
        start, end = name.start, max(value.end, name.end)
        if self.has_comment(name.end, value):
            self.refuse(None)
        if after := re.compile(r"\s*,[ \t]*").match(self.text, end):
            end = after.end()
        elif before := re.search(r",\s*$", self.text[:start]):
            start = before.start()
        line, rest = self.start_of_line(start), self.end_of_line(end)
        if not self.text[line:start].strip() and not self.text[end:rest].strip() and rest < len(self.text):
            start, end = line, rest + (2 if self.text.startswith("\r\n", rest) else 1)
        return self.text[:start] + self.text[end:]

    # -- text -------------------------------------------------------------------------------------------------

    def nested_block(self, path: Path, value: Node, column: int) -> str:
        lines = [" " * (column + 2 * depth) + f"{self.name(name)}:" for depth, name in enumerate(path)]
        return self.newline.join(lines) + " " + render(value, quoted=False)

    def nested_flow(self, path: Path, value: Node) -> str:
        inner = render(value, quoted=True)
        for name in reversed(path):
            inner = "{" + f"{self.name(name)}: {inner}" + "}"
        return inner

    def name(self, name: str) -> str:
        is_plain = _SIMPLE.fullmatch(name) and isinstance(Scalar(text=name).resolve(), str)
        return name if is_plain and not self.quoted else json.dumps(name, ensure_ascii=False)

    def start_of_line(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    def end_of_line(self, at: int) -> int:
        end = self.text.find("\n", at)
        if end < 0:
            return len(self.text)
        return end - 1 if self.text.startswith("\r", end - 1) and end > at else end

    def has_comment(self, start: int, value: Node) -> bool:
        """A comment between the end of the key and the end of the value, outside any string."""
        gaps = []
        for scalar in _scalars(value):
            gaps.append(self.text[start : scalar.start])
            start = scalar.end
            if scalar.block:
                gaps.append(self.text[scalar.start : self.end_of_line(scalar.start)])
        gaps.append(self.text[start : value.end])
        return any(_COMMENT.search(gap) for gap in gaps)

    # -- proof ------------------------------------------------------------------------------------------------

    def proved(self, changed: str, value: Node | None) -> str:
        wanted = _with(_plain(self.root), self.path, value)
        try:
            found = _plain(parse(changed, self.file))
        except ConfigError:
            found = None
        if found != wanted:
            self.refuse(value)
        return changed

    def refuse(self, value: Node | None, why: str = "") -> NoReturn:
        key = ".".join(self.path)
        reason = why or "the file cannot be changed there without affecting something else"
        if value is None:
            hint = f"remove {key} from the file by hand"
        else:
            hint = "edit the file by hand: " + ": ".join(self.path) + ": " + render(value, quoted=self.quoted)
        raise ConfigError(f"{key}: {reason}", hint=hint, where=Place(self.file))


def _scalars(node: Node) -> list[Scalar]:
    """The scalars of a node, in text order."""
    if isinstance(node, Scalar) or node.is_alias:
        return [node] if isinstance(node, Scalar) else []
    if isinstance(node, Sequence):
        return [scalar for item in node.items for scalar in _scalars(item)]
    assert isinstance(node, Mapping)
    return [scalar for name, value in node.items for scalar in (name, *_scalars(value))]


def _is_inside_flow(root: Mapping, path: Path) -> bool:
    node: Node = root
    for name in path:
        if not isinstance(node, Mapping) or node.flow:
            return True
        item = node.get(name)
        node = item[1] if item else node
    return False


def _plain(node: Node) -> Any:
    """The content of a node without its position. An empty mapping equals null."""
    if isinstance(node, Mapping):
        return {name.text: _plain(value) for name, value in node.items} or None
    if isinstance(node, Sequence):
        return [_plain(item) for item in node.items]
    assert isinstance(node, Scalar)
    value = node.resolve()
    return None if value is None else (type(value).__name__, value)


def _with(tree: Any, path: Path, value: Node | None) -> Any:
    """`tree` with the value at `path`, or without it."""
    name, rest = path[0], path[1:]
    tree = tree or {}
    if rest:
        return {**tree, name: _with(tree.get(name), rest, value)}
    kept = {key: item for key, item in tree.items() if key != name}
    return (kept if value is None else {**tree, name: _plain(value)}) or None
