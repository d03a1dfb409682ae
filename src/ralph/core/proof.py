"""What proves a story: test results, witnesses, and the grade they add up to. Values."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct


class Grade(StrEnum):
    """How well a story is proven, best first."""

    PROVEN = "proven"
    """Its own check, or an acceptance test, failed without the change and passes with it."""
    WITNESSED = "witnessed"
    """A test failed without the change and passes with it."""
    REVIEWED = "reviewed"
    """No check is about this story; a review approved it."""
    UNPROVEN = "unproven"

    def reaches(self, minimum: Grade) -> bool:
        order = list(Grade)
        return order.index(self) <= order.index(minimum)


MEANING = {
    Grade.PROVEN: "its own check or an acceptance test fails without the change",
    Grade.WITNESSED: "a test fails without the change",
    Grade.REVIEWED: "no test fails without the change; a review approved it",
    Grade.UNPROVEN: "no test fails without the change, and no review approved it",
}


NO_LONGER_RUNS = "no longer runs"
"""How an entry of `Proof.loosened` ends that names a test instead of a file."""
KEPT_UNPROVEN = "committed, but no test fails without the change and no review approved it"
"""Of a story that is not done and waits for a review."""


def count_grades(grades: Iterable[str]) -> dict[str, int]:
    """How often each grade occurs, best first; stories that were never judged do not count."""
    known = list(grades)
    return {grade.value: known.count(grade) for grade in Grade if grade in known}


class Tests(Struct, frozen=True):
    """What a test runner reported. An empty `runner`: the output is not from a known one."""

    runner: str = ""
    passed: int = 0
    failed: int = 0
    """Including errors."""
    skipped: int = 0
    names: dict[str, str] = {}
    """Name → "passed", "failed" or "skipped". Empty: the runner reports only counts."""

    @property
    def total(self) -> int:
        return self.passed + self.failed + self.skipped


class Witness(Struct, frozen=True):
    """Something about the story that fails without the change and passes with it."""

    name: str
    is_own: bool = False
    """The story's own check, or an acceptance test."""


class Proof(Struct, frozen=True, kw_only=True):
    """The result of the proof procedure for one candidate."""

    where: str = "in-place"
    """`checkout` or `in-place`."""
    tree: str = ""
    """The candidate: the tree that was proven."""
    witnesses: tuple[Witness, ...] = ()
    restored: tuple[str, ...] = ()
    """Files that were as at the story's start in the second pass."""
    changed_expectations: tuple[str, ...] = ()
    """The checks fail with those files: what failed, with file and line."""
    old_output: str = ""
    """The end of the output of that failure."""
    excuse: str = ""
    """Why the changed expectations are legitimate without a review."""
    loosened: tuple[str, ...] = ()
    """Existing tests, or what decides about them, changed although the checks pass without that: file and line."""
    objections: tuple[str, ...] = ()
    """Why passing checks are no pass: fewer tests than before, a runner that reports no failures."""
    missing: tuple[str, ...] = ()
    """What would be a witness."""
    limits: tuple[str, ...] = ()
    """What was not examined, and why."""

    @property
    def needs_approval(self) -> bool:
        return bool(self.changed_expectations) and not self.excuse


class Acceptance(Struct, frozen=True, kw_only=True):
    story: str
    key: str
    """What the story asked for when they were written (`Story.content_key`): an edited story gets new ones."""
    files: dict[str, bytes] = {}
    tests: tuple[str, ...] = ()
    """Those that failed then: names, or files where the runner reports no names."""
    is_hidden: bool = False
    sessions: int = 0
    """Sessions that failed to write them."""
    is_exam: bool = False
    """Failing tests of an exam, for which the story was added."""
    has_joined: bool = False
    """The story was finished with them, so they are in the repository."""

    @property
    def is_visible(self) -> bool:
        return bool(self.files) and (self.has_joined or not self.is_hidden)


def exam_failure(headline: str) -> str:
    """Why a round of the exam has no result, for the user: without what the session was told to do about it."""
    return headline.removesuffix(": add one that the checks run")


class Tamper(StrEnum):
    """What happens when the checks pass only with changed tests."""

    REVIEW = "review"
    """A review has to approve it. Without one, the work is rejected."""
    REJECT = "reject"
    OFF = "off"


class Suspicion(Struct, frozen=True):
    """A weakened test or an edited check, as older versions recorded it."""

    code: str
    path: str
    message: str
    line: int = 0
    is_grave: bool = True
    is_decisive: bool = False
    """The checks pass only because of it, and the story does not ask for it: nothing is left to review."""

    def __str__(self) -> str:
        return f"{self.path}{f':{self.line}' if self.line else ''}: {self.message}"
