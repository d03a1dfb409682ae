"""Finished stories of a small shop, good and with one known defect each: see `review_cases.toml`."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct


class Replaced(Struct, frozen=True):
    file: str
    old: str
    new: str


class Planted(Struct, frozen=True):
    """A story, what good work on it looks like, and a defect that its checks do not catch."""

    kind: str
    title: str
    criteria: tuple[str, ...]
    shows: str
    """Python that passes with the good work and fails with the defect."""
    files: dict[str, str]
    defect: tuple[Replaced, ...]

    def work(self, *, is_defective: bool) -> dict[str, str]:
        made = dict(self.files)
        for change in self.defect if is_defective else ():
            text = made[change.file] if change.file in made else project()[change.file]
            if change.old not in text:
                raise ValueError(f"{self.kind}: {change.old!r} is not in {change.file}")
            made[change.file] = text.replace(change.old, change.new)
        return made


class _Cases(Struct, frozen=True):
    check: str
    project: dict[str, str]
    stories: tuple[Planted, ...]


class Case(Struct, frozen=True):
    story: Planted
    is_defective: bool


@cache
def _cases() -> _Cases:
    text = Path(__file__).with_name("review_cases.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), _Cases)


def stories() -> tuple[Planted, ...]:
    return _cases().stories


def kinds() -> list[str]:
    return [story.kind for story in stories()]


def check() -> str:
    return _cases().check


def project() -> Mapping[str, str]:
    """The files before the first story."""
    return _cases().project


def draw(seed: int, only: Iterable[str] = ()) -> tuple[tuple[Case, ...], tuple[Case, ...]]:
    """Two rounds: every story is good in one and has its defect in the other, in shuffled order."""
    chance = random.Random(seed)
    wanted = set(only) or set(kinds())
    known = [story for story in stories() if story.kind in wanted]
    first = {story.kind for story in chance.sample(known, len(known) // 2)}
    rounds = []
    for turned in (False, True):
        chance.shuffle(known)
        rounds.append(tuple(Case(story, (story.kind in first) is not turned) for story in known))
    return rounds[0], rounds[1]
