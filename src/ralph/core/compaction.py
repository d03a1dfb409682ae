"""Compacting learnings: parse an agent's summary, check it, and build the result. Pure.

Every learning must be covered by a new one or dropped by number with a reason, so nothing is lost unnoticed.
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
    """Numbers of the learnings it replaces."""


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
    """The summary in an agent's answer. Raises Unusable."""
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
    """Candidates: the whole text, fenced blocks, and an object at the start of a line, since agents often add a
    sentence.
    """
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
        [Problem("no-json", "the answer contains no JSON object", hint="answer with one JSON object and nothing else")]
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
            yield _wrong(
                f"learnings[{place}].from",
                "it is based on no learning",
                "list the numbers of the learnings it comes from",
            )
    for drop in digest.dropped:
        if not drop.why.strip():
            yield _wrong("dropped", f"{drop.number} is dropped without a reason")
    if unknown := sorted(told - known):
        yield _wrong("from", f"no learning {_listed(unknown)}", f"they are numbered 1 to {len(before)}")
    if missing := sorted(known - told):
        hint = "put each into the `from` of a new learning, or into `dropped` with a reason"
        yield _wrong("learnings", f"{_listed(missing)} not accounted for", hint)
    if not unknown and not missing and not digest.learnings:
        yield _wrong("learnings", "all learnings are dropped", "keep what a later session would have to rediscover")
    elif not unknown and sum(map(cost, condensed(digest, before))) >= sum(map(cost, before)):
        yield _wrong(
            "learnings", "the summary is not shorter than the learnings", "use fewer learnings and fewer words"
        )


def _wrong(path: str, message: str, hint: str = "") -> Problem:
    return Problem("digest", message, Place(path=path), hint)


def _listed(numbers: Sequence[int]) -> str:
    more = f" and {len(numbers) - _SHOWN} more" if len(numbers) > _SHOWN else ""
    return ", ".join(map(str, numbers[:_SHOWN])) + more


def condensed(digest: Digest, before: Sequence[Learning]) -> tuple[Learning, ...]:
    """The learnings that remain. A summary that draws on a failed attempt, even in part, stays marked as not
    accepted.
    """
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
    """A new `learnings.md`: its title, and these lines."""
    first = text.lstrip("\ufeff").partition("\n")[0].rstrip()
    title = first if re.match(r"#[ \t]+\S", first) else "# Learnings"
    return f"{title}\n\n<!-- {remark} -->\n\n" + "".join(f"- {line}\n" for line in lines)


def as_log(text: str, lines: Sequence[str], remark: str) -> str:
    """A new progress log: its old beginning, and these lines as its curated section. Entries follow below it."""
    head: list[str] = []
    for line in text.lstrip("\ufeff").splitlines():
        if re.match(r"#{2,6}[ \t]|-{3,}[ \t]*$", line):
            break
        head.append(line.rstrip())
    beginning = "\n".join(head).strip() or "# Progress"
    curated = "".join(f"- {line}\n" for line in lines)
    return f"{beginning}\n\n## {PATTERNS}\n\n<!-- {remark} -->\n\n{curated}\n---\n"


def without_duplicates(text: str, learnings: Sequence[Learning]) -> tuple[str, int]:
    """The text without lines that repeat an earlier line word for word, and how many were removed."""
    lines = text.splitlines(keepends=True)
    seen: set[str] = set()
    gone: set[int] = set()
    for learning in learnings:
        alone = 0 < learning.line <= len(lines) and learning.text in lines[learning.line - 1]  # not over several lines
        if learning.text in seen and alone:
            gone.add(learning.line - 1)
        seen.add(learning.text)
    return "".join(line for place, line in enumerate(lines) if place not in gone), len(gone)
