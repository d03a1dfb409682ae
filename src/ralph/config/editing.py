"""`ralph config set` and `unset` on the text of a file: one key changes, every other byte stays.

The text is cut at the positions that the parser reports, and the result is parsed again: if anything but that key
reads differently, or a comment could be lost, nothing is changed and the error shows the line to write by hand.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as Map
from typing import Any, NoReturn

from msgspec import Struct
from msgspec import inspect as shapes

from ralph.config.display import shape_of
from ralph.config.document import Mapping, Node, Scalar, Sequence, is_json, parse
from ralph.config.durations import BARE_NUMBERS, format_duration, parse_duration
from ralph.config.keys import ALIASES, canonical, options
from ralph.config.reading import node_of_text
from ralph.config.values import NOTHING, Reader
from ralph.core.errors import ConfigError, UsageError
from ralph.core.problems import Place

Path = tuple[str, ...]
Item = tuple[Scalar, Node]
_SIMPLE = re.compile(r"[A-Za-z][A-Za-z0-9_/.-]*(?: [A-Za-z0-9_/.-]+)*")
_TRUTH_ELSEWHERE = frozenset({"yes", "no", "on", "off", "y", "n"})
"""Words that other YAML readers take for booleans."""


class Target(Struct, frozen=True):
    """A key as the user names it: an option in some spelling, or one entry of an option that is a mapping."""

    key: str
    spelled: str
    entry: str = ""

    @property
    def path(self) -> Path:
        return (*self.spelled.split("."), self.entry) if self.entry else tuple(self.spelled.split("."))


def target(spelled: str) -> Target:
    for key, option in options().items():
        entry = spelled.removeprefix(f"{key}.")
        if entry not in ("", spelled) and isinstance(shape_of(option), shapes.DictType):
            return Target(key, key, entry)
    return Target(canonical(spelled), spelled)


def assign(text: str, file: str, wanted: Target, value: str, env: Map[str, str]) -> str:
    """The text of a config file with one option set. The value is validated first."""
    node = _valid(wanted, value, env)
    there = _spelling_in(parse(text, file), wanted)
    if _is_switch(there.spelled):  # true and false cannot express every value of the key
        return set_key(remove_key(text, file, there.path), file, tuple(wanted.key.split(".")), node)
    if (wanted.spelled in BARE_NUMBERS) != (there.spelled in BARE_NUMBERS):  # one of them is in minutes
        seconds = Reader("the value").option(node, wanted.spelled)
        in_minutes = there.spelled in BARE_NUMBERS and seconds % 60 == 0
        node = Scalar(text=str(int(seconds // 60)) if in_minutes else format_duration(seconds))
    return set_key(text, file, there.path, node)


def unassign(text: str, file: str, wanted: Target) -> str:
    """The text without the option; unchanged if it is not set there."""
    return remove_key(text, file, _spelling_in(parse(text, file), wanted).path)


def _valid(wanted: Target, value: str, env: Map[str, str]) -> Node:
    if wanted.entry:
        node: Node = Scalar(text=value, plain=False)
        whole: Node = Mapping(items=((Scalar(text=wanted.entry, plain=False), node),))
    else:
        node = whole = node_of_text(value, wanted.spelled, "the value")
    reader = Reader("the value", env)
    read = reader.option(whole, wanted.spelled)
    if reader.problems:
        raise ConfigError.of(reader.problems)
    if read is NOTHING:
        raise UsageError(
            f"{wanted.spelled} cannot be null", hint=f"to remove it, use `ralph config unset {wanted.spelled}`"
        )
    if _is_switch(wanted.spelled):
        return Scalar(text=str(read))
    if isinstance(read, bool):  # `yes` and `on` are fine here, but a JSON file needs the real word
        return Scalar(text=str(read).lower())
    return node


def _is_switch(spelled: str) -> bool:
    return spelled in ALIASES and ALIASES[spelled].switch is not None


def _spelling_in(root: Mapping, wanted: Target) -> Target:
    """The spelling that the file already uses, so that no option is set twice in it."""
    others = [spelled for spelled, alias in ALIASES.items() if alias.key == wanted.key]
    for spelled in (wanted.spelled, wanted.key, *others):
        path = tuple(spelled.split("."))
        if len(_items(root, path)) == len(path):
            return Target(wanted.key, spelled, wanted.entry)
    return wanted


def _items(root: Mapping, path: Path) -> list[Item]:
    """The items along a path, as far as it exists."""
    node: Node = root
    items: list[Item] = []
    for name in path:
        item = node.get(name) if isinstance(node, Mapping) else None
        if item is None:
            break
        items.append(item)
        node = item[1]
    return items


def set_key(text: str, file: str, path: Path, value: Node) -> str:
    """The text with the value at `path`, which is created if missing."""
    root = parse(text, file)
    items = _items(root, path)
    rest = path[len(items) :]
    parents: list[Node] = [root, *(node for _, node in items[: len(path) - 1])]
    last = parents[-1]
    in_flow = is_json(file) or any(isinstance(node, Mapping) and node.flow for node in parents)
    newline = "\r\n" if "\r\n" in text else "\n"
    if any(node.is_alias for node in parents):
        _refuse(file, path, value)
    if not rest:
        changed = _replaced(text, file, path, items[-1], value, in_flow=in_flow)
    elif isinstance(last, Scalar) and last.is_null:  # a section without keys
        if in_flow or last.start != last.end:
            gap = " " if last.start == last.end else ""
            changed = text[: last.start] + gap + "{" + _flow(rest, value, file) + "}" + text[last.end :]
        else:
            changed = _inserted(text, last.end, newline + _block(rest, value, items[-1][0].column + 1, newline))
    elif not isinstance(last, Mapping):
        _refuse(file, path, value)
    elif last.flow:  # in front of the first key, where no comma and no comment has to be looked for
        at = last.items[0][0].start if last.items else text.index("{", last.start) + 1
        gap = text[len(text[:at].rstrip()) : at] or " "
        changed = text[:at] + _flow(rest, value, file) + (f",{gap}" if last.items else "") + text[at:]
    elif last.items:
        block = _block(rest, value, last.items[0][0].column - 1, newline)
        changed = _inserted(text, last.end, newline + block)
    else:
        gap = "" if not text or text.endswith("\n") else newline
        pair = f"  {_flow(rest, value, file)}"
        new = newline.join(("{", pair, "}")) if is_json(file) else _block(rest, value, 0, newline)
        changed = text + gap + new + newline
    return _proved(changed, file, root, path, value)


def remove_key(text: str, file: str, path: Path) -> str:
    """The text without `path`; unchanged if it does not exist."""
    root = parse(text, file)
    items = _items(root, path)
    if len(items) < len(path):
        return text
    parents: list[Node] = [root, *(node for _, node in items[:-1])]
    name, value = items[-1]
    start, end = name.start, max(value.end, name.end)
    if any(node.is_alias for node in parents) or _may_hold_comment(text[name.end : end], file):
        _refuse(file, path, None)
    if not (isinstance(parents[-1], Mapping) and parents[-1].flow):
        start, end = text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1 or len(text)
        if text[start : name.start].strip():
            _refuse(file, path, None)
    elif after := re.compile(r"\s*,\s*").match(text, end):
        end = after.end()
    elif before := re.search(r"\s*,\s*$", text[:start]):
        start = before.start()
    return _proved(text[:start] + text[end:], file, root, path, None)


def _replaced(text: str, file: str, path: Path, item: Item, value: Node, *, in_flow: bool) -> str:
    name, old = item
    new = render(value, quoted=in_flow)
    gap = text[name.end : old.start]
    if _may_hold_comment(text[name.end : old.end], file):
        _refuse(file, path, value, "its current value spans lines with comments that would be lost")
    if "\n" in gap:  # a block that starts on its own line moves up
        return f"{text[: name.end]}{gap[: gap.index(':') + 1]} {new}{text[old.end :]}"
    return text[: old.start] + (" " if old.start == old.end else "") + new + text[old.end :]


def _may_hold_comment(part: str, file: str) -> bool:
    return "\n" in part and ("//" if is_json(file) else "#") in part


def _inserted(text: str, after: int, new: str) -> str:
    """With `new` at the end of the line in which `after` is."""
    at = after + len(re.split(r"\r?\n", text[after:], maxsplit=1)[0])
    return text[:at] + new + text[at:]


def _block(path: Path, value: Node, column: int, newline: str) -> str:
    lines = [" " * (column + 2 * depth) + f"{_name(name)}:" for depth, name in enumerate(path)]
    return newline.join(lines) + " " + render(value, quoted=False)


def _flow(path: Path, value: Node, file: str) -> str:
    name = json.dumps(path[0], ensure_ascii=False) if is_json(file) else _name(path[0])
    return f"{name}: " + ("{" + _flow(path[1:], value, file) + "}" if path[1:] else render(value, quoted=True))


def _name(name: str) -> str:
    is_plain = _SIMPLE.fullmatch(name) and isinstance(Scalar(text=name).resolve(), str)
    return name if is_plain else json.dumps(name, ensure_ascii=False)


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


def _proved(changed: str, file: str, root: Mapping, path: Path, value: Node | None) -> str:
    """`changed`, if it reads as the old file with only that key changed."""
    try:
        content = _plain(parse(changed, file))
    except ConfigError:
        _refuse(file, path, value)
    if content != _with(_plain(root), path, value):
        _refuse(file, path, value)
    return changed


def _refuse(file: str, path: Path, value: Node | None, reason: str = "") -> NoReturn:
    key = ".".join(path)
    reason = reason or "the file cannot be changed there without affecting something else"
    hint = f"remove {key} from the file by hand"
    if value is not None:
        hint = "edit the file by hand: " + ": ".join(path) + ": " + render(value, quoted=is_json(file))
    raise ConfigError(f"{key}: {reason}", hint=hint, where=Place(file))


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
