"""Runners of a project's scripts and targets: package managers, make, task runners, monorepo tools."""

from ralph.hooks.results.kinds import LOOK, OTHER, PERHAPS, TEST, UNKNOWN, Again, Kind
from ralph.hooks.results.names import SHOWS, is_testy, pieces
from ralph.hooks.results.vocabulary import ANY_RUNNER, DIRECT, SUBCOMMANDS
from ralph.hooks.results.vocabulary import words as words_of
from ralph.hooks.results.wrappers import is_assignment

_LINTS = words_of("lint linting format fmt typecheck types typing tsc prettier eslint style mypy ruff")
_OFTEN = words_of("check checks ci verify validate validation precommit prepush qa all default")
_CHORES = _LINTS | {"clean", "install", "deps"}
_TAKES_VALUE = words_of(
    "--prefix -w --workspace -C --cwd --dir --filter -F --userconfig --loglevel --concurrency --workspace-concurrency "
    "--reporter --scope --since -j --config --env-file"
)
_RUN_BY_CMAKE = ("test", "check", "RUN_TESTS")
"""Other targets with `test` in their name only build."""
_INSTALLS = words_of(
    "install i ci add remove rm uninstall update up audit ls list outdated view info why link publish pack init"
)


def kind_of(name: str, rest: list[str]) -> Kind | Again:
    if name in ("npm", "yarn", "pnpm", "bun"):
        return _package(name, rest)
    names = [word for word in rest if not word.startswith("-") and not is_assignment(word)]
    if name in ("nx", "turbo", "lerna", "moon"):
        targets = [target for word in rest for target in word.replace("=", ",").replace(":", ",").split(",")]
        is_test = any(is_testy(target) for target in targets if not target.startswith("-"))
        return (TEST, "") if is_test else (UNKNOWN, "")
    if name == "cmake":
        return _cmake(rest)
    if name == "ninja":
        return (TEST, "") if any(word in _RUN_BY_CMAKE for word in names) else (UNKNOWN, "")
    if name == "composer" and names[:1] in (["install"], ["update"], ["require"]):
        return OTHER, ""
    if any(is_testy(word) for word in names):
        return TEST, name if name in ("make", "rake") else ""
    if any(piece in SHOWS for word in names for piece in pieces(word)):
        return LOOK, ""
    if names and all(any(piece in _CHORES for piece in pieces(word)) for word in names):
        return OTHER, ""
    return PERHAPS if not names or any(_OFTEN & set(pieces(word)) for word in names) else UNKNOWN, ""


def _cmake(rest: list[str]) -> Kind:
    targets = [word for at, word in enumerate(rest) if {"--target", "-t"} & set(rest[:at])]
    return (TEST, "") if any(target in _RUN_BY_CMAKE for target in targets) else (UNKNOWN, "")


def _package(name: str, rest: list[str]) -> Kind | Again:
    at = 0
    while at < len(rest):
        word = rest[at]
        if word.startswith("-"):
            at += 2 if word in _TAKES_VALUE else 1
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
    if word in DIRECT or (name in ("yarn", "pnpm", "bun") and (word in ANY_RUNNER or word in SUBCOMMANDS)):
        return rest
    if is_testy(word):
        return TEST, ""
    if word in _INSTALLS:
        return OTHER, ""
    words = pieces(word)
    if any(piece in SHOWS for piece in words):
        return LOOK, ""
    if any(piece in _LINTS for piece in words):
        return OTHER, ""
    return PERHAPS if _OFTEN & set(words) else UNKNOWN, ""


def sessions(rest: list[str]) -> Kind:
    """tox and nox: the selected environments, if any."""
    asked: list[str] = []
    for before, word in zip(["", *rest], rest, strict=False):
        if before in ("-e", "-s", "--session", "--sessions"):
            asked += word.split(",")
        elif word.startswith(("-e", "-s")) and len(word) > 2 and not word.startswith("--"):
            asked += word[2:].split(",")
    if asked and all(_CHORES & set(pieces(name)) for name in asked):
        return OTHER, ""
    if asked and all({"docs", "build", "release", "publish", "pre"} & set(pieces(name)) for name in asked):
        return UNKNOWN, ""
    return TEST, ""
