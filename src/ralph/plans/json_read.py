"""Read a JSON plan: typed decoding straight from the bytes, so that 100,000 stories take a fraction of a second.

There is no partial success. If anything is wrong, `json_problems` reads the file again and reports what.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import count
from typing import Any, Generic

import msgspec
from msgspec import Raw, Struct

from ralph.core.plan import Plan
from ralph.plans.integrity import problems_of
from ralph.plans.json_problems import explain
from ralph.plans.json_stories import D, Fault, Format, S, known_keys
from ralph.plans.json_text import BOM


def read(source: bytes, file: str, form: Format[D, S]) -> Plan:
    with _collector_paused():
        plan = _read_quickly(source, form)
    if plan is None:
        raise explain(source, file, form)
    return plan


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Pause garbage collection: scanning many thousand live values would double the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _read_quickly(source: bytes, form: Format[D, S]) -> Plan | None:
    """The plan, or None if there is any problem with it."""
    try:
        top: dict[str, Raw] = msgspec.json.decode(source.removeprefix(BOM), type=dict[str, Raw])
        tale = _read_stories(top.pop(form.stories), form.story)
        rest: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(top))
        if _has_repeated_keys(source, {form.stories: [], **rest}, tale.values):
            return None
        stories = tuple(map(form.read_story, tale.wires, count(1), tale.extras))
        if problems_of(stories, ""):
            return None
        document = msgspec.convert(rest, form.document)
        return form.read_document(document, stories, _unknown(rest, known_keys(form.document)))
    except (msgspec.MsgspecError, ValueError, KeyError, OverflowError, RecursionError, Fault):
        return None


class _Tale(Struct, Generic[S]):
    wires: list[S]
    values: list[Any]
    """The same stories with all of their keys."""
    extras: Iterable[dict[str, Any]]
    """For each story, the keys the format does not define."""


def _read_stories(raw: Raw, story: type[S]) -> _Tale[S]:
    strict, lenient = _decoders(story)
    try:
        wires = strict.decode(raw)
        return _Tale(wires, wires, ({} for _ in wires))
    except msgspec.ValidationError:
        wires = lenient.decode(raw)  # raises again unless unknown keys were all there was
    known = known_keys(story)
    values = msgspec.json.decode(raw, type=list[dict[str, Any]])
    return _Tale(wires, values, (_unknown(value, known) for value in values))


def _unknown(value: dict[str, Any], known: frozenset[str]) -> dict[str, Any]:
    return {} if value.keys() <= known else {key: item for key, item in value.items() if key not in known}


@cache
def _decoders(story: type[Struct]) -> tuple[msgspec.json.Decoder[Any], msgspec.json.Decoder[Any]]:
    strict = msgspec.defstruct(f"Strict{story.__name__}", [], bases=(story,), forbid_unknown_fields=True)
    return msgspec.json.Decoder(list[strict]), msgspec.json.Decoder(list[story])  # type: ignore[valid-type]


def _has_repeated_keys(source: bytes, document: dict[str, Any], stories: list[Any]) -> bool:
    """Decoding keeps the last of several equal keys; the missing colons reveal the others."""
    writes_colons_plainly = b"\\" not in source or b"\\u003" not in source
    if writes_colons_plainly and _colons(document, stories) == source.count(b":"):
        return False
    repeated = []

    def note(pairs: list[tuple[str, Any]]) -> None:
        if len(pairs) != len({key for key, _ in pairs}):
            repeated.append(True)

    json.loads(source.removeprefix(BOM), object_pairs_hook=note)
    return bool(repeated)


def _colons(document: dict[str, Any], stories: list[Any]) -> int:
    """The number of colons after re-encoding: in parts that fit the cache."""
    encoder = msgspec.json.Encoder()
    count = encoder.encode(document).count(b":")
    part = bytearray()
    for at in range(0, len(stories), 500):
        encoder.encode_into(stories[at : at + 500], part)
        count += part.count(b":")
    return count
