"""An agent's answer in JSON: find the object in its text, check its form, and list what is wrong with it. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import msgspec

from ralph.core.errors import BadData
from ralph.core.problems import Place, Problem

_LONGEST = 2_000_000
_MOST_OBJECTS = 50
T = TypeVar("T")


class Unusable(BadData):
    """An answer that is not usable. Carries every problem found in it."""


def read_json_answer(text: str, kind: type[T], problems: Callable[[T], Iterable[Problem]]) -> T:
    """The answer in an agent's output, if `problems` finds none. Raises Unusable."""
    if not text.strip():
        raise _unusable(Problem("empty", "the answer is empty", hint="answer with one JSON object"))
    if len(text) > _LONGEST:
        raise _unusable(Problem("too-long", f"the answer has {len(text):,} characters; the limit is {_LONGEST:,}"))
    try:
        answer = msgspec.convert(_json_in(text), kind)
    except msgspec.ValidationError as error:
        raise _unusable(_misshapen(str(error))) from None
    if wrong := list(problems(answer)):
        raise _unusable(*wrong)
    return answer


def object_schema(fields: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": required, "additionalProperties": False}


def _unusable(*problems: Problem) -> Unusable:
    error = Unusable.of(list(problems))
    assert isinstance(error, Unusable)
    return error


def _json_in(text: str) -> dict[str, Any]:
    """The whole text, or the last object in it: agents often write a sentence first."""
    message = ""
    candidates = [text.strip(), *reversed(re.findall(r"```(?:json)?[ \t]*\n(.*?)\n```", text, re.DOTALL))]
    # Nested objects are indented and are not the answer.
    starts = list(re.finditer(r"^\{", text, re.MULTILINE)) or list(re.finditer(r"\{", text))[:1]
    candidates += [text[at.start() :] for at in reversed(starts[-_MOST_OBJECTS:])]
    for number, candidate in enumerate(candidates):
        start = candidate.lstrip()
        if not start.startswith("{"):
            continue
        try:
            found, end = json.JSONDecoder().raw_decode(start)
        except (ValueError, RecursionError) as error:
            if isinstance(error, json.JSONDecodeError) and not message:
                message = f"invalid JSON at line {error.lineno}, column {error.colno}: {error.msg}"
            continue
        if isinstance(found, dict) and (number > 0 or end == len(start)):
            return found
    message = message or "the answer contains no JSON object"
    raise _unusable(Problem("no-json", message, hint="answer with one JSON object and nothing else"))


def _misshapen(message: str) -> Problem:
    """Turns `Expected `str`, got `int` - at `$.stories[0].title`` into a message with a place."""
    said, _, place = message.partition(" - at `$.")
    said = said.replace("Object missing required field", "missing field")
    said = said.replace("Object contains unknown field", "unknown field")
    return Problem("shape", said, Place(path=place.rstrip("`")))
