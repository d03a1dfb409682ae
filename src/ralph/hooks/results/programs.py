"""Classifies a simple command: a test run and its framework, displaying text, something trivial, or anything else."""

from ralph.hooks.results import languages, scripts
from ralph.hooks.results.kinds import LISTING, LOOK, OTHER, TEST, TRIVIAL, UNKNOWN, Again, Kind
from ralph.hooks.results.names import is_testy, is_testy_path
from ralph.hooks.results.vocabulary import (
    ANY_RUNNER,
    DIRECT,
    LISTS,
    LOOKS,
    NO_TESTERS,
    OTHERS,
    PRINTS,
    SCRIPTS,
    SUBCOMMANDS,
    TRIVIALS,
)
from ralph.hooks.results.wrappers import base, runs_elsewhere

_DEEPEST = 5


def kind(words: list[str], depth: int = 0, *, is_tail: bool = False) -> Kind:
    """For words that are already unwrapped. `is_tail`: the caller examines every other tail of them, too."""
    if not words or depth > _DEEPEST:
        return TRIVIAL, ""
    name = plain_name(words[0])
    found = _known(name, words[0], words[1:], depth, is_tail=is_tail)
    if isinstance(found, list):
        return kind(found, depth + 1, is_tail=is_tail)
    if found[0] == TEST and _is_listing(name, found[1], words[1:]):
        return LISTING, ""
    return found


def plain_name(word: str) -> str:
    """`node_modules/.bin/jest`, `jest@29`, `gradlew.bat` → jest, jest, gradlew."""
    name = base(word)
    name = name.partition("@")[0] or name
    for ending in (".exe", ".cmd", ".bat"):
        name = name.removesuffix(ending)
    return name


def _known(name: str, word: str, rest: list[str], depth: int, *, is_tail: bool) -> Kind | Again:
    is_path = "/" in word
    if name in PRINTS:
        return LOOK, ""
    if name in ("test", "[", "[[") and not is_path:
        return TRIVIAL, ""
    if name in ("tox", "nox"):
        return scripts.sessions(rest)
    if name in DIRECT:
        return TEST, DIRECT[name]
    if name in ANY_RUNNER:
        return TEST, ""
    if name == "git":
        return _git(rest)
    if (found := languages.kind_of(name, rest)) is not None:
        return found
    if name in SUBCOMMANDS and (found := _subcommand(name, rest)) is not None:
        return found
    if name in SCRIPTS:
        return scripts.kind_of(name, rest)
    if name not in LOOKS and any(one in ("log", "logs") for one in rest[:3]):
        return LOOK, ""
    for tail in () if is_tail else runs_elsewhere([word, *rest]):
        there = kind(tail, depth + 1, is_tail=True)
        if there[0] not in (UNKNOWN, TRIVIAL, OTHER):
            return there
    is_own = is_path and not word.startswith(("/bin/", "/usr/"))  # `scripts/test` is no builtin
    for known, role in ((LOOKS, LOOK), (TRIVIALS, TRIVIAL), (OTHERS, OTHER)):
        if name in known and not is_own:
            return role, ""
    if rest[:1] == ["test"] and not name.startswith("create") and name not in NO_TESTERS:
        return TEST, ""
    if not is_path and is_testy(name):
        return TEST, ""
    is_script = is_path or name.endswith((".sh", ".py", ".js", ".rb", ".pl", ".ts", ".bash", ".ps1", ".fish"))
    return (TEST, "") if is_script and is_testy_path(word) else (UNKNOWN, "")


def _is_listing(name: str, framework: str, rest: list[str]) -> bool:
    if rest[:1] == ["-h"] or any(word.partition("=")[0] in LISTS for word in rest):
        return True
    match framework or name:
        case "go":
            return any(word in ("-list", "-c", "-n") or word.startswith("-list=") for word in rest)
        case "ctest":
            return "-N" in rest
        case "vitest":
            return rest[:1] in (["list"], ["init"])
        case "cargo":
            return rest[:2] == ["nextest", "list"]
        case "make" | "gmake":
            return any(word in ("-n", "-q", "-p") for word in rest)
        case "tox" | "nox":
            return any(word in ("-l", "list", "config") for word in rest[:2])
    return False


_NO_RUN = frozenset(("vet", "fmt", "build", "lint", "format", "install", "get", "mod", "check", "restore", "clean"))


def _subcommand(name: str, rest: list[str]) -> Kind | Again | None:
    """None: the program also runs scripts, and this is one."""
    tests, before_script = SUBCOMMANDS[name]
    at = 0
    while at < len(rest):
        word = rest[at]
        if word in tests:
            return TEST, tests[word]
        if word in before_script:
            return scripts.kind_of(name, rest[at + 1 :])
        if (found := _odd_subcommand(name, word, rest[at + 1 :])) is not None:
            return found
        # an option, what may be its value, or `+nightly`; otherwise this is another subcommand
        is_option = word.startswith(("-", "+", ":")) or word.isdigit() or name == "xcodebuild"
        if not is_option and not (at and rest[at - 1].startswith("-")):
            break
        at += 1
    if name in SCRIPTS:
        return None
    first = next((word for word in rest if not word.startswith(("-", "+"))), "")
    return (OTHER, "") if first in _NO_RUN and name in ("go", "deno", "dotnet", "flutter", "dart") else (UNKNOWN, "")


def _odd_subcommand(name: str, word: str, rest: list[str]) -> Kind | None:
    if name == "stack" and word == "build" and "--test" in rest:
        return TEST, "haskell"
    if name == "zig" and word == "build":
        return (TEST, "zig") if "test" in rest else (UNKNOWN, "")
    if name == "go" and word == "run":
        return (TEST, "go") if any("gotestsum" in one or "ginkgo" in one for one in rest) else (UNKNOWN, "")
    if name == "dart" and word == "run":
        return (TEST, "dart") if rest[:1] == ["test"] else (UNKNOWN, "")
    if name == "mix" and word == "do":
        return (TEST, "exunit") if any(one.strip(",+") == "test" for one in rest) else (UNKNOWN, "")
    return None


def _git(rest: list[str]) -> Kind:
    """Commits, pushes and merges run a project's hooks, perhaps with its tests; everything else only displays."""
    verb = next((word for at, word in enumerate(rest) if not word.startswith("-") and rest[at - 1 : at] != ["-C"]), "")
    runs = verb in ("commit", "push", "merge", "rebase", "am", "hook") or (verb == "bisect" and "run" in rest)
    return (UNKNOWN, "") if runs else (LOOK, "")
