"""Input and output: changed files, findings, and the name of every kind of finding."""

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
    """In the new file; in the old one for removed lines."""
    message: str
    severity: Severity


CODES: dict[str, str] = {
    "test-file-deleted": "a test file was removed and its tests are nowhere else",
    "test-file-emptied": "a test file has no tests left",
    "test-file-not-collected": "a test file was renamed or moved to where no runner looks for it",
    "test-file-broken": "a test file can no longer be parsed",
    "test-removed": "a test, or a row of its table, was removed",
    "test-not-collected": "a test got a name, class or condition that keeps it from running",
    "test-skipped": "a test is skipped or expected to fail",
    "test-focused": "one test runs alone and hides the others (`.only`)",
    "test-emptied": "a test no longer does anything",
    "assertion-removed": "an assertion was removed",
    "assertion-constant": "an assertion cannot fail",
    "assertion-swallowed": "the failure of an assertion is caught and ignored",
    "assertion-unreachable": "an assertion is never reached",
    "assertion-conditional": "an assertion runs only under a new condition",
    "assertion-loosened": "an assertion accepts more than it did",
    "exception-broadened": "a test accepts more exception types than it did",
    "expected-edited": "the expected value of a test was changed",
    "test-data-edited": "the input data of a test was changed",
    "subject-mocked": "a test replaces the code that it is about",
    "snapshot-edited": "a recorded result was rewritten",
    "tests-narrowed": "settings or commands exclude tests",
    "failure-hidden": "a command can no longer fail",
    "check-removed": "a command that checked something was removed",
    "check-edited": "a script or target used by the checks was changed",
    "ci-edited": "a CI file was changed",
    "coverage-loosened": "coverage requires less",
    "lint-loosened": "a linter requires less",
    "types-loosened": "a type checker requires less",
    "warnings-silenced": "comments that silence a checker were added in bulk, or for a whole file",
    "runner-shadowed": "a file replaces a test runner or a library it uses",
    "outcome-forged": "code forges the result of a test run",
    "test-detected": "code behaves differently under test",
    "answers-hard-coded": "code has the expected answers of the tests hard-coded",
    "protected-touched": "a protected file was changed",
    "not-examined": "a file is too large, or cannot be read",
}
