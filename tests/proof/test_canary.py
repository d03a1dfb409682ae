"""A planted failing test, in real runners: healthy ones report it, manipulated ones do not."""

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
from ralph.proof.witness import is_caught, planted

FUNCTION = "import app\n\ndef test_one():\n    assert app.one() == 1\n"
CASE = """\
import unittest
import app

class TestApp(unittest.TestCase):
    def test_one(self):
        self.assertEqual(app.one(), 1)

if __name__ == "__main__":
    unittest.main()
"""
APP = "def one():\n    return 1\n"
NODE = "const test = require('node:test');\nconst app = require('./app.js');\ntest('one', () => {});\n"
NODE_MODULE = "import { it, describe } from 'node:test';\ndescribe('app', () => {\n  it('is one', () => {});\n});\n"
CARGO = {
    "Cargo.toml": '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": "pub fn one() -> i32 { 1 }\n",
    "tests/one.rs": "#[test]\nfn is_one() {\n    assert_eq!(app::one(), 1);\n}\n",
}
UNIT_CARGO = {
    "Cargo.toml": CARGO["Cargo.toml"],
    "src/lib.rs": "pub fn one() -> i32 { 1 }\n\n#[cfg(test)]\nmod tests {\n    #[test]\n    fn is_one() {}\n}\n",
}
GO = {
    "go.mod": "module example.com/app\n\ngo 1.18\n",
    "app.go": "package app\n\nfunc One() int { return 1 }\n",
    "app_test.go": 'package app\n\nimport "testing"\n\nfunc TestOne(t *testing.T) { if One() != 1 { t.Fatal() } }',
}
PYTEST = f"{quote(sys.executable)} -m pytest -q -p no:cacheprovider -p no:hypothesispytest"  # Hypothesis loads slowly
UNITTEST = f"{quote(sys.executable)} -m unittest"

HEALTHY = {
    "pytest, functions": ({"app.py": APP, "test_app.py": FUNCTION}, PYTEST),
    "pytest, one file": ({"app.py": APP, "test_app.py": FUNCTION}, f"{PYTEST} test_app.py"),
    "pytest, cases": ({"app.py": APP, "test_app.py": CASE}, PYTEST),
    "pytest, a plugin switched off": (
        {"app.py": APP, "test_app.py": FUNCTION},
        f"PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 {PYTEST}",
    ),
    "pytest, sys.path of its own": (
        {"lib/app.py": APP, "test_app.py": "import sys\nsys.path.insert(0, 'lib')\n" + FUNCTION},
        PYTEST,
    ),
    "unittest": ({"app.py": APP, "test_app.py": CASE}, UNITTEST),
    "unittest, a module": ({"app.py": APP, "test_app.py": CASE}, f"{UNITTEST} -v test_app"),
    "unittest, a script": ({"app.py": APP, "test_app.py": CASE}, f"{quote(sys.executable)} test_app.py"),
    "make": ({"app.py": APP, "test_app.py": FUNCTION, "Makefile": f"check:\n\t{PYTEST}\n"}, "make -s check"),
    "node": ({"app.js": "", "a.test.js": NODE}, "node --test"),
    "node, a file": ({"app.js": "", "a.test.js": NODE}, "node --test a.test.js"),
    "node, a script": ({"app.js": "", "a.test.js": NODE}, "node a.test.js"),
    "node, a module": ({"a.test.mjs": NODE_MODULE}, "node --test"),
    "node, asserts only": ({"a.test.js": "require('node:assert').equal(1, 1);\n"}, "node --test"),
    "cargo": (CARGO, "cargo test --offline"),
    "cargo, unit tests": (UNIT_CARGO, "cargo test --offline"),
    "go": (GO, "go test ./..."),
}

PASSES_ALL = """\
import pytest

@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    outcome.get_result().outcome = "passed"
"""
PATCHES = """\
def one():
    return 2

try:
    import _pytest.python
    _pytest.python.Function.runtest = lambda self: None
except ImportError:
    pass
import unittest.case
unittest.case.TestCase.assertEqual = lambda *rest: None
unittest.case.TestCase.assertFalse = lambda *rest: None
"""
EXITS = "import os\nos._exit(0)\n"

SILENCED = {
    "pytest, exit at import": ({"app.py": EXITS, "test_app.py": FUNCTION}, PYTEST),
    "pytest, exit in conftest": ({"app.py": APP, "conftest.py": EXITS, "test_app.py": FUNCTION}, PYTEST),
    "pytest, conftest passes all": ({"app.py": APP, "conftest.py": PASSES_ALL, "test_app.py": FUNCTION}, PYTEST),
    "pytest, patched by the package": ({"app.py": PATCHES, "test_app.py": FUNCTION}, PYTEST),
    "pytest, exit code": (
        {
            "app.py": APP,
            "conftest.py": "def pytest_sessionfinish(session):\n    session.exitstatus = 0\n",
            "test_app.py": FUNCTION,
        },
        PYTEST,
    ),
    "pytest, only known tests": (
        {"app.py": APP, "pytest.ini": "[pytest]\naddopts = -k one\n", "test_app.py": FUNCTION},
        PYTEST,
    ),
    "pytest || true": ({"app.py": APP, "test_app.py": FUNCTION}, f"{PYTEST} || true"),
    "make -i": ({"app.py": APP, "test_app.py": FUNCTION, "Makefile": f"check:\n\t{PYTEST}\n"}, "make -i -s check"),
    "unittest, exit at import": ({"app.py": EXITS, "test_app.py": CASE}, UNITTEST),
    "unittest, patched by the package": ({"app.py": PATCHES, "test_app.py": CASE}, UNITTEST),
    "unittest, load_tests": (
        {"app.py": APP, "test_app.py": CASE + "\ndef load_tests(*rest):\n    return unittest.TestSuite()\n"},
        UNITTEST,
    ),
    "node, exit at import": ({"app.js": "process.exit(0);", "a.test.js": NODE}, "node --test"),
    "node, pattern": ({"app.js": "", "a.test.js": NODE}, "node --test --test-name-pattern=one"),
    "node, patched by the package": (
        {"app.js": "process.on('exit', () => { process.exitCode = 0; process.reallyExit(0); });", "a.test.js": NODE},
        "node a.test.js",
    ),
    "go, main exits": (
        {
            **GO,
            "main_test.go": 'package app\nimport "os"\nimport "testing"\n\nfunc TestMain(m *testing.M) { os.Exit(0) }',
        },
        "go test ./...",
    ),
    "cargo || true": (CARGO, "cargo test --offline || true"),
}


def toolchain() -> dict[str, str]:
    """rustup looks for its toolchains in the home folder, which a test does not see."""
    home = Path(shutil.which("cargo") or "/").parent.parent.parent / ".rustup"
    return {"RUSTUP_HOME": str(home)} if home.is_dir() else {}


def check(project: Path, command: str, reports: Path) -> tuple[Tests, bool]:
    cheap = {
        "PYTHONDONTWRITEBYTECODE": "1",
        "GOCACHE": str(reports.parent.with_name("go-cache")),  # of all tests: the standard library is built once
    }
    env = report_environment(reports, {**os.environ, **cheap, **toolchain()})
    ended = subprocess.run(
        command,
        shell=True,
        check=False,
        cwd=project,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=120,
    )
    return read_tests(command, ended.stdout, reports, project), ended.returncode == 0


def verdict(tmp_path: Path, files: dict[str, str], command: str) -> bool:
    tool = next((name for name in ("cargo", "go", "node", "make") if command.startswith(f"{name} ")), "sh")
    if shutil.which(tool) is None:
        pytest.skip(f"not installed: {tool}")
    project = tmp_path / "project"
    for name, text in files.items():
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text)
    before, passed = check(project, command, tmp_path / "before")
    assert passed, "the check must pass without the planted test"
    is_test = ("test", "one.rs", "lib.rs")
    tests = {name: text.encode() for name, text in files.items() if any(word in name for word in is_test)}
    changed = planted({name: text for name, text in tests.items() if not name.startswith(("pytest", "main"))}, "random")
    assert changed
    for name, content in changed.items():
        (project / name).write_bytes(content)
    after, passed = check(project, command, tmp_path / "after")
    return is_caught(before, after, passed)


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_runner_reports_the_failure(tmp_path: Path, name: str) -> None:
    assert verdict(tmp_path, *HEALTHY[name])


@pytest.mark.parametrize("name", SILENCED)
def test_silenced_runner_does_not(tmp_path: Path, name: str) -> None:
    assert not verdict(tmp_path, *SILENCED[name])


def test_at_most_three_one_per_folder_and_language() -> None:
    tests = {f"{folder}/test_{name}.py": b"def test_x(): pass\n" for folder in "abcd" for name in "xy"}
    assert list(planted(tests, "1")) == ["a/test_x.py", "b/test_x.py", "c/test_x.py"]


def test_name_follows_from_the_random_word() -> None:
    tests = {"test_x.py": b"def test_x(): pass\n"}
    assert planted(tests, "1") == planted(tests, "1") != planted(tests, "2")


def test_nothing_is_planted_in_files_it_cannot_read() -> None:
    tests = {
        "test_x.py": b"def (",
        "x_test.go": b"package x\n",
        "lib.rs": b"fn x() {}",
        "a.rb": b"",
        "b.js": b"\xff\xfe",
    }
    assert planted(tests, "1") == {}


def test_nothing_is_planted_in_helpers() -> None:
    tests = {"tests/conftest.py": b"import pytest\n", "tests/helper.js": b"exports.x = 1;\n", "tests/__init__.py": b""}
    assert planted(tests, "1") == {}


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("test('a', () => {});", "test("),
        ("describe('a', () => { it('b', () => {}); });", "it("),
        ("import test from 'ava';\nit_is(1);\ntest.serial('a', t => {});", "test("),
        ("const t = require('tap');\nt.test('a', t => {\n  t.test('b', t => {});\n});", "t.test("),
        ("Deno.test('a', () => {});", "Deno.test("),
        ("test.each([1])('a', () => {});", "test("),
        ("require('assert').ok(1);", "throw "),
    ],
)
def test_failure_is_in_the_style_of_the_file(text: str, call: str) -> None:
    added = planted({"a.test.js": text.encode()}, "1")["a.test.js"].decode().removeprefix(text)
    assert added.strip().startswith(call)


def test_tape_gets_a_failed_assertion_because_an_exception_ends_its_run() -> None:
    text = b"var test = require('tape');\ntest('one', function (t) { t.end(); });\n"
    added = planted({"a.js": text}, "1")["a.js"].decode()
    assert "(t) => {\n  t.fail('" in added
    assert "t.end();\n});" in added


def test_uvu_gets_it_before_it_starts() -> None:
    text = b"import { test } from 'uvu';\ntest('one', () => {});\ntest.run();\n"
    assert planted({"a.js": text}, "1")["a.js"].endswith(b"});\ntest.run();\n")


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (Tests("jest", passed=3), Tests("jest", passed=3, failed=1), True),
        (Tests("jest", passed=3), Tests("jest", passed=4), False),  # red for another reason
        (Tests(), Tests(), True),
        (Tests("pytest", 1, names={"a": "passed"}), Tests("pytest", 1, 1, names={"a": "passed", "b": "failed"}), True),
        (Tests("pytest", 1, names={"a": "passed"}), Tests("pytest", 2, names={"a": "passed", "b": "passed"}), False),
    ],
)
def test_a_failing_check_needs_a_new_failure(before: Tests, after: Tests, expected: bool) -> None:
    assert is_caught(before, after, check_passed=False) is expected
    assert not is_caught(before, after, check_passed=True)


def test_a_planted_go_test_is_named_after_one_of_the_file() -> None:
    """Code can add `-test.run` to the arguments of its own test program, to omit the tests that fail."""
    text = planted({"app_test.go": GO["app_test.go"].encode()}, "r")["app_test.go"].decode()
    assert "\nfunc TestOneK" in text
