"""Plans that are one JSON document with an array of stories: the description of such a layout.

A layout describes its document and its stories as encoded, as two Structs, and how to convert them to the values of
`core.plan` and back. `json_read`, `json_problems` and `json_edit` do the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ralph.core.plan import Plan, State, Story

LARGEST_COUNT = 10**9

Count = Annotated[int, Meta(ge=0, le=LARGEST_COUNT)]
Number = (
    Annotated[int, Meta(ge=-LARGEST_COUNT, le=LARGEST_COUNT)]
    | Annotated[float, Meta(ge=-LARGEST_COUNT, le=LARGEST_COUNT)]
)
Words = Annotated[str, Meta(min_length=1)]
Lines = tuple[Words, ...]
Criteria = Annotated[Lines, Meta(min_length=1)]
Commands = Words | Lines


class Expected(NamedTuple):
    words: str
    example: str


TEXT = Expected("a text", '"…"')
LINES = Expected("a list of non-empty strings", '["…"]')
_COUNT = Expected(f"a whole number from 0 to {LARGEST_COUNT:,}", "0")
EXPECTED: Mapping[str, Expected] = MappingProxyType(
    {
        "acceptanceCriteria": Expected(
            "a list of at least one string, none of them empty", '["It prints the version"]'
        ),
        "attempts": _COUNT,
        "branchName": Expected("a text", '"ralph/user-login"'),
        "createdAt": Expected("an ISO 8601 time", '"2026-01-31T09:30:00Z"'),
        "id": Expected("a text", '"US-001"'),
        "passes": Expected("true or false", "false"),
        "priority": Expected(f"a number of at most {LARGEST_COUNT:,}, 1 for the highest", "1"),
        "reviewCount": _COUNT,
        "reviewStatus": Expected('null, "needs_review", "changes_requested" or "approved"', "null"),
        "status": Expected('"todo", "in_progress", "done" or "failed"', '"todo"'),
        "verify": Expected("a command, or a list of commands, none of them empty", '"make test"'),
        "verifyCommands": Expected("a list of commands, none of them empty", '["make test"]'),
    }
)
"""The expected value of a key, where its type alone is not enough."""

D = TypeVar("D", bound=Struct)
S = TypeVar("S", bound=Struct)


class Fault(Exception):
    """A problem with the values of a story or document, beyond their types."""

    def __init__(self, code: str, key: str, message: str, hint: str) -> None:
        super().__init__(message)
        self.code, self.key, self.message, self.hint = code, key, message, hint


class Peers(Struct, frozen=True):
    """The stories around the one being written: a new key or ID follows their spelling."""

    ids: tuple[str | int, ...] = ()
    sample: tuple[dict[str, Any], ...] = ()

    def uses(self, key: str) -> bool:
        return any(key in story for story in self.sample)


def _as_usual(_story: Story, keys: dict[str, Any], _old: dict[str, Any], _peers: Peers) -> dict[str, Any]:
    return keys


class Format(Struct, Generic[D, S], frozen=True):
    """What differs from one JSON layout to the next."""

    layout: str
    speaks: frozenset[str]
    stories: str
    """Key of the array of stories."""
    document: type[D]
    """The document without its stories. Optional fields of both types default to UNSET."""
    story: type[S]
    read_document: Callable[[D, tuple[Story, ...], dict[str, Any]], Plan]
    """With the keys the format does not define. Raises Fault."""
    read_story: Callable[[S, int, dict[str, Any]], Story]
    """With the story's number in the file and the keys the format does not define. Raises Fault."""
    write_story: Callable[[Story], dict[str, Any]]
    """Everything the format can hold about a story, in the usual spelling and the order of a new story."""
    respell: Callable[[Story, dict[str, Any], dict[str, Any], Peers], dict[str, Any]] = _as_usual
    """Keys and values about to be written, in the spelling of the file. Takes the story's previous values."""
    expected: Mapping[str, Expected] = EXPECTED


@cache
def fields_of(wire: type[Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(wire)


@cache
def known_keys(wire: type[Struct]) -> frozenset[str]:
    return frozenset(field.encode_name for field in fields_of(wire))


def commands(value: str | tuple[str, ...] | UnsetType | None, key: str = "verify") -> tuple[str, ...]:
    """One command or a list of them."""
    if value is UNSET or value is None:
        return ()
    found = (value,) if isinstance(value, str) else value
    refuse_blank(key, found)
    return found


_is_blank = str.isspace


def refuse_blank(key: str, lines: Sequence[str]) -> None:
    if any(map(_is_blank, lines)):
        raise Fault("empty-text", key, f"an entry of {key} is empty", "fill it in, or remove the entry")


def refuse_unsayable(story: Story, states: frozenset[State], layout: str) -> None:
    if story.state not in states:
        known = ", ".join(sorted(states))
        raise Fault("bad-state", "state", f"{layout} has no state for {story.state}", f"it supports {known}")


def plain_number(value: float) -> int | float:
    """2.0 is written as 2."""
    return int(value) if value == int(value) else value
