"""Test results from real runs of the runners that are installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from shlex import quote

import pytest

from ralph.core.proof import Tests
from ralph.proof.results import read_tests, report_environment

MANY = """\
import unittest
import pytest

@pytest.fixture
def broken():
    raise RuntimeError

@pytest.fixture
def late():
    yield
    raise RuntimeError

def test_ok(): print("===== 99 passed in 0.01s =====")
def test_bad(): assert 0
def test_error(broken): pass
def test_teardown(late): pass
@pytest.mark.skip
def test_skip(): pass
@pytest.mark.xfail
def test_xfail(): assert 0
@pytest.mark.xfail
def test_xpass(): pass
@pytest.mark.parametrize("value", [1, "x y", "a::b"])
def test_each(value): pass

class TestCase(unittest.TestCase):
    def test_method(self): pass
"""
OUTCOMES = {
    "tests/test_many.py::test_ok": "passed",
    "tests/test_many.py::test_bad": "failed",
    "tests/test_many.py::test_error": "failed",
    "tests/test_many.py::test_teardown": "failed",
    "tests/test_many.py::test_skip": "skipped",
    "tests/test_many.py::test_xfail": "skipped",
    "tests/test_many.py::test_xpass": "passed",
    "tests/test_many.py::test_each[1]": "passed",
    "tests/test_many.py::test_each[x y]": "passed",
    "tests/test_many.py::test_each[a::b]": "passed",
    "tests/test_many.py::TestCase::test_method": "passed",
}
PYTEST = f"{quote(sys.executable)} -m pytest -p no:hypothesispytest"  # Hypothesis loads slowly
PASSING = {"tests/test_a.py": "def test_a(): pass\n", "pytest.ini": "[pytest]\n"}


class Project:
    def __init__(self, folder: Path) -> None:
        self.root = folder / "project"
        self.reports = folder / "reports"
        self.output = b""
        self.code = -1

    def write(self, files: dict[str, str]) -> None:
        for name, text in files.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def run(self, command: str, **variables: str) -> Tests:
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        ended = subprocess.run(
            command,
            shell=True,
            check=False,
            cwd=self.root,
            env=report_environment(self.reports, {**env, "PYTHONDONTWRITEBYTECODE": "1", **variables}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=120,
        )
        self.output, self.code = ended.stdout, ended.returncode
        return read_tests(command, self.output, self.reports, self.root)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.mark.parametrize("options", ["", "-q", "-qq", "-v", "-s", "-n 2", "-p no:terminal", "-W error", "--tb=no -rA"])
def test_pytest_by_name(project: Project, options: str) -> None:
    if "-n" in options:
        pytest.importorskip("xdist")
    project.write({"tests/test_many.py": MANY, "pytest.ini": "[pytest]\n"})
    tests = project.run(f"{PYTEST} {options}")
    assert tests.names == OUTCOMES
    assert (tests.runner, tests.passed, tests.failed, tests.skipped) == ("pytest", 6, 3, 2)


def test_pytest_in_make_keeps_names(project: Project) -> None:
    project.write({"tests/test_many.py": MANY, "Makefile": f"check:\n\t{PYTEST} -q -s\n", "pytest.ini": "[pytest]\n"})
    assert project.run("make check").names == OUTCOMES


@pytest.mark.parametrize(
    "command",
    [
        f"PYTHONPATH=src {PYTEST}",
        f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {PYTEST} -q",
        f"{quote(sys.executable)} -E -m pytest",
        f"{quote(sys.executable)} -I -m pytest -v",
        f"{PYTEST} -p no:results_by_name",
    ],
)
def test_pytest_without_the_report_passes_and_is_counted(project: Project, command: str) -> None:
    project.write(PASSING)
    tests = project.run(command)
    assert project.code == 0
    assert (tests.runner, tests.passed) == ("pytest", 1)


@pytest.mark.parametrize("options", ["-p no:junitxml", "--strict-config --strict-markers -W error", "-p no:legacypath"])
def test_report_turns_no_passing_suite_red(project: Project, options: str) -> None:
    project.write(PASSING)
    assert project.run(f"{PYTEST} {options}").names == {"tests/test_a.py::test_a": "passed"}
    assert project.code == 0


def test_several_runs_of_pytest_add_up(project: Project) -> None:
    project.write({**PASSING, "tests/test_b.py": "def test_b(): pass\n"})
    tests = project.run(f"{PYTEST} tests/test_a.py && {PYTEST} tests/test_b.py")
    assert tests.names == {"tests/test_a.py::test_a": "passed", "tests/test_b.py::test_b": "passed"}
    assert tests.passed == 2


def test_names_are_relative_to_the_project(project: Project) -> None:
    project.write({f"{part}/{name}": text for part in ("one", "two") for name, text in PASSING.items()})
    tests = project.run(f"(cd one && {PYTEST}); (cd two && {PYTEST})")
    assert set(tests.names) == {"one/tests/test_a.py::test_a", "two/tests/test_a.py::test_a"}
    assert set(read_tests("", b"", project.reports).names) == set(tests.names)


def test_pytest_started_by_a_test_is_not_counted(project: Project) -> None:
    nested = (
        "import subprocess, sys\npytest_plugins = 'pytester'\n"
        "def test_process():\n    subprocess.run([sys.executable, '-m', 'pytest', '-q', 'inner'])\n"
        "def test_inline(pytester):\n    pytester.makepyfile('def test_x(): assert 0')\n"
        "    assert pytester.inline_run().ret == 1\n"
    )
    project.write(
        {"test_outer.py": nested, "inner/test_inner.py": "def test_bad(): assert 0\n", "pytest.ini": "[pytest]\n"}
    )
    tests = project.run(f"{PYTEST} -s test_outer.py")
    assert tests.names == {"test_outer.py::test_process": "passed", "test_outer.py::test_inline": "passed"}


def test_a_module_that_does_not_load_is_a_failure(project: Project) -> None:
    project.write({**PASSING, "tests/test_b.py": "import nothing_like_this\n"})
    assert project.run(PYTEST).names == {"tests/test_b.py": "failed"}


def test_no_tests_is_a_recognised_run(project: Project) -> None:
    project.write({"pytest.ini": "[pytest]\n"})
    assert project.run(f"{PYTEST} || true") == Tests("pytest")


def test_exit_at_import_is_a_run_without_tests(project: Project) -> None:
    project.write({**PASSING, "conftest.py": "import os\nos._exit(0)\n"})
    assert project.run(PYTEST) == Tests("pytest")
    assert project.code == 0


def test_exit_in_a_test_is_a_failure(project: Project) -> None:
    project.write({**PASSING, "tests/test_b.py": "import os\ndef test_b(): os._exit(0)\n"})
    tests = project.run(PYTEST)
    assert (project.code, tests.passed, tests.failed) == (0, 1, 1)


def test_exit_after_the_session_is_none(project: Project) -> None:
    project.write({**PASSING, "conftest.py": "import os\ndef pytest_unconfigure(): os._exit(0)\n"})
    tests = project.run(PYTEST)
    assert (tests.passed, tests.failed) == (1, 0)


def test_printed_summaries_of_other_runners_do_not_count_for_pytest(project: Project) -> None:
    project.write({**PASSING, "tests/test_b.py": "def test_b(): print('Tests:       9 passed, 9 total')\n"})
    tests = project.run(f"{PYTEST} -s")
    assert (tests.runner, tests.passed) == ("pytest", 2)


def test_hostile_report_files(project: Project) -> None:
    project.write(PASSING)
    assert project.run(PYTEST).passed == 1
    os.mkfifo(project.reports / "pytest-1-0.jsonl")
    (project.reports / "pytest-2-0.jsonl").symlink_to("/dev/zero")
    (project.reports / "pytest-3-0.jsonl").mkdir()
    junk = (
        b'\xff\n{"name": 3}\n[]\n{"name": "x", "outcome": "great"}\n'
        + b"[" * 5000
        + b'\n{"root": "\\u0000", "end": 0}\n'
    )
    (project.reports / "pytest-4-0.jsonl").write_bytes(junk)
    assert read_tests(PYTEST, b"", project.reports, project.root).passed == 1


CASE = "import unittest\nclass TestA(unittest.TestCase):\n    def test_a(self): pass\n    def test_b(self): {}\n"


@pytest.mark.parametrize(
    ("body", "outcome"), [("pass", "passed"), ("self.fail()", "failed"), ("self.skipTest('x')", "skipped")]
)
def test_unittest(project: Project, body: str, outcome: str) -> None:
    project.write({"test_a.py": CASE.format(body)})
    tests = project.run(f"{quote(sys.executable)} -m unittest")
    assert (tests.runner, tests.total, tests.names) == ("unittest", 2, {})
    tests = project.run(f"{quote(sys.executable)} -m unittest -v")
    assert tests.names == {"test_a.TestA.test_a": "passed", "test_a.TestA.test_b": outcome}


@pytest.mark.needs("node")
def test_node(project: Project) -> None:
    text = "const test = require('node:test');\ntest('a', () => {});\ntest('b', () => { throw new Error('x'); });\n"
    project.write({"a.test.js": text, "b.test.js": "process.exit(0);\n"})
    tests = project.run("node --test")
    assert (tests.runner, tests.names) == ("node", {"a": "passed", "b": "failed"})
    assert (tests.passed, tests.failed) == (1, 1)  # a file without tests is no test


@pytest.mark.needs("go")
def test_go(project: Project, tmp_path: Path) -> None:
    text = 'package a\nimport "testing"\nfunc TestA(t *testing.T) {}\nfunc TestB(t *testing.T) { t.Skip() }\n'
    project.write({"go.mod": "module example.com/a\n\ngo 1.18\n", "a_test.go": text})
    tests = project.run("go vet ./... && go test $(go list ./...)", GOCACHE=str(tmp_path.with_name("go-cache")))
    assert tests.names == {"example.com/a.TestA": "passed", "example.com/a.TestB": "skipped"}


@pytest.mark.needs("cargo")
def test_cargo(project: Project) -> None:
    home = Path(shutil.which("cargo") or "/").parent.parent.parent / ".rustup"
    project.write(
        {
            "Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n',
            "src/lib.rs": "#[test]\nfn a() {}\n#[test]\n#[ignore]\nfn b() {}\n",
            "tests/it.rs": "#[test]\nfn c() { panic!() }\n",
        }
    )
    tests = project.run("cargo test --offline", **({"RUSTUP_HOME": str(home)} if home.is_dir() else {}))
    assert tests.names == {"app::a": "passed", "app::b": "skipped", "it::c": "failed"}


def test_environment_keeps_what_was_there(tmp_path: Path) -> None:
    env = report_environment(tmp_path / "r", {"PYTHONPATH": "/a:/b", "GOFLAGS": "-mod=mod", "HOME": "/h"})
    assert env == {"PYTHONPATH": f"/a:/b:{tmp_path / 'r'}", "GOFLAGS": "-mod=mod -test.v", "HOME": "/h"}


@pytest.mark.parametrize("size", [1 << 20, 8 << 20])
def test_huge_output_is_read_in_bounded_time(size: int, tmp_path: Path) -> None:
    output = (b"=" * 400 + b" 1 passed 2 failed (((( \n") * (size // 425) + b"Tests:       2 passed, 2 total\n"
    assert read_tests("npm test", output, tmp_path).passed == 2
    assert read_tests("npm test", b" " * size + b"\n" + b"1 passed, " * (size // 10), tmp_path) == Tests()
