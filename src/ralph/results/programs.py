"""Classifies the commands of a command line: a test run and its framework, displaying text, or anything else."""

from ralph.results import languages
from ralph.results import vocabulary as known
from ralph.results.parts import Part, is_assignment, split, tails_elsewhere, unwrapped
from ralph.results.vocabulary import LISTING, LOOK, OTHER, PERHAPS, TEST, TRIVIAL, UNKNOWN, Again, Kind

_DEEPEST = 5
_DEEPEST_TEXT = 4
_RUN_BY_CMAKE = ("test", "check", "RUN_TESTS")
"""Other targets with `test` in their name only build."""
_SCRIPT_ENDINGS = (".sh", ".py", ".js", ".rb", ".pl", ".ts", ".bash", ".ps1", ".fish")
_NO_RUN = frozenset(["vet", "fmt", "build", "lint", "format", "install", "get", "mod", "check", "restore", "clean"])


def roles(command: str, depth: int = 0) -> list[Part]:
    """The parts of a command line with the role of each, and the framework of a test run."""
    out: list[Part] = []
    for part in split(command):
        words, inner = unwrapped(part.words)
        if inner and depth < _DEEPEST_TEXT:
            nested = roles(inner, depth + 1)
            for each in nested[:1]:
                each.joint = part.joint
            out += nested
            continue
        part.role, part.framework = kind(words)
        part.words = words or part.words
        out.append(part)
    return out


def kind(words: list[str], depth: int = 0, *, is_tail: bool = False) -> Kind:
    """For words that are already unwrapped. `is_tail`: the caller examines every other tail of them, too."""
    if not words or depth > _DEEPEST:
        return TRIVIAL, ""
    name = known.base(words[0])
    name = name.partition("@")[0] or name  # `jest@29`
    for ending in (".exe", ".cmd", ".bat"):
        name = name.removesuffix(ending)
    bare = name.rstrip("0123456789.").rstrip("-")  # `pytest-3`, `phpunit9`
    name = bare if bare in known.RUNNERS and name not in known.RUNNERS else name
    found = _known(name, words[0], words[1:], depth, is_tail=is_tail)
    if isinstance(found, list):
        return kind(found, depth + 1, is_tail=is_tail)
    return (LISTING, "") if found[0] == TEST and _is_listing(name, found[1], words[1:]) else found


def _known(name: str, word: str, rest: list[str], depth: int, *, is_tail: bool) -> Kind | Again:
    is_path = "/" in word
    if name in known.PRINTS:
        return LOOK, ""
    if name in ("test", "[", "[[") and not is_path:
        return TRIVIAL, ""
    if name in ("tox", "nox"):
        return _sessions(rest)
    if name in known.RUNNERS:
        return TEST, known.RUNNERS[name]
    if name == "git":
        return _git(rest)
    if (found := languages.kind_of(name, rest)) is not None:
        return found
    if name in known.SUBCOMMANDS and (found := _subcommand(name, rest)) is not None:
        return found
    if name in known.SCRIPTS:
        return _script(name, rest)
    if name not in known.LOOKS and any(one in ("log", "logs") for one in rest[:3]):
        return LOOK, ""
    for tail in () if is_tail else tails_elsewhere([word, *rest]):
        there = kind(tail, depth + 1, is_tail=True)
        if there[0] not in (UNKNOWN, TRIVIAL, OTHER):
            return there
    is_own = is_path and not word.startswith(("/bin/", "/usr/"))  # `scripts/test` is no builtin
    for names, role in ((known.LOOKS, LOOK), (known.TRIVIALS, TRIVIAL), (known.OTHERS, OTHER)):
        if name in names and not is_own:
            return role, ""
    if rest[:1] == ["test"] and not name.startswith("create") and name not in known.NO_TESTERS:
        return TEST, ""
    if not is_path and known.is_testy(name):
        return TEST, ""
    return (TEST, "") if (is_path or name.endswith(_SCRIPT_ENDINGS)) and known.is_testy_path(word) else (UNKNOWN, "")


def _is_listing(name: str, framework: str, rest: list[str]) -> bool:
    if rest[:1] == ["-h"] or any(word.partition("=")[0] in known.LISTS for word in rest):
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


def _subcommand(name: str, rest: list[str]) -> Kind | Again | None:
    """None: the program also runs scripts, and this is one."""
    rules = dict(rule.split("=") for rule in known.SUBCOMMANDS[name])
    for at, word in enumerate(rest):
        if word in rules:
            return _script(name, rest[at + 1 :]) if rules[word] == "*" else (TEST, rules[word])
        if (found := _odd_subcommand(name, word, rest[at + 1 :])) is not None:
            return found
        # an option, what may be its value, or `+nightly`; otherwise this is another subcommand
        is_option = word.startswith(("-", "+", ":")) or word.isdigit() or name == "xcodebuild"
        if not is_option and not (at and rest[at - 1].startswith("-")):
            break
    if name in known.SCRIPTS:
        return None
    first = next((word for word in rest if not word.startswith(("-", "+"))), "")
    return (OTHER, "") if first in _NO_RUN and name in ("go", "deno", "dotnet", "flutter", "dart") else (UNKNOWN, "")


def _odd_subcommand(name: str, word: str, rest: list[str]) -> Kind | None:
    match name, word:
        case "stack", "build":
            return (TEST, "haskell") if "--test" in rest else None
        case "zig", "build":
            return (TEST, "zig") if "test" in rest else (UNKNOWN, "")
        case "go", "run":
            return (TEST, "go") if any("gotestsum" in one or "ginkgo" in one for one in rest) else (UNKNOWN, "")
        case "dart", "run":
            return (TEST, "dart") if rest[:1] == ["test"] else (UNKNOWN, "")
        case "mix", "do":
            return (TEST, "exunit") if any(one.strip(",+") == "test" for one in rest) else (UNKNOWN, "")
    return None


def _git(rest: list[str]) -> Kind:
    """Commits, pushes and merges run a project's hooks, perhaps with its tests; everything else only displays."""
    verb = next((word for at, word in enumerate(rest) if not word.startswith("-") and rest[at - 1 : at] != ["-C"]), "")
    runs = verb in ("commit", "push", "merge", "rebase", "am", "hook") or (verb == "bisect" and "run" in rest)
    return (UNKNOWN, "") if runs else (LOOK, "")


def _script(name: str, rest: list[str]) -> Kind | Again:
    """Runners of a project's scripts and targets: package managers, make, task runners, monorepo tools."""
    if name in ("npm", "yarn", "pnpm", "bun"):
        return _package(name, rest)
    names = [word for word in rest if not word.startswith("-") and not is_assignment(word)]
    if name in ("nx", "turbo", "lerna", "moon"):
        targets = [target for word in rest for target in word.replace("=", ",").replace(":", ",").split(",")]
        is_test = any(known.is_testy(target) for target in targets if not target.startswith("-"))
        return (TEST, "") if is_test else (UNKNOWN, "")
    if name in ("cmake", "ninja"):
        if name == "cmake":
            names = [word for at, word in enumerate(rest) if {"--target", "-t"} & set(rest[:at])]
        return (TEST, "") if any(word in _RUN_BY_CMAKE for word in names) else (UNKNOWN, "")
    if name == "composer" and names[:1] in (["install"], ["update"], ["require"]):
        return OTHER, ""
    if any(known.is_testy(word) for word in names):
        return TEST, name if name in ("make", "rake") else ""
    if any(known.SHOWS.intersection(known.pieces(word)) for word in names):
        return LOOK, ""
    if names and all(known.CHORES.intersection(known.pieces(word)) for word in names):
        return OTHER, ""
    return PERHAPS if not names or any(known.OFTEN.intersection(known.pieces(word)) for word in names) else UNKNOWN, ""


def _package(name: str, rest: list[str]) -> Kind | Again:
    at = 0
    while at < len(rest):
        word = rest[at]
        if word.startswith("-"):
            at += 2 if word in known.SCRIPT_VALUES else 1
        elif word in ("run", "run-script", "recursive", "m", "multi"):
            at += 1
        elif name == "yarn" and word in ("workspace", "workspaces"):
            at += 2 if word == "workspace" or rest[at + 1 : at + 2] in (["foreach"], ["run"]) else 1
        else:
            break
    rest = rest[at:]
    if not rest:
        return OTHER, ""
    word = rest[0]
    if name in ("npm", "pnpm") and word in ("t", "tst", "it", "install-test", "cit"):
        return TEST, ""
    if known.RUNNERS.get(word) or (name != "npm" and (word in known.RUNNERS or word in known.SUBCOMMANDS)):
        return rest
    if known.is_testy(word):
        return TEST, ""
    words = known.pieces(word)
    if word in known.INSTALLS:
        return OTHER, ""
    if known.SHOWS.intersection(words):
        return LOOK, ""
    if known.LINTS.intersection(words):
        return OTHER, ""
    return PERHAPS if known.OFTEN.intersection(words) else UNKNOWN, ""


def _sessions(rest: list[str]) -> Kind:
    """tox and nox: the selected environments, if any."""
    asked: list[str] = []
    for before, word in zip(["", *rest], rest, strict=False):
        if before in ("-e", "-s", "--session", "--sessions"):
            asked += word.split(",")
        elif word.startswith(("-e", "-s")) and len(word) > 2:
            asked += word[2:].split(",")
    if asked and all(known.CHORES.intersection(known.pieces(name)) for name in asked):
        return OTHER, ""
    is_other = asked and all({"docs", "build", "release", "publish", "pre"} & set(known.pieces(name)) for name in asked)
    return (UNKNOWN, "") if is_other else (TEST, "")
