"""How test runners sum up a run: one row per runner.

Recorded from real runs unless marked; the marked rows follow the runner's documentation.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_OUTCOMES = {
    "passed": "pass passed passing ok xpassed flaky",
    "failed": "uncaught unhandled fail failed failing failure failures error errors cancelled "
    "unexpected_successes invalid timed_out",
    "skipped": "skip skips skipped pending pendings todo xfailed ignored incomplete expected_failures known_failure "
    "known_failures excluded notrun omissions disabled",
    "total": "total tests test examples example runs tests_run out_of",
}
OUTCOMES = {word: outcome for outcome, words in _OUTCOMES.items() for word in words.split()}
"""The words of the summaries → `passed`, `failed`, `skipped` or `total`; any other word counts nothing."""

NUMBER_FIRST = re.compile(r"(?P<number>\d+) (?:tests? (?=passed|failed|skipped|todo))?(?P<word>(?:known )?[a-z]+)")
WORD_FIRST = re.compile(r"(?P<word>[A-Za-z]+(?: [a-z]+)?)\b[ ]{0,4}[:=]?[ ]{0,8}(?P<number>\d+)")


class Row(NamedTuple):
    """A line that sums up a run: group 1 holds numbers and words, in the order that `pairs` reads."""

    runner: str
    line: re.Pattern[str]
    pairs: re.Pattern[str] = NUMBER_FIRST


def _row(runner: str, line: str, pairs: re.Pattern[str] = NUMBER_FIRST) -> Row:
    return Row(runner, re.compile(line), pairs)


ROWS = (
    _row(
        "pytest",
        r"(?:=+ )?(\d+ (?:passed|failed|skipped|deselected|xfailed|xpassed|error|warning|rerun|subtest).*) in \d",
    ),
    _row("pytest", r"(?:=+ )?no tests (?:ran|collected)()"),
    _row("unittest", r"Ran (\d+ tests?) in \d"),
    _row("unittest", r"(?:OK|FAILED|NO TESTS RAN) \((\w[\w ]*=\d[\w =,]*)\)$", WORD_FIRST),
    _row("jest", r"No tests found, exiting with code()"),
    _row("jest", r"Tests: {2,}((?:\d+ \w+, )*\d+ total)$"),
    _row("vitest", r"No test files found, exiting with code()"),
    _row("vitest", r" +Tests  (no tests|\d+ \w+(?: \| \d+ \w+)*)(?: \(\d+\))?$"),
    _row("mocha", r" +(\d+ (?:passing|pending|failing))(?: \(\w+\))?$"),
    _row(
        "ava",
        r" +(\d+ (?:tests? (?:passed|failed|skipped|todo)|known failure|uncaught|unhandled).*)",
    ),
    _row("node", r"ℹ ((?:pass|fail|cancelled|skipped|todo) \d+)$", WORD_FIRST),
    _row("tap", r"# ((?:pass|fail|cancelled|skipped|skip|todo) {1,3}\d+)$", WORD_FIRST),
    _row("cargo", r"test result: \w+\. (\d+ passed; \d+ failed; \d+ ignored;)"),
    _row("nextest", r" *Summary \[.{1,20}\] +\d+ tests? run: (.*)"),  # documentation
    _row("rspec", r"(\d+ examples?, \d+ failures?.*)"),
    _row("minitest", r"(\d+ (?:runs|tests), \d+ assertions, \d+ failures, \d+ errors.*)"),
    _row("exunit", r"(?:\d+ \w+, )?(\d+ tests?, \d+ failures?(?:, .*)?)$"),  # documentation
    _row("phpunit", r"OK \((\d+ tests?), \d+ assertions?\)"),
    _row("phpunit", r"(Tests: \d+, Assertions: \d+.*)", WORD_FIRST),
    _row("ctest", r"\d+% tests passed, (\d+ tests failed )out of \d+"),
    _row("ctest", r"\d+% tests passed, \d+ tests failed (out of \d+)", WORD_FIRST),
    _row(
        "maven", r"(?:\[\w+\] )?(Tests run: \d+, Failures: \d+, Errors: \d+, Skipped: \d+)$", WORD_FIRST
    ),  # documentation
    _row("gradle", r"(\d+ tests completed, \d+ failed.*)"),  # documentation
    _row(
        "dotnet", r"(?:Passed|Failed|Skipped)! +- (Failed: +\d+, Passed: +\d+, Skipped: +\d+)", WORD_FIRST
    ),  # documentation
    _row("deno", r"(?:ok|FAILED) \| (\d+ passed.*)"),
    _row("bun", r" (\d+ (?:pass|fail|skip|todo))$"),
    _row("playwright", r"  (\d+ (?:passed|failed|flaky|skipped))(?: \(.*\))?$"),  # documentation
    _row(
        "googletest",
        r"\[  ((?:PASSED|FAILED|SKIPPED) +\] \d+ tests?)",
        re.compile(r"(?P<word>\w+) +\] (?P<number>\d+)"),
    ),
)
HINT = re.compile(
    r"[Pp]ass|PASS|[Ff]ail|FAIL|[Tt]est|Ran |OK|example|run|skip|SKIP|todo|pend|canc|know|unc|unh|err|sel|warn"
)
"""Every line of a row matches this; the others need not be compared with each row."""

SUITES = re.compile(r"(?:Test Suites: +| Test Files  )(\d+) failed")
"""jest, vitest: files that fail. One that does not load has no tests."""
