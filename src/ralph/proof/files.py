"""Which changes decide what passes: tests and their data, helpers, runner configuration, scripts of the checks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ralph.core.lazy_pattern import lazy_pattern
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
from ralph.proof.restore import as_before, has_inline_tests
from ralph.proof.values import FileChange

__all__ = ["Role", "deciding", "is_collected", "role_of", "unrelated_tests"]

_DECIDING = frozenset({Role.TEST, Role.FIXTURE, Role.HELPER, Role.RUNNER, Role.BUILD, Role.SCRIPT, Role.CI, Role.RULES})
_HELPER_NAME = lazy_pattern(
    r"(?:^|[._-])(?:helpers?|support|testutils?|testlib|fixtures?|mocks?|fakes?|stubs?|doubles|factories|harness|dummy"
    r"|expect\w*|goldens?|snapshots?|cases|samples|assert\w*|matchers|check\w*|verif\w*)(?:[._-]|$)",
    re.IGNORECASE,
)
_ASSERTS = lazy_pattern(
    r"\bAssertionError\b|\bdef[ \t]+assert\w*|^[ \t]+assert[ \t(]"
    r"|^[ \t]*(?:import|from)[ \t]+(?:pytest|hypothesis|hamcrest|assertpy)\b|\bTestCase\b"
    r"|[\"'](?:node:)?(?:assert|test)(?:/strict)?[\"']|[\"'](?:chai|vitest|@jest/globals|expect|should|tape|sinon)[\"']"
    r"|\b(?:function|const|let|var)[ \t]+(?:assert|expect)\w*",
    re.MULTILINE,
)
_CHECK_NAME = lazy_pattern(
    r"(?i)(?:^|[_./-])(?:run)?[_-]?(?:tests?|checks?|lint|verify|ci|validate|smoke|coverage|selftest)(?:[_./-]|$)"
)
_SCRIPT_FOLDER = lazy_pattern(r"(?:^|/)(?:scripts?|tools?|ci|\.ci|hack|dev)/")
_RUNS_COMMANDS = lazy_pattern(
    r"package\.json|composer\.json|(?:GNUm|M|m)akefile|.+\.mk|\.?[Jj]ustfile|[Tt]askfile.*\.ya?ml|Rakefile|Pipfile"
    r"|tox\.(?:ini|toml)|setup\.cfg|\.?pytest\.(?:ini|toml)|pyproject\.toml|hatch\.toml"
)
_SURE = lazy_pattern(r"(?:^|/)(?:tests|__tests__|spec)/|^(?:test|t)/|(?:^|/)conftest\.py$")
_DOCTESTS = lazy_pattern(r"doctest[-_]glob|\bdoctestplus\b|\btestfile\(|\bDocFileSuite\b")
_PATH = lazy_pattern(r"[\w./-]+")
# `python -m pytest` imports from the working folder first.
_SHADOWS_RUNNER = lazy_pattern(r"(?:src/)?(?:_?pytest|unittest|doctest|pluggy|coverage|tox|nox|mypy|ruff)(?:\.py$|/)")
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
        self.at_start = {path: text_of(content) for path, content in {**sources, **tests}.items()}
        self.now = dict(self.at_start)
        self.test_texts = [self.now[path] for path in tests]
        for change in changes:
            for files, content in ((self.at_start, change.old), (self.now, change.new)):
                files.pop(change.path, None)
                if content is not None:
                    files[change.path] = text_of(content)
                    if role_of(change.path) in (Role.TEST, Role.HELPER):
                        self.test_texts.append(files[change.path])
        self.commands = list(commands)
        for files in (self.at_start, self.now):
            for path, text in files.items():
                if _RUNS_COMMANDS.fullmatch(name_of(path)):
                    self.commands += command_lines(path, text)
        self.has_doctests = any(map(_DOCTESTS.search, (*self.commands, *self.test_texts)))
        self.code_folders = {
            "/".join(parts[:at])
            for path in self.at_start
            if language_of(path) and role_of(path) is Role.SOURCE
            for parts in (path.split("/"),)
            for at in range(1, len(parts))
        }
        self.plugins = plugin_modules(self.test_texts, self.commands)
        self.named: set[str] = set()
        self.scripts: set[str] = set()
        self._follow_scripts()
        self._helpers: dict[str, bool] = {}

    def _follow_scripts(self) -> None:
        """Scripts named by commands, and by those scripts."""
        lines = self.commands
        for _ in range(_MOST_ROUNDS):
            named = {named for line in set(lines) if self._names_a_file(line) for named in named_paths(line)}
            self.named |= {path for path, is_run in named if not is_run}
            scripts = {path for path, is_run in named if is_run and self._is_script(path)} - self.scripts
            self.scripts |= scripts
            lines = [
                line
                for path in scripts
                for files in (self.at_start, self.now)
                if language_of(path) in ("shell", "") and path in files
                for line in command_lines(path, files[path])
            ]

    def _names_a_file(self, line: str) -> bool:
        words = (word.removeprefix("./") for word in _PATH.findall(line))
        return any(word in self.now or word in self.at_start or word in ("-m", "inv", "invoke") for word in words)

    def _is_script(self, path: str) -> bool:
        text = self._files_for(path).get(path)
        if text is None:
            return False
        if language_of(path) in ("shell", "") or _CHECK_NAME.search(path) or _SCRIPT_FOLDER.search(path):
            return True
        return _ASSERTS.search(text) is not None and not self._is_product(path)

    def decides(self, change: FileChange) -> bool:
        path = change.path
        role = role_of(path)
        if role in (Role.TEST, Role.HELPER) and not _SURE.search(path) and self._is_product(path):
            return False  # `django/test/client.py`, `jinja2/tests.py`
        if role in _DECIDING:
            return as_before(change) != change.new  # it may differ in the dependencies it lists only
        if role is Role.DEPENDENCIES:
            return False
        if change.old is None and _SHADOWS_RUNNER.match(path):
            return True
        if path in self.scripts:
            return True
        if has_inline_tests(path):
            return as_before(change) != change.new
        if role is Role.DOCS:
            return self.has_doctests
        if path in self.named:
            return not language_of(path) or not self._is_product(path)
        return self._is_helper(path) if language_of(path) else self._is_test_data(path)

    def _files_for(self, path: str) -> Mapping[str, str]:
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
        if path not in files:
            return False
        signs = (_HELPER_NAME.search(name_of(path)) is not None, _ASSERTS.search(files[path]) is not None)
        if not (all(signs) if self._has_product_beside(path) else any(signs)):
            return False
        users = importers(path, files)
        return bool(users) and all(self._is_test_side(user) for user in users)

    def _has_product_beside(self, path: str) -> bool:
        folder = re.match(r"(?:src/)?[^/]+/", path)
        return folder is not None and any(
            other.startswith(folder[0]) and other != path and language_of(other) and role_of(other) is Role.SOURCE
            for other, text in self.at_start.items()
            if text.strip()  # an empty `__init__.py` is no product
        )

    def _is_test_data(self, path: str) -> bool:
        parts = path.split("/")[:-1]
        folders = [part for at, part in enumerate(parts, 1) if "/".join(parts[:at]) not in self.code_folders]
        if not any(does_mention(text, path, folders) for text in self.test_texts):
            return False
        name = name_of(path)
        return not any(
            name in text
            for other, text in self._files_for(path).items()
            if other != path and language_of(other) and not self._is_test_side(other)
        )


def unrelated_tests(tests: Mapping[str, bytes], touched: Sequence[str]) -> frozenset[str]:
    """Collected test files that can be left out of a targeted run: not touched, and not imported by what is."""
    texts = {path: text_of(content) for path, content in tests.items()}
    kept = set(touched)
    rest = {path for path in tests if is_collected(path)} - kept
    support = {path for path in tests if path not in rest}
    todo = [path for path in support | kept if path in tests]
    while todo:
        path = todo.pop()
        needed = {other for other in rest if does_import(path, texts[path], other)}
        rest -= needed
        todo += needed
    return frozenset(rest)
