"""Rules for the stories of any plan: unique IDs, and dependencies that can be met."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import msgspec

from ralph.core.changes import EDITABLE
from ralph.core.errors import IllegalChange, PlanError
from ralph.core.plan import Story
from ralph.core.problems import Place, Problem
from ralph.core.text import one_line

LONGEST_ID = 100
_SHOWN_IN_A_CYCLE = 8

Places = Callable[[int], Place]
"""The place of the story with this index."""


def decode_utf8(source: bytes, file: str) -> str:
    """The text of a plan file. A byte order mark is kept as U+FEFF."""
    if (at := source.find(b"\0")) >= 0:
        raise PlanError.of([_bad_byte("nul-byte", "the file contains a NUL byte", source, at, file)])
    try:
        return source.decode()
    except UnicodeDecodeError as error:
        message = f"the file is not UTF-8: byte 0x{source[error.start]:02x} at offset {error.start}"
        raise PlanError.of([_bad_byte("not-utf-8", message, source, error.start, file)]) from None


def _bad_byte(code: str, message: str, source: bytes, at: int, file: str) -> Problem:
    where = Place(file, source.count(b"\n", 0, at) + 1)
    return Problem(code, message, where, "restore the file from git, or save it as UTF-8 text")


def checked_fields(story_id: str, fields: Mapping[str, Any], speaks: frozenset[str], layout: str) -> dict[str, Any]:
    """New values of a story, with the right types. Raises IllegalChange for what the layout has no field for."""
    name = f"story {one_line(story_id, 60)}"
    if unknown := sorted(set(fields) - (EDITABLE & speaks)):
        raise IllegalChange(f"{name}: {layout} has no field for {unknown[0]}")
    try:
        return {key: msgspec.convert(value, _field_types()[key]) for key, value in fields.items()}
    except msgspec.ValidationError as error:
        hint = "`ralph check` shows what a story needs"
        raise IllegalChange(f"{name} would not be valid in {layout}: {error}", hint=hint) from None


@cache
def _field_types() -> dict[str, Any]:
    return {field.name: field.type for field in msgspec.structs.fields(Story)}


def prove_written(meant: Sequence[Story], read: Sequence[Story], names: Iterable[str], layout: str) -> None:
    """Refuse a change whose text does not read back as intended. `names` are the fields that are compared."""
    if [story.id for story in read] != [story.id for story in meant]:
        raise IllegalChange(
            f"{layout} cannot represent this change without affecting another story", hint="edit the file by hand"
        )
    for name in sorted(names):
        for one, other in zip(read, meant, strict=True):
            if getattr(one, name) != getattr(other, name):
                raise IllegalChange(
                    f"story {one_line(other.id, 60)}: {layout} cannot represent this {name}",
                    hint="use plain text, with titles and criteria on one line each; or edit the file by hand",
                )


def problems_of(stories: Sequence[Story], file: str, place: Places | None = None) -> list[Problem]:
    """Invalid or duplicate IDs, dependencies on unknown stories or on itself, and cycles. Linear."""

    def at_line(index: int) -> Place:
        return Place(file=file, line=stories[index].line or None)

    place = place or at_line
    first: dict[str, int] = {}
    for index, story in enumerate(stories):
        first.setdefault(story.id, index)
    return [
        *_bad_ids(stories, place),
        *_repeated_ids(stories, first, place),
        *_unmet_dependencies(stories, first, place),
        *_cycles(stories, first, place),
    ]


def _bad_ids(stories: Sequence[Story], place: Places) -> Iterator[Problem]:
    for index, story_id in enumerate(story.id for story in stories):
        if not story_id.strip():
            wrong = "is empty"
        elif len(story_id) > LONGEST_ID:
            wrong = f"has {len(story_id)} characters, more than {LONGEST_ID}"
        elif not story_id.isprintable():
            wrong = "contains a line break, a control character or an invisible character"
        else:
            continue
        shown = f" {one_line(story_id, 40)}" if story_id.strip() else ""
        message, name = f"the story ID{shown} {wrong}", one_line(story_id, LONGEST_ID)
        yield Problem("bad-id", message, place(index), "use a short ID such as US-001", story=name)


def _repeated_ids(stories: Sequence[Story], first: dict[str, int], place: Places) -> Iterator[Problem]:
    for index, story_id in enumerate(story.id for story in stories):
        if first[story_id] != index:
            earlier = place(first[story_id])
            seen = f"line {earlier.line}" if earlier.line else earlier.path or f"story number {first[story_id] + 1}"
            message = f"duplicate story ID {one_line(story_id, 60)}; first used at {seen}"
            yield Problem("duplicate-id", message, place(index), "give each story a unique ID", story=story_id)


def _unmet_dependencies(stories: Sequence[Story], first: dict[str, int], place: Places) -> Iterator[Problem]:
    for index, story in enumerate(stories):
        name = f"story {one_line(story.id, 60)}" if story.depends_on else ""
        for wanted in story.depends_on:
            if wanted == story.id and first[wanted] == index:  # else it is a duplicate, which is reported
                message, hint = f"{name} depends on itself", "remove the ID from its own dependencies"
                yield Problem("self-dependency", message, place(index), hint, story=story.id)
            elif wanted not in first:
                message = f"{name} depends on {one_line(wanted, 60) or '(an empty ID)'}, which is not in the plan"
                hint = "fix the ID, or add the story it names"
                yield Problem("unknown-dependency", message, place(index), hint, story=story.id)


def _cycles(stories: Sequence[Story], first: dict[str, int], place: Places) -> Iterator[Problem]:
    blocked_by = _never_ready(stories, first)
    walked: set[int] = set()
    for start in blocked_by:
        path: list[int] = []
        on_path: dict[int, int] = {}
        at = start
        # Each story here waits for another one here, so the walk meets either itself or an earlier walk.
        while at not in walked:
            walked.add(at)
            on_path[at] = len(path)
            path.append(at)
            at = blocked_by[at]
        if at in on_path:
            yield _cycle([stories[i].id for i in path[on_path[at] :]], place(at))


def _never_ready(stories: Sequence[Story], first: dict[str, int]) -> dict[int, int]:
    """Stories that can never become ready → one story that each of them waits for."""
    waits_for: dict[int, set[int]] = {}
    waiting: dict[int, list[int]] = {}
    for index, story in enumerate(stories):
        needs = {first[d] for d in story.depends_on if d in first and d != story.id}
        waits_for[index] = needs
        for need in needs:
            waiting.setdefault(need, []).append(index)
    ready = [index for index, needs in waits_for.items() if not needs]
    while ready:
        index = ready.pop()
        del waits_for[index]
        for waiter in waiting.get(index, ()):
            waits_for[waiter].discard(index)
            if not waits_for[waiter]:
                ready.append(waiter)
    return {index: min(needs) for index, needs in waits_for.items()}


def _cycle(ids: list[str], where: Place) -> Problem:
    shown = [one_line(i, 60) for i in ids]
    if len(shown) > _SHOWN_IN_A_CYCLE:
        shown[_SHOWN_IN_A_CYCLE - 2 : -1] = [f"… {len(shown) - _SHOWN_IN_A_CYCLE + 1} more …"]
    message = f"circular dependency between stories: {' → '.join([*shown, shown[0]])}"
    return Problem("dependency-cycle", message, where, "remove one of these dependencies", story=ids[0])
