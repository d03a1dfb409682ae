"""Which tests a check ran, and how they ended.

A report that a runner wrote itself is preferred to its output, which a program under test can imitate. Neither resists
code that wants to deceive: that is what the planted failing test (`canary`) is for. Reading never raises.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from ralph.core.proof import Tests
from ralph.proof import results_pytest
from ralph.proof.results_text import read_text

_ONLY_PYTEST = re.compile(
    r"(?:\w+=\S* +)*(?:(?:uv|poetry|pdm|hatch) run +)?(?:\S*python[\d.]* +-m +)?\S*(?:pytest|py\.test)(?: [^;&|]*)?"
)


def report_environment(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """`env` with what makes runners report by name, into the folder or in their output. Harmless for other commands."""
    goflags = " ".join(filter(None, (env.get("GOFLAGS", ""), "-test.v")))  # only `go test` reads -test.v
    kept = {name: value for name, value in env.items() if name != "PYTEST_CURRENT_TEST"}  # a check is no part of a test
    return {**kept, **results_pytest.environment(folder, env), "GOFLAGS": goflags}


def read_tests(command: str, output: bytes, folder: Path, root: Path | None = None) -> Tests:
    """The tests of all runners in a check, added up. With `root`, names are relative to that folder."""
    reported = results_pytest.read(folder, root)
    if reported is not None and _ONLY_PYTEST.fullmatch(command.strip()):
        return reported
    results = read_text(output, str(root or ""))
    if reported is not None:
        results = [reported, *(tests for tests in results if tests.runner != "pytest")]
    return _sum(results)


def _sum(results: Sequence[Tests]) -> Tests:
    """Names only if every runner has them: a name that is missing must mean that the test did not run."""
    names: dict[str, str] = {}
    if all(tests.names or not tests.total for tests in results):
        for tests in results:
            names.update(tests.names)
    return Tests(
        runner="+".join(sorted(tests.runner for tests in results)),
        passed=sum(tests.passed for tests in results),
        failed=sum(tests.failed for tests in results),
        skipped=sum(tests.skipped for tests in results),
        names=names,
    )
