"""Choose the learnings for a prompt: the most relevant ones that fit. Pure and deterministic."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache

from msgspec import Struct

from ralph.core.learning import Learning, written
from ralph.core.plan import Story
from ralph.core.text import estimate_tokens

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
_PATH = re.compile(r"[\w.-]+(?:/[\w.-]+)+|[\w-]+\.[A-Za-z]\w{0,9}\b")
_SMALL = (
    "a an and are as at be by can do does for from has have if in is it its must no not of on or should so that the "
    "their then there this to use used uses was when which will with you"
)
_COMMON = frozenset(_SMALL.split())
_CURATED, _SAME_STORY, _BEFORE, _FILE, _MOST_FILES = 2.0, 3.0, 1.5, 4.0, 3
_DOUBT = 0.5
"""The weight of a learning from an attempt that was not accepted."""


class Cue(Struct, frozen=True):
    """The topic of a session."""

    words: frozenset[str] = frozenset()
    story: str = ""
    before: frozenset[str] = frozenset()
    """Stories that this one depends on."""
    files: frozenset[str] = frozenset()
    """Names and paths of files that it mentions, or that earlier attempts changed."""


class Recalled(Struct, frozen=True):
    chosen: tuple[Learning, ...] = ()
    """The most relevant first."""
    left: int = 0
    """How many were left out."""


def cue_for(story: Story | None, touched: Iterable[str] = (), more: str = "") -> Cue:
    if story is None:
        return Cue(terms(more), files=_names(touched))
    said = [story.title, story.description, *story.criteria, story.notes, *story.verify, more]
    text = "\n".join(said)
    return Cue(terms(text), story.id, frozenset(story.depends_on), _names([*touched, *_PATH.findall(text)]))


def _names(paths: Iterable[str]) -> frozenset[str]:
    found = {path.strip("./").casefold() for path in paths}
    return frozenset(name for path in found for name in (path, path.rpartition("/")[2]) if name)


@lru_cache(maxsize=8192)
def terms(text: str) -> frozenset[str]:
    """The words of a text: identifiers and paths split into parts, stop words removed, inflections reduced."""
    words = (word.casefold() for word in _PARTS.findall(text))
    return frozenset(_stem(word) for word in words if len(word) > 1 and word not in _COMMON)


def _stem(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def ranked(learnings: Sequence[Learning], cue: Cue) -> list[Learning]:
    """The most relevant first: by shared words, weighted by rarity, then files, stories and age."""
    words = [terms(learning.text) for learning in learnings]
    spread = Counter(word for found in words for word in found)
    weights = {word: math.log(1 + len(learnings) / spread[word]) for word in cue.words if word in spread}
    ages = {date: place for place, date in enumerate(sorted({learning.date for learning in learnings}))}
    scores = []
    for place, learning in enumerate(learnings):
        score = sum(weights[word] for word in sorted(words[place] & weights.keys()))
        score += _CURATED * learning.curated
        score += _SAME_STORY * (learning.story == cue.story != "") + _BEFORE * (learning.story in cue.before)
        score += _FILE * min(_files_in(learning.text, cue.files), _MOST_FILES)
        score += (ages[learning.date] + 1) / (len(ages) + 1)
        scores.append((-score * (1 if learning.accepted else _DOUBT), -place))
    return [learnings[-place] for _, place in sorted(scores)]


def _files_in(text: str, files: frozenset[str]) -> int:
    if not files:
        return 0
    return len({found for path in _PATH.findall(text) if (found := path.strip("./").casefold()) in files})


def cost(learning: Learning) -> int:
    """In tokens, as a line of a list."""
    return estimate_tokens(f"- {written(learning)}\n")


def recall(learnings: Sequence[Learning], cue: Cue, budget: int) -> Recalled:
    """As many of the most relevant ones as fit. One that is too long for the remaining space is skipped."""
    chosen: list[Learning] = []
    left = budget
    for learning in ranked(learnings, cue):
        if (price := cost(learning)) <= left:
            chosen.append(learning)
            left -= price
    return Recalled(tuple(chosen), len(learnings) - len(chosen))
