"""Outputs of real runners at several versions, recorded and shortened: what is read from them."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralph.core.proof import Tests
from ralph.proof.results import read_tests

DATA = Path(__file__).parent / "data" / "results"
NOWHERE = Path("/nonexistent")
SECTION = re.compile(r"^##### (\S+)\n", re.M)

# (passed, failed, skipped) by tool and case. The projects behind a case are the same for all versions of a tool.
COUNTS: dict[str, dict[str, tuple[int, int, int]]] = {
    "ava": {"all": (2, 1, 3), "all-tap": (3, 2, 1), "pass": (1, 0, 0), "zero": (0, 0, 0)},
    "bun": {"all": (1, 1, 2)},
    "cargo": {"all": (4, 1, 1), "pass": (5, 0, 1), "crash": (0, 0, 0)},
    "ctest": {"all": (1, 1, 1)},
    "deno": {"all": (1, 1, 1)},
    "go": {"all": (2, 2, 2), "json": (2, 2, 2), "quiet": (1, 2, 0), "pass": (1, 0, 1), "crash": (1, 1, 1)},
    "googletest": {"all": (1, 1, 1)},
    "jest": {
        "all": (6, 1, 2),
        "one": (3, 1, 1),
        "verbose": (5, 1, 1),
        "pass": (3, 0, 1),
        "crash": (0, 1, 0),
        "zero": (0, 0, 0),
    },
    "minitest": {"all": (1, 2, 1)},
    "mocha": {
        "all-spec": (5, 1, 1),
        "all-dot": (5, 1, 1),
        "all-tap": (5, 1, 0),
        "pass": (2, 0, 0),
        "crash": (0, 0, 0),
        "zero": (0, 0, 0),
    },
    "node": {
        "all": (7, 1, 2),
        "all-spec": (7, 2, 2),
        "all-tap": (7, 2, 2),
        "direct": (4, 1, 2),
        "pass": (3, 0, 0),
        "pass-spec": (3, 0, 0),
        "pass-tap": (3, 0, 0),
        "crash": (0, 1, 0),
        "none": (0, 0, 0),
        "zero": (0, 0, 0),
    },
    "phpunit": {"all": (1, 2, 1), "pass": (2, 0, 0), "skip": (1, 0, 1)},
    "pytest": {
        "all": (8, 4, 3),
        "quiet": (8, 4, 3),
        "verbose": (8, 4, 3),
        "xdist": (8, 4, 3),
        "pass": (4, 0, 0),
        "passv": (4, 0, 0),
        "crash": (0, 1, 0),
        "zero": (0, 0, 1),
    },
    "rspec": {"all": (1, 1, 1)},
    "tap": {"all": (1, 1, 1), "tap": (1, 1, 1)},
    "tape": {"all-tap": (2, 1, 0)},
    "unittest": {
        "all": (5, 3, 3),
        "allv": (5, 3, 3),
        "pass": (1, 0, 1),
        "passv": (1, 0, 1),
        "crash": (0, 1, 0),
        "zero": (0, 0, 0),
    },
    "vitest": {
        "all": (5, 1, 2),
        "allv": (5, 1, 2),
        "one": (3, 1, 1),
        "onev": (3, 1, 1),
        "pass": (2, 0, 1),
        "passv": (2, 0, 1),
        "crash": (0, 1, 0),
        "zero": (0, 0, 0),
    },
}
# Python 3.12.1 alone does not count skipped tests in "Ran N tests".
DIFFERENT = {("unittest-3.12", "all"): (3, 3, 3), ("unittest-3.12", "pass"): (0, 0, 1)}

# Tests that passed or failed, by name. Groups (a suite that ends with a line of its own) may come on top.
NAMES = {
    ("ava", "all"): "b › is 1|a › adds|!a › is bad",
    ("cargo", "all"): "cg::tests::adds|!cg::tests::is_bad|cg::tests::panics|it::works|cg (doc)::src/lib.rs - add",
    ("cargo", "pass"): "cg::tests::adds|cg::tests::is_bad|cg::tests::panics|it::works|cg (doc)::src/lib.rs - add",
    ("ctest", "all"): "good|!bad",
    ("go", "all"): "example.com/x.TestA|!example.com/x.TestC|!example.com/x.TestC/sub_one|example.com/x/sub.TestA",
    ("go", "json"): "example.com/x.TestA|!example.com/x.TestC|!example.com/x.TestC/sub_one|example.com/x/sub.TestA",
    ("go", "crash"): "!example.com/x/c|example.com/x/sub.TestA",
    ("jest", "one"): (
        "a.test.js > is top level|a.test.js > sum > adds|!a.test.js > sum > is bad"
        "|a.test.js > sum > deep > works (well)"
    ),
    ("jest", "verbose"): (
        "a.test.js > is top level|a.test.js > sum > adds|!a.test.js > sum > is bad"
        "|a.test.js > sum > deep > works (well)"
        "|b.test.js > other > is 1|b.test.js > other > is 2"
    ),
    ("mocha", "all-spec"): "is top level|sum > adds|!sum > is bad|sum > deep > works (well)|other > is 1|other > is 2",
    ("mocha", "all-tap"): "is top level|sum adds|!sum is bad|sum deep works (well)|other is 1|other is 2",
    ("node", "all"): (
        "sum > adds|!sum > is bad|sum > deep > works (well) # 1|is top level > inner|is top level|is 1|is 2|prints"
    ),
    ("node", "all-tap"): (
        "sum > adds|!sum > is bad|sum > deep > works (well) # 1|is top level > inner|is top level|is 1|is 2|prints"
        "|!crash.test.js"
    ),
    ("node", "pass"): "is 1|is 2|prints",
    ("node", "pass-spec"): "is 1|is 2|prints",
    ("pytest", "passv"): "|".join(
        f"tests/test_many.py::test_{name}" for name in ("ok", "par[1]", "par[x y]", "par[a::b]")
    ),
    ("tape", "all-tap"): "adds > should be strictly equal|adds > should be strictly equal (2)|!is bad > one is two",
    ("tap", "all"): "a.test.js > adds|!a.test.js > sub > is bad",
    ("unittest", "passv"): "test_b.TestB.test_ok",
    ("vitest", "allv"): (
        "a.test.js > sum > adds|!a.test.js > sum > is bad|a.test.js > sum > deep > works (well)"
        "|a.test.js > is top level"
        "|b.test.js > other > is 1|b.test.js > other > is 2"
    ),
    ("vitest", "passv"): "b.test.js > other > is 1|b.test.js > other > is 2",
}
GROUPS = {"sum", "sum > deep", "is top level", "a.test.js", "a.test.js > sub"}


def recorded(version: str) -> dict[str, bytes]:
    _, *parts = SECTION.split((DATA / f"{version}.txt").read_text(encoding="utf-8"))
    return {case: text.encode() for case, text in zip(parts[::2], parts[1::2], strict=True)}


VERSIONS = sorted(path.stem for path in DATA.glob("*.txt"))
CASES = [(version, case) for version in VERSIONS for case in recorded(version)]


@pytest.mark.parametrize(("version", "case"), CASES)
def test_counts(version: str, case: str) -> None:
    tool = version.partition("-")[0]
    tests = read_tests("make check", recorded(version)[case], NOWHERE)
    assert (tests.passed, tests.failed, tests.skipped) == DIFFERENT.get((version, case), COUNTS[tool][case])
    if tests.total:
        assert tests.runner == ("tap" if case.endswith("-tap") and tool != "node" else tool)


@pytest.mark.parametrize(("version", "case"), [(v, c) for v, c in CASES if (v.partition("-")[0], c) in NAMES])
def test_names(version: str, case: str) -> None:
    expected = NAMES[version.partition("-")[0], case].split("|")
    names = read_tests("make check", recorded(version)[case], NOWHERE, Path("/project")).names
    ran = {name if outcome == "passed" else f"!{name}" for name, outcome in names.items() if outcome != "skipped"}
    assert ran - {f"{mark}{name}" for name in GROUPS for mark in ("", "!")} == set(expected) - GROUPS


@pytest.mark.parametrize(("version", "case"), CASES)
def test_names_have_no_times_and_no_absolute_paths(version: str, case: str) -> None:
    for name in read_tests("make check", recorded(version)[case], NOWHERE, Path("/project")).names:
        assert not re.search(r"\d ?ms\b|\d\.\d+s\b|/project|^/|0x", name)


@pytest.mark.parametrize("version", [version for version in VERSIONS if "pass" in recorded(version)])
def test_several_runs_add_up(version: str) -> None:
    output = recorded(version)["pass"]
    once = read_tests("a", output, NOWHERE)
    twice = read_tests("a; a", output + output, NOWHERE)
    assert (twice.passed, twice.failed, twice.skipped) == (2 * once.passed, 0, 2 * once.skipped)
    assert len(twice.names) in (0, 2 * len(once.names), len(once.names))


def test_runners_add_up_and_names_need_all_of_them() -> None:
    node, mocha, jest = (recorded(version)["pass"] for version in ("node-24", "mocha-11", "jest-30"))
    both = read_tests("make", recorded("cargo-1.95")["pass"] + node, NOWHERE)
    assert (both.runner, both.passed, len(both.names)) == ("cargo+node", 8, 9)
    partly = read_tests("make", mocha + jest, NOWHERE)
    assert (partly.passed, partly.skipped, partly.names) == (5, 1, {})


# Lines from the documentation of the runners, which are not installed where these tests were written.
DOCUMENTED = {
    "     Summary [   0.004s] 4 tests run: 2 passed (1 slow), 1 failed, 1 timed out, 3 skipped": ("nextest", 2, 1, 3),
    "5 examples, 1 failure, 1 pending": ("rspec", 3, 1, 1),
    "0 examples, 0 failures, 1 error occurred outside of examples": ("rspec", 0, 1, 0),
    "8 runs, 12 assertions, 1 failures, 2 errors, 1 skips": ("minitest", 4, 3, 1),
    "1 doctest, 7 tests, 2 failures, 1 skipped": ("exunit", 4, 2, 1),
    "OK (3 tests, 7 assertions)": ("phpunit", 3, 0, 0),
    "Tests: 6, Assertions: 7, Errors: 1, Failures: 1, Skipped: 2.": ("phpunit", 2, 2, 2),
    "[INFO] Tests run: 9, Failures: 1, Errors: 1, Skipped: 2": ("maven", 5, 2, 2),
    "[INFO] Tests run: 9, Failures: 1, Errors: 1, Skipped: 2, Time elapsed: 0.1 s - in a.BTest": ("", 0, 0, 0),
    "5 tests completed, 1 failed, 1 skipped": ("gradle", 3, 1, 1),
    "Passed!  - Failed:     0, Passed:     3, Skipped:     1, Total:     4, Duration: 3 ms": ("dotnet", 3, 0, 1),
    "ok | 3 passed | 0 failed | 1 ignored (10ms)": ("deno", 3, 0, 1),
    " 3 pass\n 1 fail\nRan 4 tests across 1 files. [5.00ms]": ("bun", 3, 1, 0),
    "  1 failed\n    a.spec.ts:3:1 › x\n  1 skipped\n  2 passed (3.1s)": ("playwright", 2, 1, 1),
    "[  PASSED  ] 2 tests.\n[  FAILED  ] 1 test, listed below:": ("googletest", 2, 1, 0),
    "packages/a test:  Test Files  1 passed (1)\npackages/a test:       Tests  3 passed (3)": ("vitest", 3, 0, 0),
    "web:test: Tests:       1 failed, 2 passed, 3 total": ("jest", 2, 1, 0),
}


@pytest.mark.parametrize("output", DOCUMENTED)
def test_documented_summaries(output: str) -> None:
    tests = read_tests("make check", output.encode(), NOWHERE)
    assert (tests.runner, tests.passed, tests.failed, tests.skipped) == DOCUMENTED[output]


@pytest.mark.parametrize(
    "output",
    [
        "",
        "All checks passed!",
        "Found 3 errors.",
        "3 files changed, 1 failed hunk",
        "ok",
        "tests: 3",
        "Success: no issues",
    ],
)
def test_other_output_is_no_runner(output: str) -> None:
    assert read_tests("ruff check", output.encode(), NOWHERE) == Tests()


LINES = sorted({line for version in VERSIONS for text in recorded(version).values() for line in text.splitlines()})


@given(st.lists(st.sampled_from(LINES) | st.binary(max_size=80), max_size=60))
def test_no_output_raises(lines: list[bytes]) -> None:
    tests = read_tests("x", b"\n".join(lines), NOWHERE)
    assert min(tests.passed, tests.failed, tests.skipped) >= 0
    assert set(Counter(tests.names.values())) <= {"passed", "failed", "skipped"}


@pytest.mark.parametrize(
    "unit", ["::", "/a", "a::b ", " 1s", "1 passed, ", "ok 1 - a # ", '{"Action":"fail","Package":"p"}\n', "✔ /a/a\n"]
)
def test_hostile_output_is_read_in_bounded_time(unit: str) -> None:
    lines = unit if unit.endswith("\n") else unit * (900 // len(unit)) + "\n"
    start = time.process_time()
    read_tests("x", (lines * ((200 << 10) // len(lines))).encode(), NOWHERE)
    assert time.process_time() - start < 3
