"""`ralph init` runs each detected check once: it passes, fails, runs no tests, cannot run, or takes too long."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from ralph.core.evidence import CheckResult
from ralph.core.text import one_line
from ralph.host.process.signals import StopSignal
from ralph.proof.check_run import run_check
from ralph.proof.check_trouble import why_not_runnable
from ralph.proof.results import read_text
from ralph.setup.toolchain import ProposedCheck

Outcome = Literal["passes", "fails", "empty", "missing", "timeout"]

_NO_MODULE = re.compile(r"No module named '?([\w.]+)'?")
_NO_PACKAGE = re.compile(r"Cannot find (?:module|package) '([^'./][^']*)'")
_SOME_PASSED = re.compile(r"\b[1-9]\d* passed\b|^Tests:.*\b[1-9]\d* passed|^# pass [1-9]|^ok \d+", re.MULTILINE)
_NONE_RAN = re.compile(
    r"^Ran 0 tests in |^NO TESTS RAN|^(?:=+ )?no tests (?:ran|collected)|^(?:# |ℹ )tests 0$|^ +0 passing|"
    r"^No tests? (?:files )?found",
    re.MULTILINE,
)
"""Of unittest, pytest, node --test, mocha, jest and vitest. Go and cargo print such a line for each package."""
_UNITTEST = re.compile(r"(\S*python[\d.]*|\S+ run python) -m unittest\b")
_PYTEST = re.compile(r"((?:\S+ run )|(?:\S+/bin/))?pytest(?=\s|$)")
_MANAGED = re.compile(r"(uv|poetry|pdm|pipenv) run (.+)")


class Trial(Struct, frozen=True):
    """What happened when a proposed check was run once."""

    check: ProposedCheck
    outcome: Outcome
    seconds: float = 0.0
    reason: str = ""
    """Why it cannot run, or the last line of a failure."""
    fix: str = ""
    """How to make it run; only for a check that cannot run."""
    code: int = 0
    """Of a check that ran no tests: some runners exit with 0."""


def try_check(
    check: ProposedCheck, root: Path, env: Mapping[str, str], timeout: float, stop: StopSignal | None = None
) -> Trial:
    """Run one check; if it cannot run or runs no tests, try another command for the same tests."""
    trial = _run(check, root, env, timeout, stop)
    for command in _other_commands(trial) if trial.outcome in ("missing", "empty") else ():
        other = _run(msgspec.structs.replace(check, command=command), root, env, timeout, stop)
        if other.outcome in ("passes", "fails"):
            return other
    return trial


def _run(check: ProposedCheck, root: Path, env: Mapping[str, str], timeout: float, stop: StopSignal | None) -> Trial:
    result = run_check(check.name, check.command, root=root, env=env, timeout=timeout, cwd=check.cwd, stop=stop)
    trial = classify(check, result)
    # It is written into a file that is committed: no paths of this machine.
    return msgspec.structs.replace(trial, reason=trial.reason.replace(f"{root}/", ""))


def classify(check: ProposedCheck, result: CheckResult) -> Trial:
    if _NONE_RAN.search(result.tail) and not any(tests.total for tests in read_text(result.tail.encode(), "")):
        return Trial(check, "empty", result.seconds, "no tests ran", code=result.code or 0)
    if result.passed:
        return Trial(check, "passes", result.seconds)
    if result.timed_out:
        return Trial(check, "timeout", result.seconds, f"no result after {result.seconds:.0f} s")
    if trouble := why_not_runnable(check.command, result.code, result.tail):
        return Trial(check, "missing", result.seconds, trouble.reason, trouble.fix)
    if not _SOME_PASSED.search(result.tail):
        if module := _NO_MODULE.search(result.tail):
            reason = f"the Python module {module[1]} is not installed"
            return Trial(check, "missing", result.seconds, reason, f"run `{_python_install(check.command)}`")
        if package := _NO_PACKAGE.search(result.tail):
            return Trial(check, "missing", result.seconds, f"{package[1]} is not installed", "run `npm install`")
    last = next((line for line in reversed(result.tail.splitlines()) if line.strip()), f"exit code {result.code}")
    return Trial(check, "fails", result.seconds, one_line(last.strip("= "), 100))


def _python_install(command: str) -> str:
    words = command.split()
    if words[1:2] == ["run"] and words[0] in ("uv", "poetry", "pdm", "pipenv"):
        return "uv sync" if words[0] == "uv" else f"{words[0]} install"
    folder = words[0].rpartition("/")[0] if words else ""
    return f"{folder}/python -m pip install -e ." if folder.endswith("/bin") else "pip install -e ."


def _other_commands(trial: Trial) -> tuple[str, ...]:
    """A project may name Poetry only to build its package: if it is not installed, its tests may run without it."""
    command = trial.check.command
    managed = _MANAGED.fullmatch(command)
    if managed and trial.reason == f"{managed[1]} is not installed":
        alone = f"python3{managed[2][6:]}" if managed[2].startswith("python ") else managed[2]
        return (alone, *_other_spellings(alone))
    return _other_spellings(command)


def _other_spellings(command: str) -> tuple[str, ...]:
    """If `pytest` cannot import the project: `python -m pytest` puts the project's folder on the import path.
    If `tox` or `nox` is not installed: the tests they run are mostly pytest tests. unittest does not run those."""
    if command in ("tox", "nox"):
        return ("pytest", "python3 -m pytest")
    if match := _UNITTEST.match(command):
        return (f"{match[1]} -m pytest",)
    if not (match := _PYTEST.match(command)):
        return ()
    prefix = match[1] or ""
    python = f"{prefix}python" if prefix else "python3"
    return (f"{python} -m pytest{command[match.end() :]}",)
