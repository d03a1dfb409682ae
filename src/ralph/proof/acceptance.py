"""Acceptance tests: whether new ones are usable, and what is reported when hidden ones fail. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from ralph.config.checks import ChosenCheck
from ralph.core.evidence import CheckResult
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.proof import Tests
from ralph.core.text import one_line, plural
from ralph.proof.files import is_collected
from ralph.proof.values import FEW, Ran, named

_BROKEN = lazy_pattern(
    r"\b(?:SyntaxError|IndentationError|TabError)\b|\bfixture '.*' not found|Unexpected token|syntax error"
    r"|error: expected |: expected (?:declaration|statement|operand|';')"
)
"""What runners print about a test file that is itself wrong."""
_MESSAGE = lazy_pattern(
    r"^E\s|^(?:FAILED|ERROR)\s|\b\w*(?:Error|Exception|Failure)\b|\b(?:expected|actual|received|got|want|panicked|"
    r"assert(?:ion)?|not equal|mismatch)\b|^\s*(?:left|right):|^\s*[+-]\s+\S",
    re.IGNORECASE,
)
"""Lines of a runner's output that say why a test failed."""
_MOST_LINES = 30
_LONGEST = 200
_SHORTEST = 6
"""Characters of a line of code that is looked for in the output."""


class Trial(Struct, frozen=True):
    """A check at the story's start, without and with the new tests."""

    check: ChosenCheck
    before: Tests
    ran: Ran


class Examined(Struct, frozen=True):
    tests: tuple[str, ...] = ()
    objections: tuple[str, ...] = ()


def examine(files: Mapping[str, bytes], trials: Sequence[Trial]) -> Examined:
    """Whether the tests run and fail: by name where the runner reports names, else by the result of the check."""
    collected = [path for path in files if is_collected(path)]
    if not collected:
        return Examined(objections=("no new test file was written: add one that the checks run",))
    wrong = [*broken(files, trials)]
    failing: list[str] = []
    for trial in trials:
        new = new_tests(trial)
        passing = [name for name, state in new.items() if state == "passed"]
        skipped = [name for name, state in new.items() if state == "skipped"]
        failing += [name for name, state in new.items() if state == "failed"]
        if passing:
            wrong.append(f"already {_pass(passing)} although the story is not implemented: {some(passing)}")
        if skipped:
            wrong.append(f"skipped instead of failing: {some(skipped)}")
        if not trial.ran.tests.names:
            failing += [path for path in collected if path not in failing] if turned_red(trial) else []
            if trial.before.runner and (count := trial.ran.tests.passed - trial.before.passed) > 0:
                wrong.append(f"{plural(count, 'test')} already {'passes' if count == 1 else 'pass'}")
    if not failing and not wrong:
        commands = ", ".join(named(trial.check) for trial in trials[:FEW])
        wrong.append(f"{commands} does not fail with {some(collected)}: write tests that it runs and that fail now")
    by_file = [name for name in failing if "::" in name or name in files]
    if failing and len(by_file) == len(failing):
        unseen = [path for path in collected if not any(path in name for name in failing)]
        wrong += [f"no check runs {some(unseen)}"] if unseen else []
    return Examined(tuple(dict.fromkeys(failing)), tuple(dict.fromkeys(wrong)))


def new_tests(trial: Trial) -> dict[str, str]:
    """The tests that were not there before, or that turned red."""
    before = trial.before.names
    return {
        name: state
        for name, state in trial.ran.tests.names.items()
        if name not in before or (before[name] == "passed" and state == "failed")
    }


def turned_red(trial: Trial) -> bool:
    fails_more = trial.ran.tests.failed > trial.before.failed
    return trial.ran.is_red and (fails_more or not trial.ran.result.failed_before)


def broken(files: Mapping[str, bytes], trials: Iterable[Trial]) -> Iterable[str]:
    """Errors of the tests themselves: they fail whatever the story does."""
    for path, data in files.items():
        if path.endswith(".py"):
            try:
                compile(data, path, "exec", dont_inherit=True)
            except (SyntaxError, ValueError) as error:
                yield f"{one_line(path, 80)} has an error of its own: {one_line(str(error), 200)}"
    for trial in trials:
        if turned_red(trial) and (found := _BROKEN.search(trial.ran.result.tail)):
            line = next(text for text in trial.ran.result.tail.splitlines() if found[0] in text)
            yield f"the tests have an error of their own: {one_line(line.strip(), 200)}"


def _pass(names: Sequence[str]) -> str:
    return "passes" if len(names) == 1 else "pass"


def some(names: Sequence[str]) -> str:
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return ", ".join(one_line(name, 100) for name in names[:FEW]) + more


def concealed(result: CheckResult, tests: Tests, files: Mapping[str, bytes]) -> CheckResult:
    """A failure of hidden tests as it is reported: names and messages, without a line of the tests' code."""
    code = {line.strip() for data in files.values() for line in data.decode("utf-8", "replace").splitlines()}
    code = {line for line in code if len(line) >= _SHORTEST}
    failed = [name for name, state in tests.names.items() if state == "failed"]
    lines = [
        line.strip()[:_LONGEST]
        for line in result.tail.splitlines()
        if _MESSAGE.search(line) and not any(each in line for each in code)
    ]
    heading = (
        f"{plural(len(failed), 'test')} failed with the hidden acceptance tests:"
        if failed
        else ("fails with the hidden acceptance tests:")
    )
    listed = [f"- {one_line(name, _LONGEST)}" for name in failed[:_MOST_LINES]]
    tail = "\n".join([heading, *listed, *dict.fromkeys(lines[-_MOST_LINES:])])
    return msgspec.structs.replace(result, tail=tail, output="")


def not_run(tests: Sequence[str], files: Iterable[str], passed: Mapping[str, Tests]) -> tuple[str, ...]:
    """Acceptance tests that did not run with the candidate, or were skipped."""
    names = {name: state for each in passed.values() for name, state in each.names.items()}
    if not names:
        return ()
    by_file = any("::" in name for name in names)
    wrong = []
    for test in tests:
        is_file = any(path in test for path in files) and "::" not in test
        if is_file and not by_file:  # this runner names a file only if it fails to load
            continue
        states = [state for name, state in names.items() if name == test or name.startswith(f"{test}::")]
        if not states or "skipped" in states:
            wrong.append(test)
    return (f"acceptance tests did not run: {some(wrong)}",) if wrong else ()
