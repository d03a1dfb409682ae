"""Check the clone: lint, format, types, layers, tests. Every step runs; the exit code says whether one failed."""

from __future__ import annotations

import compileall
import contextlib
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from fetch_clients import CLIENTS, fetch

ROOT = Path(__file__).resolve().parent.parent
BIN = f"{ROOT}/.venv/bin"
CLIENT, OTHER_CLIENTS, RAY = "pytest.mark.client", "support.other_clients", 'needs("ray")'
BROWSER, SITE, WHEELS = 'needs("playwright"', 'needs("mkdocs"', 'needs("wheels"'
PROJECTS = 'needs("projects"'
"""What a file has that tests the Claude client, others, a cluster, a page in a browser, the site, installing, or
projects of others."""
SLOW_TESTS = ROOT / "tests" / "slow_tests.txt"

USAGE = """\
usage: scripts/test [--fast | --everything] [--coverage] [--only-tests | --only-lint] [PYTEST ARGUMENTS]
       scripts/test --agents [NAME …]

Sets up .venv when needed, then runs ruff (lint and format), mypy, import-linter and pytest. Tests of programs that are
not installed here are skipped, with one line each at the end, and so are those in tests/slow_tests.txt.

  --fast        for the inner loop, under a minute: the linters, then the tests of the files that changed since main,
                a core set, and up to 12 files of tests that use what changed; slow tests are left out, and so is each
                group that could not start in time
  --everything  all tests: fail instead of skipping where a program is missing, and try more random examples
  --coverage    measure which lines of src/ the tests reach; fail below the floor in pyproject.toml
  --agents      fetch the real clients of these agents, or of all, and run the conformance suite on them, and no
                other test; it takes about 4 minutes for each
  --only-tests  skip the linters
  --only-lint   skip the tests
  -h, --help    print this; `scripts/test --only-tests -- --help` prints pytest's

Everything else goes to pytest. PYTHON=/path/to/python3 chooses the interpreter of .venv.

examples:
  scripts/test
  scripts/test --fast
  scripts/test --everything
  scripts/test --coverage
  scripts/test --only-tests -k completion -x
  scripts/test --only-tests tests/cli
  scripts/test --agents codex gemini
"""

NO_TESTS = 5
"""Pytest's exit code when all tests of the files were left out."""
CONFORMANCE = "tests/agents/conformance"

LINT = (
    ("ruff: lint", [f"{BIN}/ruff", "check"]),
    ("ruff: format", [f"{BIN}/ruff", "format", "--check"]),
    ("mypy: types", [f"{BIN}/mypy"]),
    ("import-linter: layers", [f"{BIN}/lint-imports", "--no-logo"]),
)


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--agents"] and not {"-h", "--help"} & set(arguments):
        return test_agents(arguments[1:])
    own, for_pytest = split(arguments)
    if own & {"-h", "--help"}:
        print(USAGE, end="")
        return 0
    if own >= {"--fast", "--everything"}:
        print("error: --fast and --everything exclude each other", file=sys.stderr)
        return 64
    if own >= {"--only-tests", "--only-lint"}:
        print("error: --only-tests and --only-lint exclude each other", file=sys.stderr)
        return 64
    if "--fast" in own:
        return test_fast([] if "--only-tests" in own else list(LINT), for_pytest)
    steps = [] if "--only-tests" in own else list(LINT)
    if "--only-lint" not in own:
        measured = ["--cov", "--cov-report=term:skip-covered"] if "--coverage" in own else []
        pytest = [f"{BIN}/python", "-m", "pytest", *processes(for_pytest), *measured, *for_pytest]
        steps.append(("pytest: tests", pytest))

    is_quick = "--everything" not in own and not for_pytest
    if is_quick:
        os.environ["TEST_QUICK"] = "1"
    if "--everything" in own:
        os.environ["TEST_EVERYTHING"] = "1"
        os.environ.setdefault("TEST_EXAMPLES", "100")
    started = time.monotonic()
    with environment_in_use(), scratch_folder() as scratch:
        if "--only-lint" not in own and names_test_with(CLIENT, for_pytest):
            subprocess.run([f"{BIN}/python", str(ROOT / "scripts" / "fetch_client.py")], check=False)
        if "--only-lint" not in own and not is_quick and names_test_with(OTHER_CLIENTS, for_pytest):
            subprocess.run([f"{BIN}/python", str(ROOT / "scripts" / "fetch_clients.py")], check=False)
        if "--only-lint" not in own and "--everything" in own and names_test_with(RAY, for_pytest):
            subprocess.run([f"{BIN}/python", str(ROOT / "scripts" / "fetch_ray.py")], check=False)
        if "--only-lint" not in own and "--everything" in own and names_test_with(BROWSER, for_pytest):
            subprocess.run([f"{BIN}/python", str(ROOT / "scripts" / "fetch_browser.py")], check=False)
        if "--only-lint" not in own and "--everything" in own and names_test_with(SITE, for_pytest):
            subprocess.run([f"{BIN}/python", str(ROOT / "scripts" / "site"), "--install"], check=False)
        if "--only-lint" not in own and "--everything" in own and names_test_with(WHEELS, for_pytest):
            subprocess.run([f"{BIN}/python", str(ROOT / "scripts" / "fetch_wheels.py")], check=False)
        if "--only-lint" not in own and "--everything" in own and names_test_with(PROJECTS, for_pytest):
            subprocess.run([f"{BIN}/python", str(ROOT / "scripts" / "fetch_projects.py"), "shortuuid"], check=False)
        if "--only-lint" not in own:
            compile_sources()
        results = [(title, run(title, command, scratch)) for title, command in steps]
    if is_quick and "--only-lint" not in own:
        slow = len(SLOW_TESTS.read_text().split())
        print(f"\nnot tested: {slow} tests that take seconds each; `scripts/test --everything` runs them")
    failed = [title for title, code in results if code != 0]
    took = time.monotonic() - started
    print(f"\n{'FAILED: ' + ', '.join(failed) if failed else 'all passed'} ({took:.1f} s)", flush=True)
    return 1 if failed else 0


def test_fast(steps: list[tuple[str, list[str]]], for_pytest: list[str]) -> int:
    """The linters and the tests that say most about what changed."""
    from fast_tests import LAST_START, changed_files, command, groups

    started, failed, left = time.monotonic(), list[str](), list[str]()
    os.environ["TEST_QUICK"] = "1"
    with environment_in_use(), scratch_folder() as scratch:
        failed += [title for title, step in steps if run(title, step, scratch)]
        compile_sources()
        begun = time.monotonic()
        for name, files in groups(changed_files()):
            if files and time.monotonic() - begun > LAST_START:
                left += files
            elif files and run(f"pytest: {name}", command(files, for_pytest), scratch) not in (0, NO_TESTS):
                failed.append(name)
    if left:
        print(f"\nnot tested, for lack of time: {', '.join(left)}")
    print(f"\n{'FAILED: ' + ', '.join(failed) if failed else 'passed'} ({time.monotonic() - started:.1f} s);", end=" ")
    print("`scripts/test` runs the others")
    return 1 if failed else 0


def test_agents(names: list[str]) -> int:
    """The conformance suite on real clients."""
    if wrong := [name for name in names if name not in CLIENTS]:
        print(f"error: unknown agent {wrong[0]}; one of {', '.join(CLIENTS)}", file=sys.stderr)
        return 64
    started = time.monotonic()
    with environment_in_use(), scratch_folder() as scratch:
        wanted = names or list(CLIENTS)
        missing = [name for name in wanted if fetch(name)]
        os.environ["TEST_AGENTS"] = " ".join(name for name in wanted if name not in missing)
        chosen = ["-k", "test_other_clients or recorded or vendor"]
        pytest = [f"{BIN}/python", "-m", "pytest", *processes([]), CONFORMANCE, *chosen]
        code = run("pytest: the conformance suite", pytest, scratch)
    if missing:
        print(f"\nnot tested, because they could not be fetched: {', '.join(missing)}")
    print(f"\n{'FAILED' if code else 'all passed'} ({time.monotonic() - started:.1f} s)", flush=True)
    return 1 if code else 0


def split(arguments: list[str]) -> tuple[set[str], list[str]]:
    """Split our options from those of pytest. Ours end at `--`."""
    own: set[str] = set()
    rest: list[str] = []
    for at, argument in enumerate(arguments):
        if argument == "--":
            return own, rest + arguments[at + 1 :]
        if argument in ("-h", "--help", "--fast", "--everything", "--coverage", "--only-tests", "--only-lint"):
            own.add(argument)
        else:
            rest.append(argument)
    return own, rest


def names_test_with(text: str, for_pytest: list[str]) -> bool:
    """Whether the arguments may select a test whose file has this text: no path is named, or one with such a test."""
    named = [argument.partition("::")[0] for argument in for_pytest if not argument.startswith("-")]
    paths = [path for name in named if (path := ROOT / name).exists()]
    files = [file for path in paths for file in (path.rglob("*.py") if path.is_dir() else [path])]
    return not paths or any(text in file.read_text() for file in files)


def processes(for_pytest: list[str]) -> list[str]:
    """A worker per core and one more, because tests wait; none if the arguments choose or need a terminal."""
    own = ("-n", "--numprocesses", "--dist", "--pdb", "--trace", "-h", "--help", "--collect-only", "--co")
    if any(argument.startswith(own) for argument in for_pytest):
        return []
    return ["-n", str(min((os.cpu_count() or 1) + 1, 4)), "--dist", "worksteal"]


def compile_sources() -> None:
    """Tests start Ralph thousands of times. Where PYTHONDONTWRITEBYTECODE is set, each would compile all of it."""
    for folder in ("src", "tests/support"):
        compileall.compile_dir(ROOT / folder, quiet=2)


def run(title: str, command: list[str], scratch: Path) -> int:
    print(f"\n── {title} {'─' * (76 - len(title))}", flush=True)
    started = time.monotonic()
    code = subprocess.run(command, check=False, cwd=ROOT, env={**os.environ, "TMPDIR": str(scratch)}).returncode
    print(f"{'ok' if code == 0 else f'failed with exit code {code}'} ({time.monotonic() - started:.1f} s)", flush=True)
    return code


@contextlib.contextmanager
def environment_in_use() -> Iterator[None]:
    """Keep another scripts/test from replacing .venv while this one uses it (see make_venv.py)."""
    descriptor = os.open(ROOT, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def scratch_folder() -> Iterator[Path]:
    """All temporary files of all steps. Not inside the clone: there git would take every folder for part of it."""
    folder = Path(tempfile.mkdtemp(prefix="ralph-test-"))
    try:
        yield folder
    finally:
        for parent, folders, _ in os.walk(folder):  # a test may have taken the permissions of a folder away
            for name in folders:
                if not (path := Path(parent, name)).is_symlink():
                    path.chmod(0o700)
        shutil.rmtree(folder, ignore_errors=True)


def _stop(number: int, _: object) -> None:
    raise SystemExit(128 + number)  # not the default action, so that the scratch folder is removed


if __name__ == "__main__":
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _stop)
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
