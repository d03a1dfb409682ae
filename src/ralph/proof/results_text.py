"""Read test results from the output of a check: counts from summaries, names where every test has a line."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from ralph.core.proof import Tests
from ralph.proof.results_names import Names
from ralph.proof.results_table import HINT, OUTCOMES, ROWS, SUITES

_MAX_BYTES = 8 << 20
_MAX_LINE = 1000
_MAX_NUMBER = 9
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[\r\b]")
_PREFIX = re.compile(r"(?:(?:[\w@.\-]+/)+[\w@.\-]+ [\w\-:]+|[\w@./\-]+:[\w\-]+): ")
"""pnpm and turbo put the package before each line: `packages/a test: `, `web:test: `."""


def read_text(output: bytes, root: str) -> list[Tests]:
    """One result per runner that the output shows."""
    counts: dict[str, Counter[str]] = {}
    suites = 0
    names = Names(root)
    for line in _lines(output):
        names.read(line)
        if not HINT.search(line):
            continue
        if match := SUITES.match(line):
            suites += int(match[1][:_MAX_NUMBER])
        for row in ROWS:
            if match := row.line.match(line):
                counter = counts.setdefault(row.runner, Counter())
                for pair in row.pairs.finditer(match[1]):
                    if outcome := OUTCOMES.get(pair["word"].lower().replace(" ", "_")):
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
