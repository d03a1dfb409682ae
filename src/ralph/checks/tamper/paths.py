"""What a path says about a file: its language, whether it is a test, whether a runner would collect it."""

from __future__ import annotations

import re
from functools import lru_cache

from ralph.checks.tamper.source import word_set

_remembered = lru_cache(maxsize=10_000)

_LANGUAGES = {
    "python": "py pyi pyw",
    "javascript": "js jsx mjs cjs ts tsx mts cts vue svelte",
    "go": "go",
    "rust": "rs",
    "ruby": "rb",
    "java": "java kt kts scala groovy",
    "php": "php",
    "csharp": "cs",
    "shell": "sh bash bats zsh ksh",
    "swift": "swift",
    "cpp": "c cc cpp cxx h hpp",
}
_BY_SUFFIX = {f".{end}": name for name, ends in _LANGUAGES.items() for end in ends.split()}

_TEST_FOLDERS = word_set("tests test __tests__ e2e cypress testdata __snapshots__ __mocks__ __fixtures__")
_CODE_TEST_FOLDERS = frozenset({"spec", "specs", "features"})
_PARKED = word_set(
    "archive archived attic old disabled backup backups bak deprecated trash unused node_modules "
    "build dist venv graveyard "
    "skipped quarantine"
)

_NAMED_AS_TEST = {
    "python": re.compile(r"(?:test_.*|.*_test|tests?)\.py"),
    "javascript": re.compile(r".*[._-](?:test|tests|spec|cy|e2e)\.[cm]?[jt]sx?"),
    "go": re.compile(r".*_test\.go"),
    "rust": re.compile(r"(?:tests?|.*_tests?|test_.*)\.rs"),
    "ruby": re.compile(r"(?:test_.*|.*_(?:spec|test))\.rb"),
    "java": re.compile(r"(?:Test[A-Z0-9].*|.*(?:Tests?|TestCase|IT|Spec))\.(?:java|kts?|scala|groovy)"),
    "php": re.compile(r".*Test\.php"),
    "csharp": re.compile(r".*(?:Tests?|Specs?)\.cs"),
    "shell": re.compile(r".*\.bats|(?:test[_-].*|.*[_-]test|tests?)\.(?:sh|bash|zsh|ksh)"),
    "swift": re.compile(r".*Tests?\.swift"),
    "cpp": re.compile(r"(?:test_.*|.*_(?:unit)?tests?|.*Tests?)\.(?:c|cc|cpp|cxx)"),
}
# Where the place alone makes a runner pick a file up (mocha, cargo, Pest, the JUnit source set).
_COLLECTED_BY_PLACE = frozenset({"javascript", "rust", "php", "java", "csharp", "swift", "cpp", "shell"})
_SUPPORT = re.compile(
    r"(?:^|/)(?:conftest\.py|(?:jest|vitest|test|mocha)?[._-]?(?:setup|teardown|helpers?|fixtures?"
    r"|globals?)(?:[._-]\w+)*\.\w+"
    r"|(?:spec|test|rails)_helper\.rb|setupTests\.[jt]sx?|Pest\.php|bootstrap\.php)$",
    re.IGNORECASE,
)
_SUPPORT_FOLDERS = word_set("helpers support fixtures mocks __mocks__ __fixtures__ testdata data common stubs")

_GOLDEN = re.compile(
    r"(?:^|/)(?:__snapshots__|__image_snapshots__|snapshots?|goldens?|approved|approvals|expected"
    r"|expected[_-]outputs?|baselines?)/"
    r"|\.(?:snap|ambr|golden|approved|expected|snapshot)(?:\.\w+)?$|\.approved\.|\.verified\.|(?:^"
    r"|/)expected[^/]*$|[._-]expected\.\w+$",
    re.IGNORECASE,
)


def language_of(path: str) -> str:
    """The name of the language, or ''."""
    dot = path.rfind(".")
    return _BY_SUFFIX.get(path[dot:].lower(), "") if dot > path.rfind("/") + 1 else ""


def name_of(path: str) -> str:
    return path[path.rfind("/") + 1 :]


def _folders(path: str) -> list[str]:
    return path.split("/")[:-1]


def in_test_folder(path: str) -> bool:
    folders = _folders(path)
    if any(folder.lower() in _TEST_FOLDERS for folder in folders):
        return True
    if any(re.search(r"[._-]?(?:Unit|Integration)?Tests?$", folder) and "." in folder for folder in folders):
        return True  # the .NET way: Shop.Tests/
    return bool(language_of(path)) and any(folder.lower() in _CODE_TEST_FOLDERS for folder in folders)


def is_named_as_test(path: str) -> bool:
    pattern = _NAMED_AS_TEST.get(language_of(path))
    return pattern is not None and pattern.fullmatch(name_of(path)) is not None


def is_support(path: str) -> bool:
    """Beside the tests, not a test: conftest.py, helpers, set-up files."""
    if is_named_as_test(path):
        return False
    folders = {folder.lower() for folder in _folders(path)}
    return _SUPPORT.search(path) is not None or (in_test_folder(path) and bool(folders & _SUPPORT_FOLDERS))


@_remembered
def is_golden(path: str) -> bool:
    """A recorded result: what a test compares with, but not a test itself."""
    if not _GOLDEN.search(path) or (language_of(path) and is_named_as_test(path)):
        return False
    return not language_of(path) or in_test_folder(path)


@_remembered
def is_test_file(path: str) -> bool:
    """A test, or something that only tests use: their helpers, data and snapshots."""
    if is_named_as_test(path) or in_test_folder(path):
        return True
    return name_of(path) == "conftest.py" or path.endswith(".snap") or "__snapshots__" in _folders(path)


@_remembered
def is_collected(path: str) -> bool:
    """Whether a runner would look for tests in this file."""
    language = language_of(path)
    if not language or is_parked(path) or is_support(path):
        return False
    if language == "go" and any(folder == "testdata" or folder[:1] == "_" for folder in _folders(path)):
        return False
    return is_named_as_test(path) or (language in _COLLECTED_BY_PLACE and in_test_folder(path))


def is_parked(path: str) -> bool:
    """In a folder for things that should not run."""
    return any(folder.lower() in _PARKED or folder.startswith((".", "_old", "_disabled")) for folder in _folders(path))


def left_the_tests(old: str, new: str) -> bool:
    """Moved from where runners look to where they may not. Languages that keep tests beside the code are exempt."""
    if not is_collected(new):
        return True
    if language_of(new) not in ("python", "ruby", "php"):
        return False
    return in_test_folder(old) and not in_test_folder(new)


def stem_words(path: str) -> tuple[str, ...]:
    """The words of a file name that say what it is about: tests/test_csv_export.py → csv, export."""
    stem = name_of(path).split(".")[0]
    return tuple(word for word in words_of(stem) if word not in ("test", "tests", "spec", "specs", "it", "unit"))


_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words_of(name: str) -> list[str]:
    """`parse_csvFile2` → parse, csv, file, 2."""
    return [word.lower() for word in _WORD.findall(name)]
