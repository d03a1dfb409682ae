"""Which tests a check ran, and how they ended: counts from summaries, names where every test has a line.

A report that a runner wrote itself is preferred to its output, which a program under test can imitate. Neither resists
code that wants to deceive: that is what the planted failing test (`canary`) is for. Reading never raises.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.proof import Tests
from ralph.proof import results_pytest
from ralph.proof.results_names import Names
from ralph.results.screen import ESCAPES

_MAX_BYTES = 8 << 20
_MAX_LINE = 1000
_MAX_NUMBER = 9
_ESCAPE = lazy_pattern(ESCAPES + "|\r")
_PREFIX = lazy_pattern(r"(?:(?:[\w@.\-]+/)+[\w@.\-]+ [\w\-:]+|[\w@./\-]+:[\w\-]+): ")
"""pnpm and turbo put the package before each line: `packages/a test: `, `web:test: `."""
_ONLY_PYTEST = lazy_pattern(
    r"(?:\w+=\S* +)*(?:(?:uv|poetry|pdm|hatch) run +)?(?:\S*python[\d.]* +-m +)?\S*(?:pytest|py\.test)(?: [^;&|]*)?"
)

_WORDS = {
    "passed": "pass passed passing ok xpassed flaky",
    "failed": "uncaught unhandled fail failed failing failure failures error errors cancelled "
    "unexpected_successes invalid timed_out",
    "skipped": "skip skips skipped pending pendings todo xfailed ignored incomplete expected_failures known_failure "
    "known_failures excluded notrun omissions disabled",
    "total": "total tests test examples example runs tests_run out_of",
}
_OUTCOMES = {word: outcome for outcome, words in _WORDS.items() for word in words.split()}
"""The words of the summaries → `passed`, `failed`, `skipped` or `total`; any other word counts nothing."""
_NUMBER_FIRST = lazy_pattern(r"(?P<number>\d+) (?:tests? (?=passed|failed|skipped|todo))?(?P<word>(?:known )?[a-z]+)")
_WORD_FIRST = lazy_pattern(r"(?P<word>[A-Za-z]+(?: [a-z]+)?)\b[ ]{0,4}[:=\]]?[ ]{0,8}(?P<number>\d+)")

_SUMMARIES = r"""
pytest (?:=+ )?(\d+ (?:passed|failed|skipped|deselected|xfailed|xpassed|error|warning|rerun|subtest).*) in \d
pytest (?:=+ )?no tests (?:ran|collected)()
unittest Ran (\d+ tests?) in \d
unittest: (?:OK|FAILED|NO TESTS RAN) \((\w[\w ]*=\d[\w =,]*)\)$
jest No tests found, exiting with code()
jest Tests: {2,}((?:\d+ \w+, )*\d+ total)$
vitest No test files found, exiting with code()
vitest  +Tests  (no tests|\d+ \w+(?: \| \d+ \w+)*)(?: \(\d+\))?$
mocha  +(\d+ (?:passing|pending|failing))(?: \(\w+\))?$
ava  +(\d+ (?:tests? (?:passed|failed|skipped|todo)|known failure|uncaught|unhandled).*)
node: ℹ ((?:pass|fail|cancelled|skipped|todo) \d+)$
tap: # ((?:pass|fail|cancelled|skipped|skip|todo) {1,3}\d+)$
cargo test result: \w+\. (\d+ passed; \d+ failed; \d+ ignored;)
nextest  *Summary \[.{1,20}\] +\d+ tests? run: (.*)
rspec (\d+ examples?, \d+ failures?.*)
minitest (\d+ (?:runs|tests), \d+ assertions, \d+ failures, \d+ errors.*)
exunit (?:\d+ \w+, )?(\d+ tests?, \d+ failures?(?:, .*)?)$
phpunit OK \((\d+ tests?), \d+ assertions?\)
phpunit: (Tests: \d+, Assertions: \d+.*)
ctest \d+% tests passed, (\d+ tests failed )out of \d+
ctest: \d+% tests passed, \d+ tests failed (out of \d+)
maven: (?:\[\w+\] )?(Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+)$
gradle (\d+ tests completed, \d+ failed.*)
dotnet: (?:Passed|Failed|Skipped)! +- (Failed: +\d+, Passed: +\d+, Skipped: +\d+)
deno (?:ok|FAILED) \| (\d+ passed.*)
bun  (\d+ (?:pass|fail|skip|todo))$
playwright   (\d+ (?:passed|failed|flaky|skipped))(?: \(.*\))?$
googletest: \[  ((?:PASSED|FAILED|SKIPPED) +\] \d+ tests?)
"""
"""How a runner sums up a run: the runner, with a colon if words come before numbers, and the line, whose group 1 holds
them. From real runs; nextest, exunit, maven, gradle, dotnet and playwright from their documentation."""
_ROWS = [
    (runner.rstrip(":"), lazy_pattern(line), _WORD_FIRST if runner.endswith(":") else _NUMBER_FIRST)
    for runner, _, line in (row.partition(" ") for row in _SUMMARIES.strip().split("\n"))
]
_HINT = lazy_pattern(
    r"[Pp]ass|PASS|[Ff]ail|FAIL|[Tt]est|Ran |OK|example|run|skip|SKIP|todo|pend|canc|know|unc|unh|err|sel|warn"
)
"""Every line of a row matches this; the others need not be compared with each row."""
_SUITES = lazy_pattern(r"(?:Test Suites: +| Test Files  )(\d+) failed")
"""jest, vitest: files that fail. One that does not load has no tests."""


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


def read_text(output: bytes, root: str) -> list[Tests]:
    """One result per runner that the output shows."""
    counts: dict[str, Counter[str]] = {}
    suites = 0
    names = Names(root)
    for line in _lines(output):
        names.read(line)
        if not _HINT.search(line):
            continue
        if match := _SUITES.match(line):
            suites += int(match[1][:_MAX_NUMBER])
        for runner, pattern, pairs in _ROWS:
            if match := pattern.match(line):
                counter = counts.setdefault(runner, Counter())
                for pair in pairs.finditer(match[1]):
                    if outcome := _OUTCOMES.get(pair["word"].lower().replace(" ", "_")):
                        counter[outcome] += int(pair["number"][:_MAX_NUMBER])
    for runner in ("jest", "vitest"):
        if runner in counts and suites and not counts[runner]["failed"]:
            counts[runner]["failed"] = suites
    return names.joined({runner: _tests(runner, counter) for runner, counter in counts.items()})


def _tests(runner: str, counter: Counter[str]) -> Tests:
    passed = counter["passed"] or max(0, counter["total"] - counter["failed"] - counter["skipped"])
    return Tests(runner=runner, passed=passed, failed=counter["failed"], skipped=counter["skipped"])


def _lines(output: bytes) -> Iterator[str]:
    """The end of the output if it is huge: summaries come last."""
    text = _ESCAPE.sub("", output[-_MAX_BYTES:].decode("utf-8", "replace"))
    for line in text.split("\n"):
        match = _PREFIX.match(line, 0, _MAX_LINE)
        yield line[match.end() if match else 0 : _MAX_LINE].rstrip()
