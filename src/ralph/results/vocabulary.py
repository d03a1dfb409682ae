"""What is known about programs and names, from `words.txt`, and the roles that a command can have."""

from ralph.guard.tables import lists, load

TEST, LOOK, TRIVIAL, OTHER, UNKNOWN = "test", "look", "trivial", "other", "unknown"
LISTING = "listing"
"""A test program asked for its version, help or a list, which runs nothing."""
PERHAPS = "perhaps"
"""Named like something that often runs tests (`make check`, `npm run ci`): only its output tells, not its exit code."""

Kind = tuple[str, str]
"""Role and, for a test run, the framework; empty if only its output can tell."""
Again = list[str]
"""The words of another command, to be examined instead."""

_WORDS = load("words", __file__)
_PROGRAMS = {name: frozenset(words) for name, words in lists(_WORDS["programs"]).items()}
_OPTIONS = {name: frozenset(words) for name, words in lists(_WORDS["options"]).items()}
_NAMES = {name: frozenset(words) for name, words in lists(_WORDS["names"]).items()}


def _frameworks(section: str) -> dict[str, str]:
    listed = lists(_WORDS[section]).items()
    return {word: "" if framework == "any" else framework for framework, words in listed for word in words}


def _by_program(section: str) -> dict[str, list[str]]:
    lines = [line.split() for line in _WORDS[section].split("\n") if line]
    return {name: words for names, *words in lines for name in names.split("|")}


RUNNERS = _frameworks("runners")
"""Program → framework; empty if only the output tells."""
PYTHON_MODULES = _frameworks("modules")
SUBCOMMANDS = _by_program("subcommands")
ELSEWHERE = _by_program("elsewhere")
RELATED = lists(_WORDS["related"])
SCRIPTS, LOOKS, PRINTS, NO_TESTERS = (_PROGRAMS[name] for name in ("scripts", "looks", "prints", "no-tests"))
TRIVIALS, OTHERS = _PROGRAMS["trivial"], _PROGRAMS["other"]
LISTS, SCRIPT_VALUES = _OPTIONS["lists"], _OPTIONS["script-values"]
LINTS, OFTEN, INSTALLS, SHOWS = (_NAMES[name] for name in ("lint", "often", "installs", "shows"))
CHORES = LINTS | {"clean", "install", "deps"}


def base(word: str) -> str:
    return word.replace("\\", "/").rstrip("/").rpartition("/")[2]


def is_testy(name: str) -> bool:
    """Whether the name of a script or target suggests that it runs tests: `test`, `test:unit`, `unit-tests`."""
    words = pieces(name)
    return not _NAMES["no-test"].intersection(words) and bool(_NAMES["test"].intersection(words))


def is_testy_path(path: str) -> bool:
    """`./run-tests.sh`, `scripts/test`, `tests/run.py`, `test_cart.py`, `cart.spec.ts`, `build/cart_test`."""
    words = pieces(base(path))
    if _NAMES["no-test"].intersection(words):
        return False
    if _NAMES["test"].intersection(words) or any(word.startswith("runtest") for word in words):
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
