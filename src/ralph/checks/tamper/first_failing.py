"""Which tests of a story have to fail on the old code, and whether it needs any. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from ralph.checks.tamper.examine import new_tests, tests_to_put_back
from ralph.checks.tamper.pairing import pair_up, runs
from ralph.checks.tamper.paths import is_golden, is_test_file, language_of
from ralph.checks.tamper.reading import is_foreign_test, read_all, test_files
from ralph.checks.tamper.values import FileChange

_NOT_WANTED = re.compile(
    r"\b(?:no|without(?: any)?|needs? no) (?:new |further |additional |automated |unit )*tests?\b(?! (?:fail|break))"
    r"|\btests? (?:is|are) not (?:needed|wanted|required|necessary)\b"
    r"|\b(?:do not|don['’]t) (?:add|write) (?:\w+ )?tests?\b"
    r"|\bno (?:functional|behaviou?ral|observable) changes?\b|\bno changes? (?:in|of|to) behaviou?r\b"
    r"|\bbehaviou?r (?:stays|remains|is) (?:the same|unchanged|as it is)\b|\bpure refactoring\b",
    re.IGNORECASE,
)


class Needed(Struct, frozen=True):
    """The tests of a change, grouped by what they must show."""

    fresh: tuple[str, ...] = ()
    """Files with new tests: each has to fail on the old code."""
    edited: tuple[str, ...] = ()
    """Files with changed tests: if none is new, one of these has to fail."""
    has_code: bool = False
    is_excused: bool = False
    """The story itself wants no test, or the tests are in the same files as the code."""


def is_on_the_test_side(path: str) -> bool:
    """Unchanged while the code is reverted: tests, their helpers and their data."""
    return is_test_file(path) or is_golden(path) or is_foreign_test(path)


def needed(changes: Sequence[FileChange], story_text: str) -> Needed:
    reads = read_all(changes)
    here = {change.path for change in changes if change.new is not None}
    inside = [outline for outline in pair_up(test_files(reads)).fresh if runs(outline)]
    return Needed(
        fresh=new_tests(changes),
        edited=tuple(path for path in tests_to_put_back(changes) if path in here),
        has_code=any(language_of(change.path) and not is_on_the_test_side(change.path) for change in changes),
        is_excused=_NOT_WANTED.search(story_text) is not None
        or any(not is_on_the_test_side(outline.path) for outline in inside),
    )
