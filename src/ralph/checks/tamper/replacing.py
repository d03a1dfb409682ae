"""Tests that no longer test the code: a mock, a local function or a fake module replaced it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from ralph.checks.tamper.pairing import TestFile
from ralph.checks.tamper.python_suite import PythonSuite
from ralph.checks.tamper.source import line_at
from ralph.checks.tamper.suite import Case, Fate
from ralph.checks.tamper.token_suite import TokenSuite
from ralph.checks.tamper.values import Finding

_TARGET = re.compile(
    r"(?:\bsetattr|\bpatch|\bpatch\.object|\bpatch\.multiple)\(\s*(?:[\"'](?P<text>[\w.]+)[\"']|(?P<module>\w+)\s*,)"
)
_FOREIGN = frozenset(
    [
        "requests",
        "httpx",
        "boto3",
        "urllib3",
        "aiohttp",
        "redis",
        "stripe",
        "sentry_sdk",
        "openai",
        "anthropic",
        "smtplib",
        "django",
        "flask",
    ]
)
_MODULE_MOCK = re.compile(r"\b(?:jest|vi)\.(?:mock|doMock|setMock)\(\s*['\"](?P<module>[^'\"]+)['\"]\s*,")
_FAKE = re.compile(
    r"(?:^|[._])(?:fake|fakes|mock|mocks|stub|stubs|dummy|dummies|tests?|conftest)(?:[._]|$)", re.IGNORECASE
)


def mocked(old: Case, new: Case) -> Iterator[Finding]:
    """A function that an assertion calls was replaced in the same test. A heuristic, but reliable where it is new."""
    for name in sorted(new.replaced - old.replaced):
        for assertion in new.assertions:
            called = any(
                token.lstrip(".") == name and following == "("
                for token, following in zip(assertion.tokens, assertion.tokens[1:], strict=False)
            )
            if called and assertion.fate <= Fate.CONDITIONAL:
                message = f"{new.outline.name} replaces {name}, then asserts the replacement's result"
                yield Finding("subject-mocked", new.outline.path, assertion.line, message, "high")
                break


def autouse_mocks(case: Case) -> Iterator[Finding]:
    """A new fixture for every test that replaces the project's own code."""
    outline = case.outline
    if outline.is_test or "autouse=True" not in outline.body.replace(" ", ""):
        return
    for target in _TARGET.finditer(outline.body):
        name = target["text"] or target["module"] or ""
        root = name.split(".")[0]
        if root not in sys.stdlib_module_names and root not in _FOREIGN:
            message = f"{outline.name} replaces {name} for every test"
            yield Finding("subject-mocked", outline.path, outline.line, message, "high")
            return


def _mocked_modules(path: str, old: str, new: str) -> Iterator[Finding]:
    """`jest.mock('./total', () => ({ total: () => 3 }))` in the test of `./total`."""
    known = {match["module"] for match in _MODULE_MOCK.finditer(old)}
    for match in _MODULE_MOCK.finditer(new):
        module = match["module"]
        if module in known:
            continue
        imported = re.search(
            rf"import\s+(?P<names>[^;'\"]+?)\s+from\s+['\"]{re.escape(module)}['\"]|(?:const|let"
            rf"|var)\s+(?P<required>[^=;]+)=\s*require\(\s*['\"]{re.escape(module)}['\"]",
            new,
        )
        names = re.findall(r"\w+", (imported["names"] or imported["required"]) if imported else "")
        asked = [name for name in names if re.search(rf"\b(?:expect|assert[\w.]*)\s*\(\s*(?:await\s+)?{name}\b", new)]
        is_own = module.rsplit("/", 1)[-1].split(".")[0] == path.rsplit("/", 1)[-1].split(".")[0]
        if asked or is_own:
            message = f"{module} is replaced in its own test"
            yield Finding("subject-mocked", path, line_at(new, match.start()), message, "high")


def replaced_imports(file: TestFile) -> Iterator[Finding]:
    """What was imported from the code comes from a fake, or from the test itself."""
    old, new = file.old, file.new
    if isinstance(old, TokenSuite) and isinstance(new, TokenSuite):
        yield from _mocked_modules(file.path, old.code, new.code)
    if not (isinstance(old, PythonSuite) and isinstance(new, PythonSuite)):
        return
    before, after = old.file.aliases, new.file.aliases
    already = {function.name for function in old.file.functions} | set(old.file.constants)
    local = {function.name: function.node.lineno for function in new.file.functions if function.owner is None}
    local |= {name: value.lineno for name, value in new.file.constants.items()}
    for name, source in before.items():
        now = after.get(name)
        if now is None and name in local and name not in already:
            message = f"{name} was imported from {source.rpartition('.')[0] or source}; now the test defines its own"
            yield Finding("subject-mocked", file.path, local[name], message, "high")
        elif now is not None and now != source and _FAKE.search(now) and not _FAKE.search(source):
            line = next((n for n, text in enumerate(new.file.lines, 1) if name in text and "import" in text), 1)
            yield Finding("subject-mocked", file.path, line, f"{name} comes from {now} instead of {source}", "high")
