"""Matches old tests to new ones: by name, by body, moved to another file, or removed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from ralph.checks.tamper.paths import is_collected, language_of, left_the_tests, words_of
from ralph.checks.tamper.suite import Outline, Suite

_TELLING = 30
"""A shorter body is not enough to identify a test."""


class TestFile(Struct, frozen=True):
    """Both versions of one test file. None: it does not exist, or cannot be parsed."""

    __test__ = False  # its name is not meant for pytest

    path: str
    old: Suite | None
    new: Suite | None
    unchanged: int = 0
    """Tests that are the same in both, and in neither of the two suites."""

    def old_tests(self) -> list[Outline]:
        return [outline for outline in self.old.outlines if outline.is_test] if self.old else []

    def new_tests(self) -> list[Outline]:
        return [outline for outline in self.new.outlines if runs(outline)] if self.new else []


class Pair(Struct, frozen=True):
    old: Outline
    new: Outline | None
    """None: it was removed."""
    left: Outline | None = None
    """For a removed one: the same function, where no runner looks for it."""


class Pairing(Struct, frozen=True):
    pairs: tuple[Pair, ...]
    fresh: tuple[Outline, ...]
    """Functions that did not exist before."""


def runs(outline: Outline) -> bool:
    return outline.is_test and (is_collected(outline.path) or language_of(outline.path) == "rust")


def pair_up(files: Sequence[TestFile]) -> Pairing:
    old = [outline for file in files if file.old for outline in file.old.outlines]
    new = [outline for file in files if file.new for outline in file.new.outlines]
    by_key: dict[tuple[str, str], list[Outline]] = {}
    for outline in new:
        by_key.setdefault((outline.path, outline.name), []).append(outline)
    pairs: list[Pair] = []
    used: set[int] = set()
    rest: list[Outline] = []
    for one in old:
        namesakes = by_key.get((one.path, one.name), ())
        other = next((o for o in namesakes if id(o) not in used and (o.is_test or not one.is_test)), None)
        if other is not None:
            used.add(id(other))
            pairs.append(Pair(one, other))
        elif one.is_test:
            rest.append(one)
    still_gone = _match(rest, new, used, pairs)
    for one in still_gone:
        pairs.append(Pair(one, None, _left(one, new, used)))
    fresh = tuple(outline for outline in new if id(outline) not in used)
    return Pairing(tuple(pairs), fresh)


def _match(rest: Iterable[Outline], new: Sequence[Outline], used: set[int], pairs: list[Pair]) -> list[Outline]:
    """By the same body, then by the same name in another file, then by a like name in the same file."""
    by_body: dict[str, list[Outline]] = {}
    by_name: dict[str, list[Outline]] = {}
    for outline in new:
        if runs(outline) and id(outline) not in used:
            by_body.setdefault(outline.body, []).append(outline)
            by_name.setdefault(_short(outline.name), []).append(outline)
    gone = []
    for one in rest:
        candidates = by_body.get(one.body, []) if len(one.body) > _TELLING else []
        candidates = candidates + by_name.get(_short(one.name), [])
        found = next((c for c in candidates if id(c) not in used and not _moved_away(one, c)), None)
        if found is None:
            gone.append(one)
        else:
            used.add(id(found))
            pairs.append(Pair(one, found))
    return gone


def _moved_away(one: Outline, other: Outline) -> bool:
    return one.path != other.path and left_the_tests(one.path, other.path)


def _short(name: str) -> str:
    return name.rpartition(".")[2].rpartition(" > ")[2]


def _left(one: Outline, new: Sequence[Outline], used: set[int]) -> Outline | None:
    """The same function under a name or in a place where it is not run."""
    short = _short(one.name)
    for outline in new:
        if id(outline) in used or (runs(outline) and not _moved_away(one, outline)):
            continue
        same_body = len(one.body) > _TELLING and outline.body == one.body
        if same_body or _short(outline.name) == short or _is_disguised(short, _short(outline.name)):
            return outline
    return None


def _is_disguised(old: str, new: str) -> bool:
    """`test_total` → `_test_total`, `xtest_total`, `check_total`."""
    words = words_of(old)[1:]
    return bool(words) and (new.endswith(old) or words_of(new)[-len(words) :] == words)
