"""Add, remove and find Ralph's hooks in the text of a client's settings. Pure; every other byte is kept."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.problems import Place
from ralph.plans.json_text import BOM, Array, Locator, Object, Path, Style, dump, show_path, style_of
from ralph.session.hook_policy import EVENTS, client_settings

_MODULE = "ralph.hooks"
_AROUND = re.compile(rb"[ \t\r\n]*")
_CORRECT = "fix it by hand first; nothing was written"
_FRESH = Style(colon=b": ")


class Found(Struct, frozen=True):
    """What a settings file says about Ralph's hooks."""

    commands: dict[str, str] = {}
    """Event → Ralph's command for it."""
    is_disabled: bool = False
    """The file switches all hooks off."""

    @property
    def missing(self) -> list[str]:
        return [event for event in EVENTS if event not in self.commands]

    @property
    def interpreters(self) -> list[str]:
        return sorted({shlex.split(command)[0] for command in self.commands.values()})


def is_ours(command: object) -> bool:
    """In the form that is written now, or in the readable one: `PYTHON -I -m ralph.hooks EVENT`."""
    if not isinstance(command, str) or _MODULE not in command:
        return False
    try:
        words = shlex.split(command)
    except ValueError:
        return False
    match words:
        case [_, "-I", "-m", module, event]:
            return module == _MODULE and event in EVENTS
        case [_, "-I", "-S", "-c", code, event]:
            return code.endswith(f"from {_MODULE}.entry import main; main()") and event in EVENTS
    return False


def find_hooks(data: bytes, file: str) -> Found:
    document = _document(data, file)
    hooks = document.get("hooks")
    commands = {
        event: hook["command"]
        for event, entries in (hooks if isinstance(hooks, dict) else {}).items()
        for hook in _listed(entries)
        if event in EVENTS and is_ours(hook.get("command"))
    }
    return Found(commands, document.get("disableAllHooks") is True)


def _listed(entries: object) -> Iterator[dict[str, Any]]:
    for entry in entries if isinstance(entries, list) else ():
        inner = entry.get("hooks") if isinstance(entry, dict) else None
        yield from (hook for hook in (inner if isinstance(inner, list) else ()) if isinstance(hook, dict))


def with_hooks(data: bytes, file: str, command: str = "") -> bytes:
    """The text with Ralph's entries added, last in each list. It must have none of them yet."""
    _require_shape(data, file)
    wanted = client_settings(command)["hooks"]
    before, body, after = _parts(data)
    if not body:
        return dump({"hooks": wanted}, _FRESH) + b"\n"
    top = Object.of(body)
    style = style_of(top) if top.members else _FRESH
    hooks = top.get("hooks")
    if hooks is None:
        top.set("hooks", dump(wanted, style, top.indent() if top.members else style.unit), style)
    else:
        hooks.value = _with_entries(Object.of(hooks.value), wanted, style, top.indent())
    return before + top.join() + after


def _with_entries(hooks: Object, wanted: dict[str, Any], outer: Style, indent: bytes) -> bytes:
    style = style_of(hooks) if hooks.members else outer
    for event, entries in wanted.items():
        inside = hooks.indent() if hooks.members else indent + style.unit
        if (member := hooks.get(event)) is None:
            hooks.set(event, dump(entries, style, inside), style, indent)
            continue
        array = Array.of(member.value)
        written = style if not array.items or b"\n" in array.head else msgspec.structs.replace(style, one_line=True)
        for entry in entries:
            array.insert(len(array.items), dump(entry, written, inside + style.unit), written, inside)
        member.value = array.join()
    return hooks.join()


def without_hooks(data: bytes, file: str, original: bytes = b"") -> bytes:
    """The text without Ralph's entries. Lists that become empty are removed too, unless the original had them."""
    _document(data, file)
    before, body, after = _parts(data)
    if not body:
        return data
    top = Object.of(body)
    hooks = top.get("hooks")
    if hooks is None or not hooks.value.startswith(b"{"):
        return data
    kept = _document(original, file).get("hooks")
    events = Object.of(hooks.value)
    removed = False
    for member in list(events.members):
        if member.key not in EVENTS or not member.value.startswith(b"["):
            continue
        array = Array.of(member.value)
        if not _remove_entries(array):
            continue
        removed = True
        member.value = array.join()
        if not array.items and not (isinstance(kept, dict) and member.key in kept):
            _remove(events, member.key)
    if not removed:
        return data
    hooks.value = events.join()
    if not events.members and not isinstance(kept, dict):
        _remove(top, "hooks")
    return before + top.join() + after


def _remove_entries(array: Array) -> bool:
    """Other hooks in the same entry are kept."""
    removed = False
    for at in reversed(range(len(array.items))):
        entry = msgspec.json.decode(array.items[at])
        hooks = entry.get("hooks") if isinstance(entry, dict) else None
        ours = [n for n, hook in enumerate(hooks) if _is_our_hook(hook)] if isinstance(hooks, list) else []
        if not ours:
            continue
        removed = True
        if len(ours) == len(hooks or ()):
            array.remove(at)
            continue
        pieces = Object.of(array.items[at])
        member = pieces.get("hooks")
        assert member is not None, "it was decoded"
        inner = Array.of(member.value)
        for number in reversed(ours):
            inner.remove(number)
        member.value = inner.join()
        array.items[at] = pieces.join()
    return removed


def _is_our_hook(hook: object) -> bool:
    return isinstance(hook, dict) and is_ours(hook.get("command"))


def _remove(container: Object, key: str) -> None:
    at = next(n for n, member in enumerate(container.members) if member.key == key)
    del container.members[at]
    if container.members:
        del container.glues[min(at, len(container.glues) - 1)]
    else:
        container.head = container.tail = b""


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    """The text before the document, the document, and the text after it."""
    start = len(BOM) if data.startswith(BOM) else 0
    space = _AROUND.match(data, start)
    assert space is not None, "it matches nothing too"
    body = data[space.end() :].rstrip(b" \t\r\n")
    return data[: space.end()], body, data[space.end() + len(body) :]


def _document(data: bytes, file: str) -> dict[str, Any]:
    """The decoded settings; empty for an empty file. Raises BadData."""
    _, body, _ = _parts(data)
    if not body:
        return {}
    try:
        document = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _not_json(data, file, error) from None
    if not isinstance(document, dict):
        raise BadData("settings must be a JSON object", where=Place(file=file, line=1), hint=_CORRECT)
    return document


def _not_json(data: bytes, file: str, error: Exception) -> BadData:
    line, column, why = None, None, str(error)
    try:
        json.loads(data.decode("utf-8-sig"))
    except json.JSONDecodeError as found:
        line, column, why = found.lineno, found.colno, found.msg
    except (ValueError, RecursionError) as found:
        why = str(found)
    return BadData(f"not valid JSON: {why}", where=Place(file=file, line=line, column=column), hint=_CORRECT)


def _require_shape(data: bytes, file: str) -> None:
    """A client that finds invalid hooks silently runs none at all."""
    document = _document(data, file)
    if not document:
        return
    locator = Locator(data)

    def refuse(path: Path, what: str) -> BadData:
        at = locator.position(path)
        where = Place(file=file, line=at.line, column=at.column, path=show_path(path))
        return BadData(what, where=where, hint=f"the client ignores all hooks in this file; {_CORRECT}")

    for path, _ in locator.repeated_keys():
        if path[0] == "hooks":
            raise refuse(path, "duplicate key")
    hooks = document.get("hooks", {})
    if not isinstance(hooks, dict):
        raise refuse(("hooks",), "hooks must be an object: event → list")
    for event, entries in hooks.items():
        if not isinstance(entries, list):
            raise refuse(("hooks", event), 'must be a list of entries such as {"hooks": [{"type": "command", …}]}')
        for at, entry in enumerate(entries):
            if not isinstance(entry, dict) or not isinstance(entry.get("hooks"), list):
                raise refuse(("hooks", event, at), 'must be an object with a list "hooks"')
