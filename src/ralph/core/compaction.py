"""Making memory smaller: what an agent answers that has summarised it, what is wrong with that, what it comes to. Pure.

Every learning has to be in one of the new ones, or be dropped by name and with a reason: nothing goes unnoticed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from ralph.core.errors import BadData
from ralph.core.learning import LONGEST, Learning
from ralph.core.memory_text import PATTERNS
from ralph.core.problems import Place, Problem
from ralph.core.recall import cost
from ralph.core.text import clean, one_line

_LARGEST = 2_000_000
_SHOWN = 20


class Condensed(Struct, frozen=True, forbid_unknown_fields=True):
    text: str
    sources: tuple[int, ...] = msgspec.field(name="from")
    """Numbers of the learnings that it stands for."""


class Dropped(Struct, frozen=True, forbid_unknown_fields=True):
    number: int
    why: str


class Digest(Struct, frozen=True, forbid_unknown_fields=True):
    learnings: tuple[Condensed, ...]
    dropped: tuple[Dropped, ...] = ()


class Unusable(BadData):
    """A summary that cannot be used. Carries every problem found in it."""


def digest_schema() -> dict[str, Any]:
    number = {"type": "integer", "minimum": 1}
    numbers = {"type": "array", "items": number, "minItems": 1}
    text = {"type": "string", "maxLength": LONGEST}
    return _object(
        {
            "learnings": {"type": "array", "items": _object({"text": text, "from": numbers}, "text", "from")},
            "dropped": {"type": "array", "items": _object({"number": number, "why": text}, "number", "why")},
        },
        "learnings",
    )


def _object(fields: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(required), "additionalProperties": False}


def read_digest(text: str, before: Sequence[Learning]) -> Digest:
    """The summary in what an agent said. Raises Unusable."""
    try:
        digest = msgspec.convert(_json_in(text), Digest)
    except msgspec.ValidationError as error:
        said, _, place = str(error).partition(" - at `$.")
        raise _unusable([Problem("shape", said, Place(path=place.rstrip("`")))]) from None
    if problems := list(_problems(digest, before)):
        raise _unusable(problems)
    return digest


def _unusable(problems: list[Problem]) -> Unusable:
    error = Unusable.of(problems)
    assert isinstance(error, Unusable)
    return error


def _json_in(text: str) -> object:
    """The whole text, what is in a fence, or the object that begins a line: agents like to say a word before."""
    fenced = re.findall(r"```(?:json)?[ \t]*\n(.*?)\n```", text, re.DOTALL)
    begun = [text[found.start() :] for found in re.finditer(r"^\{", text, re.MULTILINE)]
    for candidate in (text, *reversed(fenced), *reversed(begun[-_SHOWN:])):
        start = candidate.strip()
        if not start.startswith("{") or len(start) > _LARGEST:
            continue
        try:
            return json.JSONDecoder().raw_decode(start)[0]
        except (ValueError, RecursionError):
            continue
    raise _unusable(
        [Problem("no-json", "there is no JSON object in the answer", hint="answer with one, and nothing else")]
    )


def _problems(digest: Digest, before: Sequence[Learning]) -> Iterator[Problem]:
    known = set(range(1, len(before) + 1))
    told: set[int] = {drop.number for drop in digest.dropped}
    for place, one in enumerate(digest.learnings):
        told |= set(one.sources)
        if not one_line(one.text):
            yield _wrong(f"learnings[{place}].text", "it is empty")
        if len(one_line(one.text)) > LONGEST:
            yield _wrong(f"learnings[{place}].text", f"it has more than {LONGEST} characters", "split it")
        if not one.sources:
            yield _wrong(f"learnings[{place}].from", "it stands for nothing", "name the learnings that it comes from")
    for drop in digest.dropped:
        if not drop.why.strip():
            yield _wrong("dropped", f"{drop.number} is dropped without a reason")
    if unknown := sorted(told - known):
        yield _wrong("from", f"there is no learning {_listed(unknown)}", f"they are numbered 1 to {len(before)}")
    if missing := sorted(known - told):
        hint = "put each into `from` of one, or into `dropped` with a reason"
        yield _wrong("learnings", f"nothing is said about {_listed(missing)}", hint)
    if not unknown and not missing and not digest.learnings:
        yield _wrong("learnings", "all of them are dropped", "keep what a later session would have to find out again")
    elif not unknown and sum(map(cost, condensed(digest, before))) >= sum(map(cost, before)):
        yield _wrong("learnings", "it is not shorter than what it summarises", "fewer words, and fewer of them")


def _wrong(path: str, message: str, hint: str = "") -> Problem:
    return Problem("digest", message, Place(path=path), hint)


def _listed(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return ", ".join(map(str, numbers[:_SHOWN])) + more


def condensed(digest: Digest, before: Sequence[Learning]) -> tuple[Learning, ...]:
    """What stays. One that comes from a failed attempt, even in part, is not accepted by being summarised."""
    found = []
    for one in digest.learnings:
        sources = [before[number - 1] for number in sorted(set(one.sources))]
        stories = {source.story for source in sources}
        found.append(
            Learning(
                text=one_line(clean(one.text), LONGEST),
                story=stories.pop() if len(stories) == 1 else "",
                date=max((source.date for source in sources), default=""),
                commit=sources[0].commit if len(sources) == 1 else "",
                accepted=all(source.accepted for source in sources),
            )
        )
    return tuple(found)


def as_notes(text: str, lines: Sequence[str], remark: str) -> str:
    """`learnings.md` anew: its title, and these lines."""
    first = text.lstrip("\ufeff").partition("\n")[0].rstrip()
    title = first if re.match(r"#[ \t]+\S", first) else "# Learnings"
    return f"{title}\n\n<!-- {remark} -->\n\n" + "".join(f"- {line}\n" for line in lines)


def as_log(text: str, lines: Sequence[str], remark: str) -> str:
    """A progress log anew: how it begins, and these lines as its curated section. Entries follow below it."""
    head: list[str] = []
    for line in text.lstrip("\ufeff").splitlines():
        if re.match(r"#{2,6}[ \t]|-{3,}[ \t]*$", line):
            break
        head.append(line.rstrip())
    beginning = "\n".join(head).strip() or "# Progress"
    curated = "".join(f"- {line}\n" for line in lines)
    return f"{beginning}\n\n## {PATTERNS}\n\n<!-- {remark} -->\n\n{curated}\n---\n"


def without_duplicates(text: str, learnings: Sequence[Learning]) -> tuple[str, int]:
    """The same text without lines that say word for word what an earlier one says. How many those are."""
    lines = text.splitlines(keepends=True)
    seen: set[str] = set()
    gone: set[int] = set()
    for learning in learnings:
        alone = 0 < learning.line <= len(lines) and learning.text in lines[learning.line - 1]  # not over several lines
        if learning.text in seen and alone:
            gone.add(learning.line - 1)
        seen.add(learning.text)
    return "".join(line for place, line in enumerate(lines) if place not in gone), len(gone)
