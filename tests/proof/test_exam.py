"""The tests of an exam: which file fails, what a story says about it, and the command that runs it alone."""

from __future__ import annotations

import pytest

from ralph.config.checks import ChosenCheck
from ralph.core.evidence import CheckResult
from ralph.core.proof import Tests
from ralph.proof.acceptance import Trial
from ralph.proof.exam import Finding, Result, evaluate, focused, interface, story_for
from ralph.proof.values import Ran


def trial(names: dict[str, str], *, passed: bool, tail: str = "") -> Trial:
    states = list(names.values())
    tests = Tests(runner="x", passed=states.count("passed"), failed=states.count("failed"), names=names)
    return Trial(ChosenCheck("check", "check"), Tests(), Ran(CheckResult("check", "check", passed, tail=tail), tests))


def never(path: str) -> list[Trial]:
    raise AssertionError(path)


def test_names_tell_which_file_fails() -> None:
    files = {"tests/test_a.py": b"", "tests/test_b.py": b"", "tests/data.json": b""}
    ran = trial({"tests/test_a.py::test_x": "failed", "tests/test_b.py::test_y": "passed"}, passed=False, tail="why")
    assert evaluate(files, [ran], never) == Result(
        (Finding("tests/test_a.py", ("tests/test_a.py::test_x",), "check", "why"),), passed=1
    )


def test_without_files_in_the_names_each_file_runs_alone() -> None:
    files = {"test/a.test.js": b"", "test/b.test.js": b""}
    alone = {
        "test/a.test.js": [trial({"adds": "failed", "keeps": "passed"}, passed=False)],
        "test/b.test.js": [trial({"removes": "passed"}, passed=True)],
    }
    every = trial({"adds": "failed", "keeps": "passed", "removes": "passed"}, passed=False)
    result = evaluate(files, [every], lambda path: alone[path])
    assert [(finding.file, finding.tests) for finding in result.findings] == [("test/a.test.js", ("adds",))]
    assert result.passed == 2


def test_without_names_the_file_is_the_finding() -> None:
    red = trial({}, passed=False)
    result = evaluate({"t/x_test.sh": b"", "tests/test_x.py": b""}, [red], lambda path: [red])
    assert ("tests/test_x.py",) in [finding.tests for finding in result.findings]


def test_a_file_that_no_check_runs_is_refused() -> None:
    result = evaluate({"tests/test_a.py": b""}, [trial({}, passed=True)], lambda _: [trial({}, passed=True)])
    assert result.objections == ("`check` does not run tests/test_a.py",)


def test_a_passing_file_of_an_unknown_runner_is_kept_and_said() -> None:
    ran = Ran(CheckResult("check", "check", True), Tests())
    result = evaluate({"tests/test_a.py": b""}, [Trial(ChosenCheck("check", "check"), Tests(), ran)], never)
    assert (result.passed, result.objections) == (1, ())
    assert "does not show that it runs" in result.notices[0]


def test_there_is_a_limit_on_files() -> None:
    files = {f"tests/test_{number}.py": b"" for number in range(11)}
    assert evaluate(files, [], never).objections == ("11 new test files: write at most 10",)


@pytest.mark.parametrize(
    ("command", "file", "alone"),
    [
        ("pytest", "tests/test_x.py", "pytest tests/test_x.py"),
        ("pytest -q tests", "tests/test_x.py", "pytest -q tests/test_x.py"),
        ("uv run pytest -c tests/p.ini tests/", "tests/test_x.py", "uv run pytest -c tests/p.ini tests/test_x.py"),
        ("python3 -m pytest -x ./tests", "tests/a b/test_x.py", "python3 -m pytest -x 'tests/a b/test_x.py'"),
        ("python -m unittest discover -s tests", "tests/test_x.py", "python -m unittest tests/test_x.py"),
        ("node --test tests", "tests/x.test.js", "node --test tests/x.test.js"),
        ("npx vitest run", "tests/x.test.ts", "npx vitest run tests/x.test.ts"),
        ("go test ./...", "cart/exam_test.go", "go test -count=1 ./cart -run '^(TestX)$'"),
        ("go test ./...", "exam_test.go", "go test -count=1 ./ -run '^(TestX)$'"),
        ("cargo test --all", "tests/exam.rs", "cargo test --test exam"),
        ("make test", "tests/test_x.py", ""),
        ("pytest && ruff check", "tests/test_x.py", ""),
    ],
)
def test_a_check_runs_one_file_alone(command: str, file: str, alone: str) -> None:
    finding = Finding(file, ("TestX",), command, "")
    assert focused(command, finding, {"tests", "tests/p.ini", "cart"}) == alone


def test_a_story_says_what_failed() -> None:
    story = story_for(
        Finding("tests/test_a.py", ("tests/test_a.py::test_x",), "pytest", "E  1 == 2\n# end"), "pytest a"
    )
    assert story.title == "Exam: make test_x pass"
    assert story.verify == ("pytest a",)
    assert story.criteria == ("tests/test_a.py::test_x passes",)
    assert "1 end-to-end test in tests/test_a.py fails" in story.description
    assert "\n| E  1 == 2\n| # end" in story.description


PYTHON = b'''
def add(a: int, *, b: int = 2) -> int:
    """Add two numbers."""
    secret = 1
    return a + b

def _hidden(): ...

class Cart(Base):
    total: int
    def put(self, item): ...
    def _sum(self): ...
'''


def test_the_interface_is_names_and_signatures_only() -> None:
    shown = interface(
        {
            "shop.py": PYTHON,
            "src/lib.rs": b"pub fn total(items: &[Item]) -> u32 {\n    inner()\n}\nfn inner() {}\n",
            "cart/cart.go": b"func Total(x int) int {\n\treturn inner(x)\n}\nfunc inner(x int) int { return x }\n",
            "broken.py": b"def (",
        },
        10_000,
    )
    assert shown.splitlines() == [
        "shop.py:",
        "    def add(a: int, *, b: int=2) -> int # Add two numbers.",
        "    class Cart(Base)",
        "        total: int",
        "        def put(self, item)",
        "cart/cart.go:",
        "    func Total(x int) int",
        "src/lib.rs:",
        "    pub fn total(items: &[Item]) -> u32",
    ]


def test_a_long_interface_says_what_is_left_out() -> None:
    files = {f"m{number}.py": b"def f(): ...\n" for number in range(9)}
    assert interface(files, 60).endswith("more files are left out)")
