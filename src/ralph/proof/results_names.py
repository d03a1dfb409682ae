"""Names of tests in the output of runners that print one line per test."""

from __future__ import annotations

import re
from collections import Counter
from typing import NamedTuple

import msgspec

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.proof import Tests

_MAX_NAMES = 200_000
_TIME = lazy_pattern(r"(?: \(?\d+(?:\.\d+)? ?(?:µs|ms|s)\)?)+$")
_UNSTABLE = lazy_pattern(r" \(line \d+\)|\b0x[0-9a-fA-F]{6,}")
_ABSOLUTE = lazy_pattern(r"(?<![\w.~@\-])(?:/|[A-Z]:\\)(?:[^\s/\\]+[/\\])*([^\s/\\]+[/\\][^\s/\\]+)")
_SCRIPT = lazy_pattern(r"\S+\.[cm]?[jt]sx?")
_WORDS = {
    **dict.fromkeys(("ok", "PASS", "PASSED", "XPASS", "Passed", "pass"), "passed"),
    **dict.fromkeys(("FAIL", "FAILED", "ERROR", "fail", "unexpected", "***Failed", "***Timeout", "***Not"), "failed"),
    **dict.fromkeys(("SKIP", "SKIPPED", "XFAIL", "skip", "skipped", "ignored", "expected", "***Skipped"), "skipped"),
}

_MARK = lazy_pattern(
    r"( *)(?:([✓✔√])|([✕✖×✘])|([○﹣↓□⚠])|(- (?=\[))|(-)|(\d+\))) ?(?:\[[a-z ]+\]:? |(?:skipped|todo) )?(.+)"
)
_HEADING = lazy_pattern(r"( *)▶ (.+)|(  +)(\w.*)")
_SUITE_FILE = lazy_pattern(r"(?:PASS|FAIL) (?:\./)?(\S+\.[cm]?[jt]sx?)")
_VITEST_FILE = lazy_pattern(r"( )[✓❯×↓] (\S+) +\(\d+ tests?\b")
_DETAILS = lazy_pattern(r"  ● |  ─|  \d+ (?:passing|failing)|✖ failing tests:|⎯")
_NEXT_RUN = lazy_pattern(r"▶ | RUN |  \d+ tests? (?:passed|failed)")
_TAP = lazy_pattern(r"( *)(not )?ok \d+(?: -)? ?(.*?)(?: # (?:(SKIP|TODO|skip|todo)\b.*|time=.*))?(?: \{)?$")
_TAP_HEADING = lazy_pattern(r"( *)# Subtest: (.*)")
_TAPE_HEADING = lazy_pattern(r"# (?!(?:tests|pass|fail|skip|todo) +\d|ok$|time=|duration_ms |SKIP )(\S.*)")
"""tape names a test once, before its assertions."""
_GO = lazy_pattern(r" *--- (PASS|FAIL|SKIP): (\S+)")
_GO_PACKAGE = lazy_pattern(r"(ok  |FAIL)\t(\S+)(?:\t| \[)(.*)")
_CARGO = lazy_pattern(r"test (.+?)(?: - should panic)? \.\.\. (ok|FAILED|ignored)\b")
_CARGO_BINARY = lazy_pattern(r" +(?:Running .*[/\\]([\w\-]+?)(?:-[0-9a-f]{16})?(?:\.exe)?\)|Doc-tests (\S+))$")
_UNITTEST = lazy_pattern(r" *(\w+) \(([\w.<>]+)\)")
_UNITTEST_END = lazy_pattern(
    r"(?:.* \.\.\. )?(ok|FAIL|ERROR|skipped|expected|unexpected)(?: failure| success| ['\"].*)?$"
)
_PYTEST = lazy_pattern(r" (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)(?: \(.*)?(?: +\[ *\d+%\])?$")
_XDIST = lazy_pattern(r"\[gw\d+\] \[ *\d+%\] (?P<word>[A-Z]+) (?P<name>\S+::.*)$")
_CTEST = lazy_pattern(r" *\d+/\d+ Test +#\d+: (?P<name>\S+) \.* *(?P<word>Passed|\*\*\*\w+)")
_NEXTEST = lazy_pattern(r" +(?P<word>PASS|FAIL|SKIP) \[.{1,20}\] (?:\( *\d+/\d+\) )?(?P<name>\S+ \S.*)")
_PLAIN = (("pytest", _XDIST), ("ctest", _CTEST), ("nextest", _NEXTEST))

_FAMILIES = {
    "marks": ("jest", "vitest", "mocha", "ava", "node"),
    **{runner: (runner,) for runner in ("tap", "go", "cargo", "unittest", "pytest", "ctest", "nextest")},
}


class _Event(msgspec.Struct):
    """A line of `go test -json`."""

    Action: str
    Package: str = ""
    Test: str = ""


class _Entry(NamedTuple):
    name: str
    outcome: str
    is_group: bool = False
    only_mocha: bool = False
    """A dash or a number before the name: elsewhere a list or a difference."""


class Names:
    """Reads line by line; families of runners that print alike share one list."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._entries: dict[str, list[_Entry]] = {family: [] for family in _FAMILIES}
        self._files_without_tests = 0
        self._headings: list[tuple[int, str]] = []
        self._subtests: list[tuple[int, str]] = []
        self._tape = ""
        self._file = self._binary = self._unittest = ""
        self._is_details = self._is_tap = self._is_node = self._is_go = self._is_cargo_over = False
        self._last_indent = 0
        self._go: list[tuple[str, str]] = []
        self._go_packages: list[str] = []
        self._go_failed: set[str] = set()

    def read(self, line: str) -> None:
        if not line.strip() or sum(map(len, self._entries.values())) > _MAX_NAMES:
            return
        if not (self._read_go(line) or self._read_tap(line) or self._read_python(line) or self._read_plain(line)):
            self._read_marks(line)

    def joined(self, counted: dict[str, Tests]) -> list[Tests]:
        """The counts with the names that belong to them. Names are complete or left out."""
        self._finish_go()
        if not self._is_tap:
            counted.pop("tap", None)  # printed by a test
        for runner, family, is_seen in (
            ("go", "go", self._is_go),
            ("tap", "tap", self._is_tap and "tap" not in counted),
            ("ava", "marks", "ava" in counted),  # prints no number of passed tests when one fails
            ("unittest", "unittest", len(self._entries["unittest"]) >= counted.get("unittest", Tests()).total > 0),
            ("ctest", "ctest", "ctest" in counted),  # counts skipped tests as passed
        ):
            if is_seen and (self._entries[family] or runner not in counted):
                counted[runner] = self._counted(runner, family)
        known = {runner for runners in _FAMILIES.values() for runner in runners}
        results = [tests for runner, tests in counted.items() if runner not in known]
        for family, runners in _FAMILIES.items():
            if members := [counted[runner] for runner in runners if runner in counted]:
                results.append(self._with_names(family, members))
        return results

    def _counted(self, runner: str, family: str) -> Tests:
        outcomes = Counter(
            entry.outcome for entry in self._entries[family] if not entry.is_group and not entry.only_mocha
        )
        return Tests(runner, outcomes["passed"], outcomes["failed"], outcomes["skipped"])

    def _with_names(self, family: str, members: list[Tests]) -> Tests:
        runners = ["node" if tests.runner == "tap" and self._is_node else tests.runner for tests in members]
        entries = [entry for entry in self._entries[family] if not entry.only_mocha or "mocha" in runners]
        empty = self._files_without_tests if "node" in runners or "tap" in runners else 0
        passed = max(0, sum(tests.passed for tests in members) - empty)
        failed = sum(tests.failed for tests in members)
        groups = sum(entry.is_group for entry in entries)
        leaves = sum(entry.outcome != "skipped" and not entry.is_group for entry in entries)
        is_complete = leaves <= passed + failed <= leaves + groups or (
            family == "unittest" and leaves > passed + failed
        )
        names: dict[str, str] = {}
        repeated: Counter[str] = Counter()
        for entry in entries if is_complete else ():
            if not entry.outcome or (entry.is_group and leaves == passed + failed):
                continue
            repeated[entry.name] += 1
            names[f"{entry.name} ({times})" if (times := repeated[entry.name]) > 1 else entry.name] = entry.outcome
        skipped = sum(tests.skipped for tests in members)
        return Tests(runner="+".join(runners), passed=passed, failed=failed, skipped=skipped, names=names)

    def _add(self, family: str, name: str, outcome: str, *, is_group: bool = False, only_mocha: bool = False) -> None:
        if self._root:
            name = name.replace(self._root.rstrip("/") + "/", "")
        name = _ABSOLUTE.sub(r"\1", _UNSTABLE.sub("", name))
        self._entries[family].append(_Entry(name.strip(), outcome, is_group, only_mocha))

    def _read_go(self, line: str) -> bool:
        if match := _GO.match(line):
            self._go.append((match[2], _WORDS[match[1]]))
        elif match := _GO_PACKAGE.match(line):
            self._finish_go_package(match[2], is_failed=match[1] == "FAIL", is_empty="no tests to run" in match[3])
        elif line.startswith('{"') and '"Action":' in line:
            try:
                event = msgspec.json.decode(line, type=_Event)
            except (msgspec.MsgspecError, UnicodeError):
                return False
            self._is_go = True
            if event.Test and event.Action in _WORDS:
                self._add("go", f"{event.Package}.{event.Test}", _WORDS[event.Action])
            elif event.Action == "fail" and event.Package not in self._go_failed:
                self._add("go", event.Package, "failed")
            if event.Action == "fail":
                self._go_failed.add(event.Package)
        else:
            return False
        return True

    def _finish_go_package(self, package: str, *, is_failed: bool, is_empty: bool) -> None:
        self._is_go = True
        for name, outcome in self._go:
            self._add("go", f"{package}.{name}", outcome)
        if is_failed and not any(outcome == "failed" for _, outcome in self._go):
            self._add("go", package, "failed")
        elif not self._go and not is_empty:
            self._go_packages.append(package)
        self._go = []

    def _finish_go(self) -> None:
        """Without -v only packages have lines."""
        if not any(entry.outcome == "passed" for entry in self._entries["go"]):
            for package in self._go_packages:
                self._add("go", package, "passed")

    def _read_tap(self, line: str) -> bool:
        if match := _TAP_HEADING.match(line):
            indent = len(match[1])
            self._tape = ""
            self._subtests = [*((depth, name) for depth, name in self._subtests if depth < indent), (indent, match[2])]
        elif match := _TAP.match(line):
            indent, name = len(match[1]), match[3].replace("\\#", "#")
            is_group, self._last_indent = self._last_indent > indent, indent
            outcome = "skipped" if match[4] else "failed" if match[2] else "passed"
            if outcome == "passed" and not indent and not is_group and _SCRIPT.fullmatch(name):
                self._files_without_tests += 1
            else:
                above = [parent for depth, parent in self._subtests if depth < indent]
                path = [*(above or filter(None, [self._tape])), name]
                self._add("tap", " > ".join(path), outcome, is_group=is_group)
        elif line.lstrip().startswith("type: 'suite'") and self._entries["tap"] and self._entries["tap"][-1].is_group:
            self._entries["tap"].pop()
        elif re.match(r"TAP version \d|1\.\.\d+(?: #|$)", line):
            self._is_tap = True
        elif line.startswith("# duration_ms "):
            self._is_node = True
        elif self._is_tap and not self._subtests and (match := _TAPE_HEADING.match(line)):
            self._tape = match[1]
        else:
            return False
        return True

    def _read_python(self, line: str) -> bool:
        if "::" in line.partition(" ")[0] and (match := _PYTEST.search(line)):
            self._add("pytest", line[: match.start()], _WORDS[match[1]])
            return True
        if match := _UNITTEST.match(line):
            self._unittest = match[2] if match[2].endswith(f".{match[1]}") else f"{match[2]}.{match[1]}"
        if self._unittest and (match := _UNITTEST_END.match(line)):
            self._add("unittest", self._unittest, _WORDS[match[1]])
            self._unittest = ""
            return True
        return False

    def _read_plain(self, line: str) -> bool:
        if line == "failures:":
            self._is_cargo_over = True  # what failing tests printed
        elif (match := _CARGO.match(line)) and not self._is_cargo_over:
            self._add("cargo", f"{self._binary}::{match[1]}" if self._binary else match[1], _WORDS[match[2]])
            return True
        if match := _CARGO_BINARY.match(line):
            self._binary = match[1] or f"{match[2]} (doc)"
            self._is_cargo_over = False
            return True
        for family, pattern in _PLAIN:
            if (match := pattern.match(line)) and match["word"] in _WORDS:
                self._add(family, match["name"], _WORDS[match["word"]])
                return True
        return False

    def _read_marks(self, line: str) -> None:
        """Trees: jest --verbose, mocha, ava, vitest --reporter=verbose, the spec reporter of node:test."""
        if match := _SUITE_FILE.match(line):
            self._file, self._headings, self._is_details = match[1], [], False
        elif _DETAILS.match(line):
            self._is_details = True
        elif line.startswith("Tests: "):
            self._file, self._headings = "", []
        elif self._is_details:
            self._is_details = _NEXT_RUN.match(line) is None
        elif match := _VITEST_FILE.match(line):
            self._headings = [(1, match[2])]
        elif match := _MARK.match(line):
            self._read_mark(match)
        elif match := _HEADING.match(line):
            indent = len(match[1] if match[2] else match[3])
            if match[2] and (indent, _TIME.sub("", match[2])) in self._headings:  # Node 18 ends a suite so
                self._add("marks", "", "", is_group=True)
                return
            self._headings = [
                *((depth, name) for depth, name in self._headings if depth < indent),
                (indent, match[2] or match[4]),
            ]

    def _read_mark(self, match: re.Match[str]) -> None:
        indent, text = len(match[1]), match[8]
        name, _, note = text.partition(" # ") if text.endswith(("# SKIP", "# TODO")) else (text, "", "")
        name = _TIME.sub("", name)
        outcome = "passed" if match[2] else "failed" if match[3] or match[7] else "skipped"
        if note or "[expected fail]" in match[0]:
            outcome = "skipped"
        is_group = any(depth == indent and heading == name for depth, heading in self._headings)
        self._headings = [(depth, heading) for depth, heading in self._headings if depth < indent]
        if outcome == "passed" and not indent and not is_group and _SCRIPT.fullmatch(name):
            self._files_without_tests += 1
            return
        path = [*([self._file] if self._file else []), *(heading for _, heading in self._headings), name]
        self._add("marks", " > ".join(path), outcome, is_group=is_group, only_mocha=bool(match[6] or match[7]))
