"""Names of scripts, targets and files: which of them suggest that tests are run."""

from ralph.hooks.results.vocabulary import words as words_of
from ralph.hooks.results.wrappers import base

_TESTY = ("test", "tests", "spec", "specs", "e2e", "unittest", "unittests", "testsuite", "jest", "vitest", "mocha")
_TESTY_TOO = ("pytest", "cypress", "playwright", "rspec", "phpunit", "selftest", "testall", "alltests", "tdd", "bats")
_NO_TEST = words_of(
    "lint types type typecheck typescheck build compile format fmt tsc install setup prepare deps db database seed "
    "migrate data fixtures server serve start stop up down clean docs generate gen create watch-build image results "
    "report reports log logs show print open ui debug env environment list ls dashboard studio analyze"
)
SHOWS = frozenset(("log", "logs", "show", "print", "history", "trace", "report"))


def is_testy(name: str) -> bool:
    """Whether the name of a script or target suggests that it runs tests: `test`, `test:unit`, `unit-tests`,
    `check`."""
    words = pieces(name)
    if not words or any(word in _NO_TEST for word in words):
        return False
    return any(word in _TESTY or word in _TESTY_TOO for word in words)


def is_testy_path(path: str) -> bool:
    """`./run-tests.sh`, `scripts/test`, `tests/run.py`, `test_cart.py`, `cart.spec.ts`, `build/cart_test`."""
    words = pieces(base(path))
    if any(word in _NO_TEST for word in words):
        return False
    if any(word in _TESTY or word in _TESTY_TOO or word.startswith("runtest") for word in words):
        return True
    folders = path.replace("\\", "/").split("/")[:-1]
    return any(folder in ("test", "tests", "spec", "specs", "__tests__", "t", "e2e") for folder in folders)


def pieces(name: str) -> list[str]:
    """`test:unitE2E-all.sh` → test, unit, e2e, all, sh."""
    out, word = [], ""
    for before, char in zip(" " + name, name, strict=False):
        if not char.isalnum() or (char.isupper() and before.islower()):
            out.append(word.lower())
            word = ""
        if char.isalnum():
            word += char
    return [piece for piece in [*out, word.lower()] if piece]
