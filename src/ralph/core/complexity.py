"""How hard a story looks, in points: from its text and its history, without asking a model. Pure."""

from __future__ import annotations

import re
from enum import StrEnum

from msgspec import Struct

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.plan import Story

_HARD = lazy_pattern(
    r"\b(?:migrat\w+|concurren\w+|parallel\w*|async\w*|thread\w*|race|deadlock\w*|distribut\w+|transaction\w*|security|"
    r"auth\w*|encrypt\w*|permission\w*|architect\w+|refactor\w*|redesign\w*|rewrite|protocol\w*|pars(?:er|ing)|compiler|"
    r"scheduler|cache invalidation|performance|optimi[sz]\w+|back-?ward[s -]?compatib\w+|real[- ]?time|algorithm\w*)\b",
    re.IGNORECASE,
)
_EASY = lazy_pattern(
    r"\b(?:typo\w*|rename|wording|copy text|comment\w*|readme|documentation|docs?|changelog|label|colou?r|bump|"
    r"log line)\b",
    re.IGNORECASE,
)
_MANY_CRITERIA, _MANY_WORDS, _MANY_NEEDS = 4, 120, 2


class Level(StrEnum):
    SIMPLE = "simple"
    MEDIUM = "medium"
    COMPLEX = "complex"


class Points(Struct, frozen=True):
    points: int
    why: str


class Complexity(Struct, frozen=True):
    level: Level
    parts: tuple[Points, ...] = ()

    @property
    def points(self) -> int:
        return sum(part.points for part in self.parts)


_MEDIUM, _COMPLEX = 3, 6


def complexity(story: Story) -> Complexity:
    parts = tuple(part for part in _parts(story) if part.points)
    points = sum(part.points for part in parts)
    level = Level.COMPLEX if points >= _COMPLEX else Level.MEDIUM if points >= _MEDIUM else Level.SIMPLE
    return Complexity(level, parts)


def _parts(story: Story) -> list[Points]:
    text = " ".join((story.title, story.description, *story.criteria))
    words = len(text.split())
    hard = sorted({found.lower() for found in _HARD.findall(text)})
    easy = sorted({found.lower() for found in _EASY.findall(story.title)})
    criteria, needs = len(story.criteria), len(story.depends_on)
    return [
        Points(min(criteria // 2, _MANY_CRITERIA), f"{criteria} acceptance criteria"),
        Points(min(words // 60, 3), f"{words} words"),
        Points(min(2 * len(hard), 6), f"mentions {', '.join(hard[:5])}"),
        Points(1 if needs >= _MANY_NEEDS else 0, f"depends on {needs} other stories"),
        Points(-2 if easy else 0, f"is about {', '.join(easy[:3])}"),
        Points(2 * min(story.attempts, 3), f"attempts so far: {story.attempts}"),
        Points(min(story.review.count, 2), f"reviews so far: {story.review.count}"),
    ]
