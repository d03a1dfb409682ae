"""A learning: one line that one session leaves for later ones, with its origin. Pure.

    - Tests freeze the clock with `fixed_now`. (US-003, 2026-11-15, 1a2b3c4d5)
    - The cache has to be cleared first. (US-004, 2026-11-15, not accepted)

It is a claim like any other. A learning from an attempt that was not accepted is kept, since failures teach most, and
is marked permanently.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ralph.core.text import one_line

LONGEST = 600
"""Characters. Longer text belongs in a document."""
_SHORT_COMMIT = 9
_LONGEST_STORY = 60
_NOT_ACCEPTED = "not accepted"
_TAG = re.compile(
    r"\s+\((?:(?P<story>[^()]{1,80}?), )?(?P<date>\d{4}-\d\d-\d\d)"
    r"(?:, (?P<commit>[0-9a-f]{7,64}))?(?P<mark>, not accepted)?\)$"
)
_WORD = re.compile(r"[^\W_]+(?:[-_./:'][^\W_]+)*")
_SMALL = (
    "a an and are as at be by do does for from has have here in is it its of on or so that the their them then there "
    "they this to was we were when which will with you your"
)
_TURNS = "not no never without cannot can't don't doesn't isn't only except unless always before after instead"
_FILLERS, _DECISIVE = frozenset(_SMALL.split()), frozenset(_TURNS.split())
_ALIKE = 0.9
_FEW = 8
"""Texts with so few words must be identical to count as the same."""


class Learning(Struct, frozen=True, kw_only=True):
    text: str
    story: str = ""
    date: str = ""
    """`2026-11-15`"""
    commit: str = ""
    accepted: bool = True
    """False: from an attempt that was not accepted."""
    curated: bool = False
    """It was moved to the curated section ("Codebase Patterns")."""
    line: int = 0
    """Line number in its file."""


def learned(text: str, *, day: str, story: str = "", commit: str = "", accepted: bool = True) -> Learning:
    """A new learning. `day` may be a full ISO 8601 timestamp."""
    return Learning(
        text=one_line(text, LONGEST),
        story=one_line(story, _LONGEST_STORY).translate({ord("("): "[", ord(")"): "]"}),
        date=day[:10],
        commit=commit[:_SHORT_COMMIT],
        accepted=accepted,
    )


def written(learning: Learning) -> str:
    """Its line, without the bullet."""
    known = [learning.story, learning.date, learning.commit, "" if learning.accepted else _NOT_ACCEPTED]
    tag = ", ".join(filter(None, known)) if learning.date else ""
    return f"{learning.text} ({tag})" if tag else learning.text


def read_line(text: str, *, curated: bool = False, line: int = 0, story: str = "", date: str = "") -> Learning:
    """`story` and `date` come from the context, for a line that does not name them."""
    found = _TAG.search(text)
    if found is None:
        return Learning(text=text.strip(), curated=curated, line=line, story=story, date=date)
    return Learning(
        text=text[: found.start()].strip(),
        story=found["story"] or "",
        date=found["date"],
        commit=found["commit"] or "",
        accepted=not found["mark"],
        curated=curated,
        line=line,
    )


def plain_words(text: str) -> tuple[str, ...]:
    """The text that learnings are compared by: without case and punctuation."""
    return tuple(_WORD.findall(text.casefold()))


def is_same(first: str, second: str) -> bool:
    """Whether two learnings are the same, or so similar that only one is needed.

    Negations and numbers must occur in both.
    """
    one, other = plain_words(first), plain_words(second)
    if one == other:
        return True
    left, right = ([word for word in words if word not in _FILLERS] for words in (one, other))
    if left == right:
        return bool(left)
    kept, all_words = set(left) & set(right), set(left) | set(right)
    if min(len(left), len(right)) < _FEW or len(kept) < _ALIKE * len(all_words) or _pivots(left) != _pivots(right):
        return False
    from difflib import SequenceMatcher  # few come so near

    return SequenceMatcher(None, left, right, autojunk=False).ratio() >= _ALIKE  # the same order, too


def _pivots(words: Iterable[str]) -> set[str]:
    return {word for word in words if word in _DECISIVE or any(letter.isdigit() for letter in word)}


def news(given: Sequence[Learning], known: Iterable[Learning]) -> tuple[Learning, ...]:
    """The learnings that are not known yet. One known only from a failed attempt is new when an accepted one
    confirms it.
    """
    heard = list(known)
    new: list[Learning] = []
    for learning in given:
        if not learning.text:
            continue
        if any((old.accepted or not learning.accepted) and is_same(old.text, learning.text) for old in heard):
            continue
        heard.append(learning)
        new.append(learning)
    return tuple(new)


def distinct(learnings: Iterable[Learning]) -> tuple[Learning, ...]:
    """Each learning once, in its best-supported version: curated, else from accepted work, else the first."""
    best: dict[tuple[str, ...], Learning] = {}
    for learning in learnings:
        key = plain_words(learning.text)
        before = best.get(key)
        if before is None or _worth(learning) > _worth(before):
            best[key] = learning  # stays in the place of the first
    return tuple(best.values())


def _worth(learning: Learning) -> tuple[bool, bool]:
    return learning.curated, learning.accepted
