"""What goes in and what comes out: changed files, findings, and the name of every kind of finding."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

Severity = Literal["high", "low"]


class FileChange(Struct, frozen=True):
    """One path that differs from the checkpoint. `None`: it did not exist, or was deleted."""

    path: str
    old: bytes | None
    new: bytes | None


class Finding(Struct, frozen=True):
    code: str
    """One of `CODES`."""
    path: str
    line: int
    """In the new file; in the old one for what is gone."""
    message: str
    severity: Severity


CODES: dict[str, str] = {
    "test-file-deleted": "a test file is gone and its tests are nowhere else",
    "test-file-emptied": "a test file has no test left in it",
    "test-file-not-collected": "a test file got a name or a place where no runner looks for it",
    "test-file-broken": "a test file can no longer be read",
    "test-removed": "a test, or a row of its table, is gone",
    "test-not-collected": "a test got a name, a class or a guard with which it is no longer run",
    "test-skipped": "a test is skipped or expected to fail",
    "test-focused": "one test runs alone and hides the others (`.only`)",
    "test-emptied": "a test does nothing any more",
    "assertion-removed": "an assertion is gone",
    "assertion-constant": "an assertion cannot fail",
    "assertion-swallowed": "what an assertion raises is caught and forgotten",
    "assertion-unreachable": "an assertion is never reached",
    "assertion-conditional": "an assertion is made only under a new condition",
    "assertion-loosened": "an assertion accepts more than it did",
    "exception-broadened": "a test accepts more kinds of errors than it did",
    "expected-edited": "the value a test expects is another one",
    "test-data-edited": "what a test feeds to the code is something else",
    "subject-mocked": "a test replaces the code that it is about",
    "snapshot-edited": "a recorded result was rewritten",
    "tests-narrowed": "settings or commands leave tests out",
    "failure-hidden": "a command can no longer fail",
    "check-removed": "a command that checked something is gone",
    "check-edited": "a script or a target that the checks use was changed",
    "ci-edited": "a CI file was changed",
    "coverage-loosened": "coverage asks for less",
    "lint-loosened": "a linter asks for less",
    "types-loosened": "a type checker asks for less",
    "warnings-silenced": "comments that silence a checker came in bulk, or for a whole file",
    "runner-shadowed": "a file takes the place of a test runner or of a library it uses",
    "outcome-forged": "code decides how a test run ends, whatever the tests say",
    "test-detected": "code behaves differently when it is tested",
    "answers-hard-coded": "code knows the answers of the tests by heart",
    "protected-touched": "a protected file was changed",
    "not-examined": "a file is too large, or cannot be read",
}
