"""What the proof procedure works on: changed files, a candidate, and a bench that runs checks on trees."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from msgspec import Struct

from ralph.config.checks import ChosenCheck
from ralph.core.evidence import CheckResult
from ralph.core.proof import Tests
from ralph.core.text import one_line

FEW = 3


class FileChange(Struct, frozen=True):
    """A file before and after a change. None: it does not exist there."""

    path: str
    old: bytes | None
    new: bytes | None


class Ran(Struct, frozen=True):
    """One check and the tests it ran."""

    result: CheckResult
    tests: Tests = Tests()

    @property
    def is_red(self) -> bool:
        return not self.result.passed


class Bench(Protocol):
    def compose(self, base: str, files: Mapping[str, bytes | None]) -> str:
        """The tree `base` with these files replaced; None removes one."""
        ...

    def run(self, tree: str, checks: Sequence[ChosenCheck]) -> tuple[Ran, ...]:
        """Run checks on a tree, without a record in the journal."""
        ...

    @property
    def is_stopped(self) -> bool: ...


class Candidate(Struct, frozen=True, kw_only=True):
    """A story's work whose checks pass."""

    start: str
    """The tree when the story began."""
    tree: str
    """The tree that would be committed."""
    changes: tuple[FileChange, ...]
    foreign: tuple[FileChange, ...] = ()
    """What other stories changed that are not done. Their changes to tests are not trusted yet."""
    words: str
    """What the story asks for."""
    own: tuple[ChosenCheck, ...]
    """The story's own checks."""
    checks: tuple[ChosenCheck, ...]
    """All required checks, including its own."""
    passed: Mapping[str, Tests]
    """Command → the tests it ran on the candidate."""
    before: Mapping[str, Tests]
    """Command → the tests it ran at the story's start. Empty: unknown."""
    tests: Mapping[str, bytes]
    """Every test file of the candidate."""
    sources: Mapping[str, bytes]
    """Other files of the candidate, to find out who imports what."""
    seed: str = ""
    """For names that an agent cannot foresee."""
    wants_witness: bool = True
    restores: bool = True
    """Run the checks with the tests as they were."""
    acceptance: tuple[str, ...] = ()
    """Files of acceptance tests: among the changes, but not by the session that implemented the story."""
    acceptance_tests: tuple[str, ...] = ()
    """Their tests that failed at the story's start, as far as the runner named them."""


def named(check: ChosenCheck) -> str:
    return f"`{one_line(check.command, 80)}`"
