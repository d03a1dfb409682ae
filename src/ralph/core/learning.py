"""What one session found out and later ones should know: one line, with where it comes from. Pure.

    - Tests freeze the clock with `fixed_now`. (US-003, 2026-11-15, 1a2b3c4d5)
    - The cache has to be cleared first. (US-004, 2026-11-15, not accepted)

It is a claim like any other. One of an attempt that was not accepted is kept, since failing teaches most, and says so
for good.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct

from ralph.core.text import one_line

LONGEST = 600
"""Characters. What takes more is a document, and belongs into one."""
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
"""Words, so few that they are the same or they are not."""


class Learning(Struct, frozen=True, kw_only=True):
    text: str
    story: str = ""
    date: str = ""
    """`2026-11-15`"""
    commit: str = ""
    accepted: bool = True
    """False: of an attempt whose work was not accepted."""
    curated: bool = False
    """Somebody has put it where the patterns of the code base are kept."""
    line: int = 0
    """Of its file."""


def learned(text: str, *, day: str, story: str = "", commit: str = "", accepted: bool = True) -> Learning:
    """A new one. `day` may be a moment, in ISO 8601."""
    return Learning(
        text=one_line(text, LONGEST),
        story=one_line(story, _LONGEST_STORY).translate({ord("("): "[", ord(")"): "]"}),
        date=day[:10],
        commit=commit[:_SHORT_COMMIT],
        accepted=accepted,
    )


def written(learning: Learning) -> str:
    """Its line, without a bullet."""
    known = [learning.story, learning.date, learning.commit, "" if learning.accepted else _NOT_ACCEPTED]
    tag = ", ".join(filter(None, known)) if learning.date else ""
    return f"{learning.text} ({tag})" if tag else learning.text


def read_line(text: str, *, curated: bool = False, line: int = 0, story: str = "", date: str = "") -> Learning:
    """`story` and `date` are what is around it, for a line that does not say."""
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
    """What two learnings are compared by: no case, no punctuation."""
    return tuple(_WORD.findall(text.casefold()))


def is_same(first: str, second: str) -> bool:
    """The same, or so nearly that a reader would want only one of them.

    What turns a sentence round, and every number, has to be in both.
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
    """Those that are not known already. What only a failed attempt has said is news when an accepted one says it."""
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
    """Each once, as it is best known: curated, else of accepted work, else the first of them."""
    best: dict[tuple[str, ...], Learning] = {}
    for learning in learnings:
        key = plain_words(learning.text)
        before = best.get(key)
        if before is None or _worth(learning) > _worth(before):
            best[key] = learning  # stays in the place of the first
    return tuple(best.values())


def _worth(learning: Learning) -> tuple[bool, bool]:
    return learning.curated, learning.accepted
