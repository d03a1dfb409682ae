"""Plans that are one JSON document with an array of stories: the description of such a layout, and its reader.

A layout describes its document and its stories as encoded, as two Structs, and how to convert them to the values of
`core.plan` and back. `json_edit` changes such a file. A file that cannot be read is examined again, thoroughly: every
problem is reported with line, column and key path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from json import JSONDecodeError
from math import isinf
from types import MappingProxyType
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from ralph.core.errors import BadData, PlanError
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import EXAMPLE_TITLE, Plan, State, Story
from ralph.core.problems import Place, Problem
from ralph.core.text import one_line
from ralph.plans.integrity import decode_utf8, problems_of
from ralph.plans.json_text import BOM, Locator, Path, show_path

LARGEST_COUNT = 10**9
_NUMBER_OR_STRING = lazy_pattern(r'"(?:[^"\\]|\\.)*+"|(-?[0-9][-+.0-9eE]*+|NaN|-?Infinity)', re.DOTALL)
_SURROGATE = lazy_pattern("[\ud800-\udfff]")
_SURROGATE_ESCAPE = lazy_pattern(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_NO_NUMBERS = ("NaN", "Infinity")
_MOST_DIGITS = 4000  # Python itself stops at 4300
_RESTORE = "restore the file from git, or fix it by hand"
COMMON_FIELDS = frozenset(
    {"id", "title", "description", "criteria", "priority", "depends_on", "state", "notes", "verify", "touches"}
)
"""What every JSON layout can say about a story."""
PASSES_OR_NOT = frozenset({State.TODO, State.DONE})

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
        "touches": Expected("a list of files, folders or patterns, none of them empty", '["src/login.py", "docs/"]'),
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
    """One command or a list of them; or the entries of another optional list."""
    if value is UNSET or value is None:
        return ()
    lines = (value,) if isinstance(value, str) else value
    refuse_blank(key, lines)
    return lines


def refuse_blank(key: str, lines: Sequence[str]) -> None:
    if any(map(str.isspace, lines)):
        raise Fault("empty-text", key, f"an entry of {key} is empty", "fill it in, or remove the entry")


def refuse_unsayable(story: Story, states: frozenset[State], layout: str) -> None:
    if story.state not in states:
        known = ", ".join(sorted(states))
        raise Fault("bad-state", "state", f"{layout} has no state for {story.state}", f"it supports {known}")


def plain_number(value: float) -> int | float:
    """2.0 is written as 2."""
    return int(value) if value == int(value) else value


class UserStory(Struct, rename="camel", kw_only=True):
    """A story as `tasks.json` and `feature` encode it."""

    id: str
    title: str
    acceptance_criteria: Criteria
    priority: Number
    passes: bool
    description: str | UnsetType = UNSET
    notes: str | UnsetType = UNSET
    depends_on: Lines | UnsetType = UNSET
    verify: Commands | UnsetType = UNSET
    touches: Lines | UnsetType = UNSET


def read_user_story(wire: UserStory, _number: int, extra: dict[str, Any]) -> Story:
    refuse_blank("acceptanceCriteria", wire.acceptance_criteria)
    return Story(
        id=wire.id,
        title=wire.title,
        description=wire.description or "",
        criteria=wire.acceptance_criteria,
        priority=wire.priority,
        depends_on=wire.depends_on or (),
        state=State.DONE if wire.passes else State.TODO,
        notes=wire.notes or "",
        verify=commands(wire.verify),
        touches=commands(wire.touches, "touches"),
        extra=extra,
    )


def write_user_story(story: Story, layout: str, more: dict[str, Any]) -> dict[str, Any]:
    """`more`: what the layout holds besides, after `passes`."""
    refuse_unsayable(story, PASSES_OR_NOT, layout)
    return {
        "id": story.id,
        "title": story.title,
        "description": story.description,
        "acceptanceCriteria": list(story.criteria),
        "priority": plain_number(story.priority),
        "passes": story.is_done,
        **more,
        "notes": story.notes,
        "dependsOn": list(story.depends_on),
        "verify": list(story.verify),
        "touches": list(story.touches),
    }


def example(story_id: str) -> Story:
    """The story of a new plan."""
    title, description = EXAMPLE_TITLE, "As a user, I want … so that …"
    criteria = ("One thing that can be checked, such as: `app --version` prints 1.0",)
    return Story(id=story_id, title=title, description=description, criteria=criteria, priority=1)


def read(source: bytes, file: str, form: Format[D, S]) -> Plan:
    """There is no partial success: if anything is wrong, PlanError says all of it."""
    try:
        return _read(source.removeprefix(BOM), form)
    except (msgspec.MsgspecError, ValueError, KeyError, TypeError, OverflowError, RecursionError, Fault):
        raise _explain(source, file, form) from None


def _read(source: bytes, form: Format[D, S]) -> Plan:
    document: dict[str, Any] = msgspec.json.decode(source, type=dict[str, Any])
    json.loads(source, object_pairs_hook=_refuse_repeated_keys, strict=False)
    listed = document.pop(form.stories)
    wires = msgspec.convert(listed, list[form.story])  # type: ignore[name-defined]
    extras = (_unknown(story, form.story) for story in listed)
    stories = tuple(map(form.read_story, wires, count(1), extras))
    if problems_of(stories, ""):
        raise ValueError
    extra = _unknown(document, form.document)
    return form.read_document(msgspec.convert(document, form.document), stories, extra)


def _refuse_repeated_keys(pairs: list[tuple[str, Any]]) -> None:
    """Decoders keep the last of several equal keys, so a reader would see another plan than a person."""
    if len({key for key, _ in pairs}) != len(pairs):
        raise ValueError


def _unknown(value: dict[str, Any], wire: type[Struct]) -> dict[str, Any]:
    """What the format does not define."""
    known = known_keys(wire)
    return {} if value.keys() <= known else {key: item for key, item in value.items() if key not in known}


def _explain(source: bytes, file: str, form: Format[D, S]) -> BadData:
    """The error to raise for a plan that could not be read."""
    try:
        text = decode_utf8(source, file).removeprefix("\ufeff")
        json.loads(text, parse_int=len, parse_float=len, parse_constant=len)  # numbers of any size
        problems = [*_bad_numbers(text, file)] or _Inspection(source, file, form).problems(json.loads(text))
    except PlanError as error:
        return error
    except JSONDecodeError as error:
        problems = [_not_json(error, file)]
    except RecursionError:
        hint = "keep it below a few hundred levels"
        problems = [Problem("too-deep", "the document is nested too deeply", Place(file, 1), hint)]
    except msgspec.DecodeError as error:
        problems = [Problem("not-json", f"not valid JSON: {error}", Place(file=file, line=1), _RESTORE)]
    if not problems:  # the two readers disagree, and the stricter one wins
        problems = [Problem("unreadable", "the plan could not be read", Place(file=file, line=1), _RESTORE)]
    return PlanError.of(problems)


def _not_json(error: JSONDecodeError, file: str) -> Problem:
    text, at = error.doc, error.pos
    line = text[text.rfind("\n", 0, at) + 1 :].partition("\n")[0]
    before = text[:at].rstrip()
    if not text.strip():
        message, hint = "the file is empty", _RESTORE
    elif at >= len(text.rstrip()):
        message, hint = "not valid JSON: the file ends too early", _RESTORE
    elif re.match(r"<{7}|={7}|>{7}", line):
        message, hint = "the file contains an unresolved merge conflict", "resolve it and remove the conflict markers"
    elif before.endswith(",") and text[at : at + 1] in "]}":
        message, hint = "not valid JSON: trailing comma before a closing bracket", "remove the comma"
    elif text[at : at + 1] in ("/", "#"):
        message, hint = "not valid JSON: comments are not allowed", "remove the comment"
    else:
        message = f"not valid JSON: {error.msg[0].lower()}{error.msg[1:].removesuffix(' at')}"
        hint = f"check this line and the one before it for a missing quote, comma or bracket; or {_RESTORE}"
    return Problem("not-json", message, Place(file=file, line=error.lineno, column=error.colno), hint)


def _bad_numbers(text: str, file: str) -> Iterator[Problem]:
    for found in _NUMBER_OR_STRING.finditer(text):
        if found[1] is None or not _is_bad_number(found[1]):
            continue
        number, at = found[1], found.start()
        message = f"the number {one_line(number, 30)} is too large"
        if number.endswith(_NO_NUMBERS):
            message = f"{number} is not a valid JSON number"
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        yield Problem("bad-number", message, Place(file, line, column), "use an ordinary number")


def _is_bad_number(number: str) -> bool:
    if number.lstrip("-").isdigit():
        return len(number) > _MOST_DIGITS
    return number.endswith(_NO_NUMBERS) or isinf(float(number))


class _Inspection:
    def __init__(self, source: bytes, file: str, form: Format[Any, Any]) -> None:
        self._file = file
        self._form = form
        # The decoder under the locator does not take half surrogate pairs, which are reported by themselves.
        harmless, self._surrogates = _SURROGATE_ESCAPE.subn(rb"\\ufffd", source)
        self._locator = Locator(harmless)

    def problems(self, document: object) -> list[Problem]:
        if not isinstance(document, dict):
            expected = f"an object with the key {self._form.stories}"
            return [self._wrong("not-an-object", (), f"the document is {_kind(document)}, not {expected}", _RESTORE)]
        if self._surrogates and (unfit := [*self._unfit_texts(document)]):
            return unfit  # no decoder takes these, so nothing else can be checked
        problems = [*self._repeated_keys()]
        problems += self._about_fields((), document, self._form.document)
        stories = document.get(self._form.stories)
        if not isinstance(stories, list):
            key = self._form.stories
            path, wrong = ((key,), f"must be a list, not {_kind(stories)}") if key in document else ((), "is missing")
            code = "wrong-type" if path else "missing-field"
            return [*problems, self._wrong(code, path, f"{key} {wrong}", f'"{key}": a list of objects')]
        if not problems:
            try:
                self._form.read_document(msgspec.convert(document, self._form.document), (), {})
            except Fault as fault:
                problems.append(self._wrong(fault.code, (fault.key,), fault.message, fault.hint))
        readable: list[tuple[int, Story]] = []
        for index, story in enumerate(stories):
            problems += self._about_story(index, story, readable)
        return problems + self._about_ids(readable, complete=len(readable) == len(stories))

    def _repeated_keys(self) -> Iterator[Problem]:
        for path, (line, column) in self._locator.repeated_keys():
            where = Place(self._file, line, column, show_path(path))
            message = f"duplicate key {one_line(str(path[-1]), 60)} in one object"
            yield Problem("duplicate-key", message, where, "remove one of them")

    def _unfit_texts(self, document: dict[str, Any]) -> Iterator[Problem]:
        """Unpaired surrogates."""
        waiting: list[tuple[Path, Any]] = [((), document)]
        while waiting:
            path, value = waiting.pop()
            if isinstance(value, dict | list):
                inner = value.items() if isinstance(value, dict) else enumerate(value)
                waiting += (((*path, key), item) for key, item in inner)
                texts = list(value) if isinstance(value, dict) else []
            else:
                texts = [value] if isinstance(value, str) else []
            if any(map(_SURROGATE.search, texts)):
                hint = "write the character itself, or both halves of its escape"
                yield self._wrong("bad-text", path, "unpaired surrogate, which is not a character", hint)

    def _about_fields(self, path: Path, values: dict[str, Any], wire: type[Struct]) -> Iterator[Problem]:
        story = _id_of(values) if path else ""
        for field in fields_of(wire):
            key = field.encode_name
            if key not in values:
                if field.required:
                    hint = f'add "{key}": {self._expected(field).example}'
                    yield self._wrong("missing-field", path, f"{self._name(path, story)}{key} is missing", hint, story)
                continue
            try:
                msgspec.convert(values[key], field.type)
            except msgspec.ValidationError as error:
                inner, value = _follow(str(error), values[key])
                expected = self._expected(field)
                which = f"an entry of {key}" if inner else key
                message = f"{self._name(path, story)}{which} is {_kind(value)}; expected: {expected.words}"
                code = {"": "empty-text", "[]": "empty-list"}.get(str(value), "wrong-type")
                hint = f'for example "{key}": {expected.example}'
                yield self._wrong(code, (*path, key, *inner), message, hint, story)

    def _about_story(self, index: int, story: object, readable: list[tuple[int, Story]]) -> Iterator[Problem]:
        path: Path = (self._form.stories, index)
        if not isinstance(story, dict):
            message = f"story number {index + 1} must be an object, not {_kind(story)}"
            yield self._wrong("wrong-type", path, message, "{ … } with the fields of a story")
            return
        try:
            readable.append((index, self._form.read_story(msgspec.convert(story, self._form.story), index + 1, {})))
        except msgspec.ValidationError:
            yield from self._about_fields(path, story, self._form.story)
        except Fault as fault:
            name = _id_of(story)
            yield self._wrong(fault.code, (*path, fault.key), f"story {name}: {fault.message}", fault.hint, name)

    def _about_ids(self, readable: list[tuple[int, Story]], *, complete: bool) -> list[Problem]:
        def place(index: int) -> Place:
            return self._place((self._form.stories, readable[index][0], "id"))

        problems = problems_of([story for _, story in readable], self._file, place)
        # If a story is missing, its dependents are not a separate problem.
        return [problem for problem in problems if complete or problem.code != "unknown-dependency"]

    def _expected(self, field: msgspec.structs.FieldInfo) -> Expected:
        return self._form.expected.get(field.encode_name) or (LINES if "tuple" in str(field.type) else TEXT)

    def _name(self, path: Path, story: str) -> str:
        if not path:
            return ""
        return f"story {story}: " if story else f"story number {int(path[1]) + 1}: "

    def _place(self, path: Path) -> Place:
        line, column = self._locator.position(path)
        return Place(self._file, line, column, show_path(path))

    def _wrong(self, code: str, path: Path, message: str, hint: str, story: str = "") -> Problem:
        return Problem(code, message, self._place(path), hint, story=story)


def _id_of(story: dict[str, Any]) -> str:
    value = story.get("id")
    return one_line(str(value), 40) if isinstance(value, str | int) and not isinstance(value, bool) else ""


def _follow(message: str, value: Any) -> tuple[Path, Any]:
    """Descend into the list element that a decoder error names at its end: … - at `$[1]`."""
    steps = re.findall(r"\[(\d+)\]", message.rpartition(" - at ")[2]) if " - at " in message else []
    for step in steps:
        value = value[int(step)]
    return tuple(map(int, steps)), value


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {one_line(str(value), 20)}"
        case str():
            return f"the text {one_line(json.dumps(value, ensure_ascii=False), 30)}" if value else "an empty text"
        case list():
            return "a list" if value else "an empty list"
        case _:
            return "an object"
