"""Read JSON from other tools, with line numbers for what is not valid."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from ralph.core.errors import BadData
from ralph.core.problems import Place
from ralph.plans.json_text import Locator

Record = dict[str, Any]


def decode(text: str, file: str, line: int = 1) -> Any:
    try:
        return msgspec.json.decode(text)
    except RecursionError:
        raise BadData("the JSON is nested too deeply", where=Place(file, line), hint="export it again") from None
    except msgspec.DecodeError as error:
        raise BadData(
            f"not valid JSON: {_what(text) or error}",
            where=_place(text, file, line),
            hint="export the complete file again",
        ) from None


def _problem(text: str) -> json.JSONDecodeError | None:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error
    except (RecursionError, ValueError):
        return None
    return None


def _what(text: str) -> str:
    error = _problem(text)
    return error.msg if error else ""


def _place(text: str, file: str, line: int) -> Place:
    error = _problem(text)
    return Place(file, line + error.lineno - 1, error.colno) if error else Place(file, line)


def records(text: str, file: str) -> Iterator[tuple[int, Record]]:
    """The objects of a JSON list, a single object, or JSON lines; each with its line."""
    stripped = text.lstrip("\ufeff \t\r\n")
    if stripped.startswith("["):
        yield from _of_list(text.lstrip("\ufeff"), decode(text.lstrip("\ufeff"), file), file)
        return
    whole = one_object(text.lstrip("\ufeff"))
    if whole is not None:
        inner = next((whole[key] for key in ("items", "issues", "nodes") if isinstance(whole.get(key), list)), None)
        found = [whole] if inner is None else inner
        for number, record in enumerate(found):
            yield 1, _checked(record, Place(file, path=f"[{number}]"))
        return
    for number, line in enumerate(text.lstrip("\ufeff").splitlines(), 1):
        if line.strip():
            yield number, _checked(decode(line, file, number), Place(file, number))


def one_object(text: str) -> Record | None:
    """The text as one object, if it is one."""
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _of_list(text: str, found: list[Any], file: str) -> Iterator[tuple[int, Record]]:
    locator = Locator(text.encode())
    for number, record in enumerate(found):
        line = locator.position((number,))[0]
        yield line, _checked(record, Place(file, line, path=f"[{number}]"))


def _checked(record: Any, where: Place) -> Record:
    if isinstance(record, dict):
        return record
    raise BadData("this is not an object", where=where, hint='every entry must be an object such as {"title": "…"}')


def text_of(record: Record, key: str) -> str:
    """A string; empty if it is missing, null or another type."""
    value = record.get(key)
    return value if isinstance(value, str) else ""


def names_in(record: Record, key: str) -> list[str]:
    """The names in a list of names or of objects with a name."""
    value = record.get(key)
    listed = value if isinstance(value, list) else []
    found = [entry.get("name") if isinstance(entry, dict) else entry for entry in listed]
    return [name for name in found if isinstance(name, str)]
