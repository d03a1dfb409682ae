"""Search for a witness: something about the story that fails without the change and passes with it."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from ralph.config.checks import ChosenCheck
from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.proof import Tests, Witness
from ralph.core.text import one_line
from ralph.proof.emptying import emptied, why_not
from ralph.proof.files import Role, is_collected, role_of, unrelated_tests
from ralph.proof.restore import as_after, as_before, has_inline_tests, with_tests_of_file
from ralph.proof.values import FEW, Bench, Candidate, FileChange, Ran, named

_MAX_FILES = 3
_MAX_BYTES = 1 << 20
_SCRIPTS = {".js", ".cjs", ".mjs", ".jsx", ".ts", ".cts", ".mts", ".tsx"}
_CALLS = (
    re.compile(r"^((?:\w+\.)?(?:test|it))(?:\.\w+)*\(", re.M),
    re.compile(r"(?<![\w.$])(test|it)(?:\.\w+)*\("),
)
"""How a file defines tests: `test(`, `it.each(`, `t.test(`, `Deno.test(`."""
_PYTHON_TEST = lazy_pattern(r"^\s*(?:async )?def test|^class \w*Test", re.M)
_START = lazy_pattern(r"^\w+\.run\(", re.M)
"""uvu runs what was registered before `test.run()`."""
_RUST_TEST = lazy_pattern(r"^\s*#\[(?:\w+::)*(?:test|rstest)\b", re.M)
_GO_TEST = lazy_pattern(r"^func (Test\w*)\(\w+ \*testing\.T\)", re.M)

_TAPE = lazy_pattern(r"""(?:require\(\s*|\bfrom\s*)['"](?:tape|tap|blue-tape)['"]""")
_ASSERT_MODULE = lazy_pattern(
    r"""\bimport\s+(?:\*\s+as\s+)?(\w+)\s+from\s*['"](?:node:)?assert(?:/strict)?['"]"""
    r"""|\b(?:const|let|var)\s+(\w+)\s*=\s*require\(\s*['"](?:node:)?assert(?:/strict)?['"]"""
)
"""The name under which a file has Node's assertions."""


def planted(test_files: Mapping[str, bytes], rng: str) -> dict[str, bytes]:
    """Test files with a failing test added, at most one per folder and language. Empty: none is of a known kind."""
    files: dict[str, bytes] = {}
    kinds: set[tuple[PurePosixPath, str]] = set()
    for path, content in sorted(test_files.items()):
        place = PurePosixPath(path)
        if (place.parent, place.suffix) in kinds or len(content) > _MAX_BYTES:
            continue
        word = "k" + hashlib.sha256(f"{rng}\0{path}".encode()).hexdigest()[:10]
        if text := _with_failure(place, content, word):
            kinds.add((place.parent, place.suffix))
            files[path] = text.encode()
        if len(files) == _MAX_FILES:
            break
    return files


def is_caught(before: Tests, after: Tests, check_passed: bool) -> bool:
    """Whether the planted failure was reported. Where the runner is not known, a failing check is all there is."""
    if check_passed:
        return False
    if after.names:
        return any(outcome == "failed" and before.names.get(name) != "failed" for name, outcome in after.names.items())
    return not after.runner or after.failed > before.failed


def _with_failure(place: PurePosixPath, content: bytes, word: str) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
    text = text.rstrip() + "\n"
    if place.suffix == ".py" and _PYTHON_TEST.search(text):
        return _python(text, word)
    if place.suffix in _SCRIPTS:
        return _script(place.name, text, word)
    if place.name.endswith("_test.go") and (first := _GO_TEST.search(text)):  # `-run` that omits it omits this one too
        return f'{text}\nfunc {first[1]}{word.title()}(t *testing.T) {{\n\tt.Fatal("{word}")\n}}\n'
    if place.suffix == ".rs" and _RUST_TEST.search(text):
        return f'{text}\n#[cfg(test)]\nmod {word} {{\n    #[test]\n    fn fails() {{ panic!("{word}") }}\n}}\n'
    return ""


def _python(text: str, word: str) -> str:
    """In the style of the file: what swallows failures of functions may leave those of TestCase alone."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    is_function = any(isinstance(node, ast.FunctionDef) and node.name.startswith("test") for node in body)
    if is_function or not re.search(r"\bTestCase\b|\bunittest\b|django\.test", text):
        added = f"def test_{word}():\n    assert not {word!r}\n"
    else:
        added = (
            f"import unittest as {word}\n\n\nclass Test{word.title()}({word}.TestCase):\n"
            f"    def test_{word}(self):\n        self.assertEqual({word!r}, '')\n"
        )
    lines = text.splitlines(keepends=True)
    at = next((node.lineno - 1 for node in body if _is_main(node)), len(lines))
    return "".join([*lines[:at], f"\n\n{added}\n\n", *lines[at:]])


def _is_main(node: ast.stmt) -> bool:
    """`if __name__ == "__main__":` or a bare call such as `unittest.main()`."""
    is_call = isinstance(node, ast.Expr) and ast.unparse(node).endswith(".main()")
    return is_call or (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))


def _script(name: str, text: str, word: str) -> str:
    argument, failure = "", f"throw new Error('{word}');"
    if _TAPE.search(text):  # an exception would end the whole run, and no test would be reported
        argument, failure = "t", f"t.fail('{word}');\n  t.end();"
    elif asserting := _ASSERT_MODULE.search(text):  # code under test may have changed the assertions
        failure = f"{asserting[1] or asserting[2]}.strictEqual('{word}', '');"
    elif re.search(r"\bexpect\s*\(", text):
        failure = f"expect('{word}').to.equal('');" if "chai" in text else f"expect('{word}').toBe('');"
    if call := next(filter(None, (pattern.search(text) for pattern in _CALLS)), None):
        failure = f"{call[1]}('{word}', ({argument}) => {{\n  {failure}\n}});"
    elif not re.search(r"test|spec", name):
        return ""
    start = _START.search(text)
    at = start.start() if start else len(text)
    return f"{text[:at]}\n{failure}\n{text[at:]}"


class WitnessSearch:
    def __init__(self, given: Candidate, decisive: Sequence[FileChange], bench: Bench) -> None:
        self._given = given
        self._bench = bench
        self._decisive = decisive
        paths = {change.path for change in decisive if not has_inline_tests(change.path)}
        self._code = [
            change for change in given.changes if change.path not in paths and role_of(change.path) is not Role.DOCS
        ]
        self._touched = {
            change.path: change.new
            for change in decisive
            if change.new is not None and (is_collected(change.path) or has_inline_tests(change.path))
        }
        self.missing = ""
        self.limits: tuple[str, ...] = ()

    def witnesses(self) -> tuple[Witness, ...]:
        healed = self._healed()
        own, general = self._without_the_change()
        if not own and not general:
            return healed
        if self._touched:
            own, general = self._exercised(own, general)
        found = [Witness(check.command, is_own=True) for check in own]
        found += [Witness(name, is_own=self._is_acceptance(name)) for name in general]
        return (*sorted(found, key=lambda witness: not witness.is_own), *healed)

    def _is_acceptance(self, test: str) -> bool:
        """Whether it is an acceptance test, or, without names, a check that such a test made fail."""
        given = self._given
        is_check = any(test == check.name for check in given.checks)
        return bool(given.acceptance) and (is_check or test in given.acceptance_tests or _is_in(test, given.acceptance))

    def _healed(self) -> tuple[Witness, ...]:
        """Tests that the story did not write, and that failed or were skipped when it began."""
        found = []
        for command, before in self._given.before.items():
            after = self._given.passed.get(command, Tests())
            for name, state in before.names.items():
                is_theirs = not any(path in name for path in self._touched)
                if state != "passed" and after.names.get(name) == "passed" and is_theirs:
                    found.append(Witness(name))
        return tuple(found)

    def _without_the_change(self) -> tuple[list[ChosenCheck], list[str]]:
        """What fails on the old code with the new tests: own checks, and tests (or whole checks) by name."""
        given, bench = self._given, self._bench
        general = [check for check in given.checks if check not in given.own] if self._touched else []
        if not given.own and not general:
            return [], []
        old = {change.path: as_after(change) for change in self._decisive}
        tree = bench.compose(given.start, old | self._unrelated())
        ran = bench.run(tree, [*given.own, *general])
        if bench.is_stopped:
            return [], []
        own = [check for check, one in zip(given.own, ran, strict=False) if one.is_red and self._gains(check, one)]
        names = [
            name for check, one in zip(general, ran[len(given.own) :], strict=False) for name in self._red(check, one)
        ]
        if given.own and not own and not names:
            self.missing = f"{named(given.own[0])} passes without the change too: add a test that fails without it"
        elif self._touched and not own and not names:
            some = ", ".join(one_line(path, 80) for path in list(self._touched)[:FEW])
            self.missing = f"the tests in {some} pass without the change too: add a test that fails without it"
        return own, names

    def _gains(self, check: ChosenCheck, ran: Ran) -> bool:
        """Whether a test passes on the candidate that does not pass here; without names that cannot be told."""
        after = self._given.passed.get(check.command, Tests())
        if not after.names:
            return True
        return any(s == "passed" and ran.tests.names.get(name) != "passed" for name, s in after.names.items())

    def _red(self, check: ChosenCheck, ran: Ran) -> list[str]:
        """The story's tests that pass on the candidate and not here; without names, the check itself."""
        before = self._given.before.get(check.command, Tests())
        after = self._given.passed.get(check.command, Tests())
        if not after.names:
            return [check.name] if ran.is_red and after.runner else []
        found = []
        for name, state in after.names.items():
            now = ran.tests.names.get(name)
            is_new = bool(before.runner) and name not in before.names
            if state == "passed" and now != "passed" and (now == "failed" or is_new or self._is_touched(name)):
                found.append(name)
        return found

    def _is_touched(self, test: str) -> bool:
        """Whether a test's name names a file of the story, as in `tests/test_a.py::test_b` or `tests.test_a.test_b`."""
        return _is_in(test, self._touched)

    def _unrelated(self) -> dict[str, bytes | None]:
        """Test files that the story did not touch are left out: a witness is one of its own."""
        if not self._touched:
            return {}
        wanted = " ".join(check.command for check in self._given.own)
        unrelated = unrelated_tests({**self._given.tests, **self._touched}, list(self._touched))
        return {path: None for path in unrelated if path not in wanted}

    def _exercised(self, own: list[ChosenCheck], names: list[str]) -> tuple[list[ChosenCheck], list[str]]:
        """The witnesses that also fail when the bodies of the changed functions are empty."""
        hollow = self._hollow()
        if not hollow:
            return own, names
        given, bench = self._given, self._bench
        general = [check for check in given.checks if check not in given.own]
        unrelated = self._unrelated()
        ran = bench.run(bench.compose(given.tree, hollow | unrelated), [*own, *general])
        if bench.is_stopped:
            return [], []
        passed = {name for one in ran for name, state in one.tests.names.items() if state == "passed"}
        red = {check.name for check, one in zip(general, ran[len(own) :], strict=False) if one.is_red}
        whole = {check.name for check in general}
        names = [name for name in names if (name in red if name in whole else name not in passed)]
        doubtful = [check for check, one in zip(own, ran, strict=False) if not one.is_red]
        own = [check for check in own if check not in doubtful]
        if doubtful:  # it may be about something else than these functions, or only about the story's own tests
            without = {path: as_before(FileChange(path, None, new)) for path, new in self._touched.items()} | unrelated
            again = bench.run(bench.compose(given.tree, without), doubtful)
            own += [check for check, one in zip(doubtful, again, strict=False) if not one.is_red]
        if not own and not names:
            some = ", ".join(one_line(path, 80) for path in list(hollow)[:FEW])
            self.missing = f"the tests also pass when the changed functions in {some} do nothing: test what they do"
        return own, names

    def _hollow(self) -> dict[str, bytes | None]:
        """The changed source files with empty functions."""
        found: dict[str, bytes | None] = {}
        for change in self._code:
            if change.new is None:
                continue
            if (body := emptied(change.path, change.old, change.new)) is not None:
                found[change.path] = with_tests_of_file(change.path, body, change.new)
            elif role_of(change.path) is Role.SOURCE and (why := why_not(change.path)):
                self.limits = (*self.limits, f"{one_line(change.path, 80)}: {why}")
        return found

    def _is_blind(self, checks: Sequence[ChosenCheck], traps: dict[str, bytes]) -> bool:
        """Whether a check never runs the planted test, also without the change. Then it says nothing."""
        given, bench = self._given, self._bench
        if any("::" in check.command or " -k" in check.command for check in checks):
            return True
        if any(given.before.get(check.command, Tests()).failed for check in checks):
            return False  # it failed before, so one more failure could not be told apart
        old = bench.run(bench.compose(given.start, traps), checks)
        before = [given.before.get(check.command, Tests()) for check in checks]
        return not any(is_caught(known, one.tests, not one.is_red) for known, one in zip(before, old, strict=False))

    def _nearest(self) -> dict[str, bytes]:
        """A few test files, first those that mention a changed file."""
        stems = [_stem(change.path).rpartition("/")[2].encode() for change in self._code]
        tests = sorted(self._given.tests.items())
        tests = [(path, data) for path, data in tests if is_collected(path)]
        tests.sort(key=lambda test: not any(stem in test[1] for stem in stems))
        return dict(tests[:1])

    def silent_runner(self) -> tuple[str, ...]:
        """A planted test that fails must make every test check fail."""
        given, bench = self._given, self._bench
        checks = [check for check in given.checks if given.passed.get(check.command, Tests()).runner]
        if not checks or not self._code:
            return ()
        near = self._touched or self._nearest()
        traps = planted({path: data for path, data in near.items() if data is not None}, given.seed)
        if not traps:
            return ()
        others: dict[str, bytes | None] = dict.fromkeys(unrelated_tests({**given.tests, **self._touched}, list(near)))
        tree = bench.compose(given.tree, others | traps)
        ran = bench.run(tree, checks)
        if bench.is_stopped:
            return ()
        caught = [
            is_caught(given.passed[check.command], one.tests, not one.is_red)
            for check, one in zip(checks, ran, strict=False)
        ]
        if any(caught) or not caught:
            return ()
        if self._is_blind(checks, traps):
            self.limits = (*self.limits, f"{named(checks[0])} does not run a test file that is added")
            return ()
        return (f"{named(checks[0])} does not report a test that fails: its result proves nothing",)


def _is_in(test: str, paths: Iterable[str]) -> bool:
    flat = test.replace(".", "/")
    return any(path in test or _stem(path) in flat for path in paths)


def _stem(path: str) -> str:
    return path.rpartition(".")[0] or path
