"""Changed files, decoded once, with the tests in them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from msgspec import Struct

from ralph.checks.tamper.pairing import TestFile
from ralph.checks.tamper.paths import is_collected, is_golden, is_named_as_test, is_test_file, language_of
from ralph.checks.tamper.python_file import may_be_newer
from ralph.checks.tamper.python_suite import PythonSuite
from ralph.checks.tamper.shared_blocks import without_shared
from ralph.checks.tamper.source import LONGEST, is_binary, text_of
from ralph.checks.tamper.suite import Suite
from ralph.checks.tamper.token_suite import TokenSuite
from ralph.checks.tamper.values import FileChange, Finding

_MOST_BYTES = 8_000_000
"""Of all files together. A larger change is examined by file names only."""
_HOLDS_TESTS = re.compile(
    r"\bdef test|#\[(?:\w+::)*(?:test|rstest)\b|\b(?:it|test)\(\s*[\"'`]|@Test\b|^func Test|\[Fact\]|@test ",
    re.MULTILINE,
)


class Read(Struct, frozen=True):
    """One change with its texts. A text is None if it does not exist or cannot be read."""

    change: FileChange
    old: str | None
    new: str | None
    added: str
    """Lines of the new text that the old one does not have."""

    @property
    def path(self) -> str:
        return self.change.path


def read_all(changes: Sequence[FileChange]) -> list[Read]:
    """Tests come first, so that a flood of other files cannot keep them from being read."""
    left = _MOST_BYTES
    found = []
    for change in sorted(changes, key=lambda change: not is_test_file(change.path)):
        if change.old == change.new:
            continue
        left -= len(change.old or b"") + len(change.new or b"")
        old, new = (text_of(change.old), text_of(change.new)) if left >= 0 else (None, None)
        found.append(Read(change, old, new, _added(old or "", new or "")))
    return found


def _added(old: str, new: str) -> str:
    known = set(old.split("\n"))
    return "\n".join(line for line in new.split("\n") if line not in known)


def holds_tests(read: Read) -> bool:
    """Worth searching for tests, though it may not be a test file."""
    language = language_of(read.path)
    if not language or is_golden(read.path):
        return False
    if is_test_file(read.path):
        return True
    if language == "rust":
        return any(text is not None and "#[test" in text for text in (read.old, read.new))
    # A test that was moved out of sight is found in a new file.
    return read.change.old is None and read.new is not None and _HOLDS_TESTS.search(read.new) is not None


def suite_of(path: str, text: str | None, *, fallback: bool = False) -> Suite | None:
    if text is None:
        return None
    language = language_of(path)
    if language == "python" and not fallback:
        return PythonSuite.read(path, text)
    return TokenSuite.read(path, language, text)


def test_files(reads: Iterable[Read]) -> list[TestFile]:
    return [_test_file(read) for read in reads if holds_tests(read)]


def _test_file(read: Read) -> TestFile:
    if language_of(read.path) == "python" and read.old is not None and read.new is not None:
        shared = without_shared(read.old, read.new)
        if shared.left_out:
            one, two = suite_of(read.path, shared.old), suite_of(read.path, shared.new)
            if one is not None and two is not None:
                return TestFile(read.path, one, two, shared.left_out)
    old, new = suite_of(read.path, read.old), suite_of(read.path, read.new)
    older = old is not None and new is None and read.new is not None and may_be_newer(read.new)
    if language_of(read.path) == "python" and ((old is None and new is None) or older):
        old, new = suite_of(read.path, read.old, fallback=True), suite_of(read.path, read.new, fallback=True)
    return TestFile(read.path, old, new)


def is_broken(read: Read, file: TestFile) -> bool:
    """It had readable tests, and now contains something else."""
    return bool(file.old_tests() or file.unchanged) and read.change.new is not None and file.new is None


def unreadable(read: Read, file: TestFile) -> Iterator[Finding]:
    if not is_broken(read, file):
        if read.change.new is not None and read.new is None and is_collected(read.path):
            yield Finding("not-examined", read.path, 1, f"{read.path} is too large or could not be decoded", "low")
        return
    data = read.change.new or b""
    if len(data) > LONGEST:
        yield Finding("not-examined", read.path, 1, f"{read.path} is now too large to examine", "high")
    elif is_binary(data):
        yield Finding("test-file-broken", read.path, 1, f"{read.path} is no longer text", "high")
    else:
        yield Finding("test-file-broken", read.path, 1, f"{read.path} can no longer be parsed", "high")


_PUT_ASIDE = (".bak", ".old", ".orig", ".disabled", ".skip", ".skipped", ".off", ".txt", ".md", ".tmp", ".save")
_FOREIGN_TEST = re.compile(
    r"(?:^|/)(?:test_[^/]*|[^/]*_(?:test|spec)|[^/]*Tests?)\.\w+$|\.feature$|\.(?:test|spec)\.\w+$"
)


def is_foreign_test(path: str) -> bool:
    """A test in a language that is not parsed here."""
    if language_of(path) or is_golden(path) or path.endswith(_PUT_ASIDE):
        return False
    return _FOREIGN_TEST.search(path) is not None


def is_any_test(path: str) -> bool:
    return is_collected(path) or is_named_as_test(path) or is_foreign_test(path)
