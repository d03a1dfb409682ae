"""Which changes decide what passes: tests and their data, helpers, runner configuration, scripts of the checks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ralph.proof.file_table import Role, is_collected, language_of, name_of, role_of
from ralph.proof.file_uses import (
    command_lines,
    does_import,
    does_mention,
    importers,
    is_module,
    named_paths,
    plugin_modules,
    text_of,
)
from ralph.proof.inline_tests import has_inline_tests
from ralph.proof.restoring import as_before
from ralph.proof.values import FileChange

__all__ = ["Role", "deciding", "is_collected", "role_of", "unrelated_tests"]

_DECIDING = frozenset({Role.TEST, Role.FIXTURE, Role.HELPER, Role.RUNNER, Role.BUILD, Role.SCRIPT, Role.CI, Role.RULES})
_HELPER_NAME = re.compile(
    r"(?:^|[._/-])(?:helpers?|support|testing|testutils?|testlib|fixtures?|mocks?|fakes?|stubs?|doubles|factories"
    r"|expected|expectations?|goldens?|snapshots?|cases|samples|asserts?|assertions|matchers"
    r"|harness|dummy|plugins?)(?:[._/-]|$)",
    re.IGNORECASE,
)  # fmt: skip
_TESTS_SOMETHING = re.compile(
    r"^[ \t]*(?:import|from)[ \t]+(?:pytest|unittest|nose|hypothesis|doctest|pytester|hamcrest|assertpy)\b"
    r"|\bAssertionError\b|[\"'](?:node:)?(?:assert|test)(?:/strict)?[\"']"
    r"|[\"'](?:chai|vitest|@jest/globals|expect|should|tape|sinon)[\"']"
    r"|\bdef[ \t]+(?:assert|check|expect|verify|should)_?\w*|\bfunction[ \t]+(?:assert|expect|check|verify|should)\w*"
    r"|\b(?:const|let|var)[ \t]+(?:assert|expect|check|verify|should)\w*[ \t]*="
    r"|^[ \t]*assert[ \t(]|\bexpect\(|\bassert[.(]",
    re.MULTILINE,
)  # fmt: skip
_CHECK_NAME = re.compile(
    r"(?i)(?:^|[_./-])(?:run)?[_-]?(?:tests?|checks?|lint|verify|ci|validate|smoke|coverage|selftest)(?:[_./-]|$)"
)
_SCRIPT_FOLDER = re.compile(r"(?:^|/)(?:scripts?|tools?|ci|\.ci|hack|dev)/")
_MOST_ROUNDS = 3


def deciding(
    changes: Sequence[FileChange], commands: Sequence[str], tests: Mapping[str, bytes], sources: Mapping[str, bytes]
) -> tuple[FileChange, ...]:
    """The changes that decide what passes.

    `tests`: the test files of both trees. `sources`: what may import, mention or start something: source files, and
    where there are any, package.json, makefiles, runner configuration. What production code used when the story began
    is product, whatever the change makes of it.
    """
    known = _Known(changes, commands, tests, sources)
    return tuple(change for change in changes if known.decides(change))


class _Known:
    def __init__(
        self,
        changes: Sequence[FileChange],
        commands: Sequence[str],
        tests: Mapping[str, bytes],
        sources: Mapping[str, bytes],
    ) -> None:
        changed = {change.path: change for change in changes}
        self.at_start = {
            path: old
            for path in {**sources, **tests}
            if (old := changed[path].old if path in changed else {**sources, **tests}[path]) is not None
        }
        self.at_start.update({change.path: change.old for change in changes if change.old is not None})
        self.now = {**sources, **tests, **{change.path: change.new for change in changes if change.new is not None}}
        self.test_texts = [text_of(content) for content in tests.values()]
        self.test_texts += [
            text_of(content)
            for change in changes
            if role_of(change.path) in (Role.TEST, Role.HELPER)
            for content in (change.old, change.new)
        ]
        self.commands = list(commands)
        for files in (self.at_start, self.now):
            for path, content in files.items():
                if role_of(path) in (Role.BUILD, Role.RUNNER) and language_of(path) != "python":
                    self.commands += command_lines(path, text_of(content))
        self.plugins = plugin_modules(self.test_texts, self.commands)
        self.named: set[str] = set()
        self.scripts: set[str] = set()
        self._follow_scripts()
        self._helpers: dict[str, bool] = {}

    def _follow_scripts(self) -> None:
        """Scripts named by commands, and by those scripts."""
        lines = self.commands
        for _ in range(_MOST_ROUNDS):
            named = {named for line in lines for named in named_paths(line)}
            self.named |= {path for path, is_run in named if not is_run}
            scripts = {path for path, is_run in named if is_run and self._is_script(path)} - self.scripts
            self.scripts |= scripts
            lines = [
                line
                for path in scripts
                for files in (self.at_start, self.now)
                if language_of(path) in ("shell", "") and path in files
                for line in command_lines(path, text_of(files[path]))
            ]

    def _is_script(self, path: str) -> bool:
        content = self.at_start.get(path, self.now.get(path))
        if content is None:
            return False
        if language_of(path) in ("shell", "") or _CHECK_NAME.search(path) or _SCRIPT_FOLDER.search(path):
            return True
        return _TESTS_SOMETHING.search(text_of(content)) is not None and not self._is_product(path)

    def decides(self, change: FileChange) -> bool:
        path = change.path
        role = role_of(path)
        if role in _DECIDING:
            return as_before(change) != change.new  # it may differ in the dependencies it lists only
        if role is Role.DEPENDENCIES:
            return False
        if path in self.scripts:
            return True
        if has_inline_tests(path):
            return as_before(change) != change.new
        if path in self.named and role is not Role.DOCS:
            return not language_of(path) or not self._is_product(path)
        return self._is_helper(path) if language_of(path) else self._is_test_data(path)

    def _files_for(self, path: str) -> Mapping[str, bytes]:
        """The tree in which to look for users of a file: where the story began, unless the file is new."""
        return self.at_start if path in self.at_start else self.now

    def _is_product(self, path: str) -> bool:
        return any(not self._is_test_side(importer) for importer in importers(path, self._files_for(path)))

    def _is_test_side(self, path: str) -> bool:
        return role_of(path) in _DECIDING or self._is_helper(path)

    def _is_helper(self, path: str) -> bool:
        """Only tests import it, and it looks like something for tests: a library's own tests are its only users too."""
        if path not in self._helpers:
            self._helpers[path] = False  # an import cycle ends here
            self._helpers[path] = self._looks_like_helper(path)
        return self._helpers[path]

    def _looks_like_helper(self, path: str) -> bool:
        files = self._files_for(path)
        if is_module(path, self.plugins):
            return not self._is_product(path)
        if path not in files or not (
            _HELPER_NAME.search(name_of(path)) or _TESTS_SOMETHING.search(text_of(files[path]))
        ):
            return False
        users = importers(path, files)
        return bool(users) and all(self._is_test_side(user) for user in users)

    def _is_test_data(self, path: str) -> bool:
        if not any(does_mention(text, path) for text in self.test_texts):
            return False
        name = name_of(path)
        return not any(
            name in text_of(content)
            for other, content in self._files_for(path).items()
            if other != path and language_of(other) and not self._is_test_side(other)
        )


def unrelated_tests(tests: Mapping[str, bytes], touched: Sequence[str]) -> frozenset[str]:
    """Collected test files that can be left out of a targeted run: not touched, and not imported by what is."""
    kept = set(touched)
    rest = {path for path in tests if is_collected(path)} - kept
    support = {path for path in tests if path not in rest}
    todo = [path for path in support | kept if path in tests]
    while todo:
        path = todo.pop()
        needed = {other for other in rest if does_import(path, text_of(tests[path]), other)}
        rest -= needed
        todo += needed
    return frozenset(rest)
