"""Tests inside a source file: Rust's `#[cfg(test)] mod tests { … }`. Taken out, and put into another version."""

from __future__ import annotations

import configparser
import json
import re
from collections.abc import Callable
from typing import Any

from ralph.core.lazy_pattern import lazy_pattern
from ralph.proof.file_table import name_of, word_set
from ralph.proof.file_uses import text_of
from ralph.proof.values import FileChange

_MODULE = lazy_pattern(
    r"^[ \t]*#\[cfg\(test\)\]\s*(?:#\[[^\]]*\]\s*)*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{", re.MULTILINE
)
_TEST = lazy_pattern(r"^[ \t]*#\[(?:\w+::)*test\b", re.MULTILINE)
_ONLY_TESTS = lazy_pattern(r"(?:^|/)(?:tests|benches)/")
_PIECE = lazy_pattern(
    r'//[^\n]*|/\*.*?\*/|r(?P<hashes>#*)".*?"(?P=hashes)|"(?:\\.|[^"\\])*"|\'(?:\\.[^\']{0,8}|[^\'\\])\'|[{}]',
    re.DOTALL,
)


def has_inline_tests(path: str) -> bool:
    """Whether the file may keep tests beside the code. What is below `tests` is nothing but tests."""
    return path.endswith(".rs") and _ONLY_TESTS.search(path) is None


def _spans(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    for module in _MODULE.finditer(text):
        if spans and module.start() < spans[-1][1]:
            continue
        depth = 1
        end = len(text)
        for piece in _PIECE.finditer(text, module.end()):
            depth += {"{": 1, "}": -1}.get(piece[0], 0)
            if depth == 0:
                end = piece.end()
                break
        spans.append((module.start(), end))
    return spans


def inline_tests(text: str) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in _spans(text))


def count_inline_tests(path: str, content: bytes) -> int:
    if not has_inline_tests(path):
        return 0
    return sum(len(_TEST.findall(module)) for module in inline_tests(content.decode("utf-8", "replace")))


def with_tests_of_file(path: str, code: bytes, tests: bytes) -> bytes:
    """`code` with the tests that `tests`, another version of the same file, has inside it."""
    if not has_inline_tests(path):
        return code
    return with_tests_of(code.decode("utf-8", "replace"), tests.decode("utf-8", "replace")).encode()


def with_tests_of(code: str, tests: str) -> str:
    """`code` with the test modules of `tests` instead of its own."""
    modules = list(inline_tests(tests))
    parts: list[str] = []
    done = 0
    for start, end in _spans(code):
        parts += (code[done:start], modules.pop(0) if modules else "")
        done = end
    parts.append(code[done:])
    text = "".join(parts)
    return text.rstrip("\n") + "\n\n" + "\n\n".join(modules) + "\n" if modules else text


_PACKAGE = word_set(
    "name version description keywords homepage bugs license author contributors maintainers funding files exports "
    "main module browser bin man types typings typesVersions directories repository type imports sideEffects unpkg "
    "jsdelivr dependencies devDependencies peerDependencies peerDependenciesMeta optionalDependencies "
    "bundledDependencies bundleDependencies dependenciesMeta overrides resolutions engines devEngines os cpu libc "
    "private publishConfig workspaces packageManager pnpm catalog catalogs volta"
)
_COMPOSER = word_set(
    "name version description keywords homepage license authors support funding type require require-dev conflict "
    "replace provide suggest autoload repositories minimum-stability prefer-stable bin archive abandoned"
)
# Tables that say what the product is and needs. All others of the file say how it is checked.
_PYPROJECT = lazy_pattern(
    r"(?:project|build-system|dependency-groups|tool\.(?:poetry|uv|rye|flit|maturin|setuptools|setuptools_scm"
    r"|setuptools-git-versioning|scikit-build|meson-python|hatch\.(?:build|version|metadata)|pdm\.(?:build|version"
    r"|dev-dependencies|source|resolution|publish)|versioningit|bumpversion|bumpver|commitizen|towncrier"
    r"|semantic_release|pixi\.(?:dependencies|pypi-dependencies|workspace|project|feature)))(?:\..*)?"
)
_CARGO = lazy_pattern(
    r"(?:package|workspace|features|badges|patch|replace|bin|lib|target|(?:dev-|build-)?dependencies)(?:\..*)?"
)
_PIPFILE = lazy_pattern(r"(?:source|packages|dev-packages|requires|[\w-]+-packages)(?:\..*)?")
_CFG = lazy_pattern(r"metadata|options(?:\..*)?|bdist_wheel|sdist|egg_info|bumpversion.*|build_ext|compile_catalog")
# Keys that decide although their table does not.
_ALWAYS = lazy_pattern(
    r"(?:project\.entry-points|tool\.poetry\.plugins)\.pytest11(?:\..*)?|package\.(?:auto\w+|build)"
    r"|(?:lib|bin)(?:\.\d+)?\.(?:test|doctest|harness|bench|path)|workspace\.(?:lints|exclude|default-members)(?:\..*)?"
    r"|(?:target\..*\.)?lints(?:\..*)?|scripts(?:\..*)?|options\.entry_points\.pytest11"
)
_INI_DEPENDENCIES = frozenset({"deps", "extras", "dependency_groups", "requires", "constraints"})


def as_before(change: FileChange) -> bytes | None:
    """The content for the second pass. None: the file is not there."""
    if has_inline_tests(change.path) and change.new is not None:
        return with_tests_of(text_of(change.new), text_of(change.old)).encode()
    merge = _MERGES.get(name_of(change.path))
    if merge is None or change.new is None:
        return change.old if not has_inline_tests(change.path) else None
    try:
        old, new = (change.old or b"").decode(), change.new.decode()
        merged = merge(old, new)
    except (ValueError, TypeError, AttributeError, KeyError, RecursionError, configparser.Error):
        return change.old
    if merged is None:
        return change.old
    return {new: change.new, old: change.old}.get(merged, merged.encode())


def as_after(change: FileChange) -> bytes | None:
    """The content for running the new tests on the old code: the new file, or the old code with the new tests in it."""
    if has_inline_tests(change.path) and change.old is not None and change.new is not None:
        return with_tests_of(text_of(change.old), text_of(change.new)).encode()
    return change.new if not has_inline_tests(change.path) else change.old


def _json_merge(keys: frozenset[str]) -> Callable[[str, str], str | None]:
    def merge(old: str, new: str) -> str | None:
        before, after = json.loads(old or "{}"), json.loads(new)
        merged = {key: value for key, value in after.items() if key in keys or before.get(key, object()) == value}
        merged.update({key: value for key, value in before.items() if key not in keys})
        if merged == after:
            return new
        return old if merged == before else json.dumps(merged, indent=2, ensure_ascii=False) + "\n"

    return merge


_HEADER = lazy_pattern(r"^\[{1,2}[ \t]*(?P<name>[^\[\]\n]+?)[ \t]*\]{1,2}[ \t]*(?:[#;].*)?$", re.MULTILINE)


def _sections(text: str) -> list[tuple[str, str]]:
    """The text in pieces, each with the name of its table; the first piece, before any table, has none."""
    heads = list(_HEADER.finditer(text))
    starts = [head.start() for head in heads] + [len(text)]
    names = [re.sub(r"[\"'\s]", "", head["name"]) for head in heads]
    return [("", text[: starts[0]]), *((name, text[starts[at] : starts[at + 1]]) for at, name in enumerate(names))]


def _toml_merge(keeps: re.Pattern[str]) -> Callable[[str, str], str | None]:
    def decides(name: str) -> bool:
        return _ALWAYS.fullmatch(name) is not None or keeps.fullmatch(name) is None

    def merge(old: str, new: str) -> str | None:
        import tomllib  # few stories change such a file

        before, after = _flat(tomllib.loads(old)), _flat(tomllib.loads(new))
        pieces = [piece for name, piece in _sections(new) if not name or not decides(name)]
        pieces += [piece for name, piece in _sections(old) if name and decides(name)]
        merged = "".join(piece if piece.endswith("\n") or not piece else piece + "\n" for piece in pieces)
        result = _flat(tomllib.loads(merged))
        wanted = {key: value for key, value in before.items() if decides(key)}
        wanted |= {key: value for key, value in after.items() if not decides(key)}
        if result != wanted:  # a table written in another way: the whole file as it was
            return None
        return new if result == after else old if result == before else merged

    return merge


def _flat(value: Any, key: str = "") -> dict[str, Any]:
    if isinstance(value, dict) and value:
        items = [(str(name).replace(".", "_"), inner) for name, inner in value.items()]
    elif isinstance(value, list) and value and all(isinstance(inner, dict) for inner in value):
        items = [(str(at), inner) for at, inner in enumerate(value)]
    else:
        return {key: value} if key else {}
    return {
        path: leaf for name, inner in items for path, leaf in _flat(inner, f"{key}.{name}" if key else name).items()
    }


def _ini_merge(keeps: re.Pattern[str]) -> Callable[[str, str], str | None]:
    def merge(old: str, new: str) -> str | None:
        before, after = _sections(old), _sections(new)
        latest = {name: _options(piece) for name, piece in after}
        pieces = [piece for name, piece in after if name and _is_kept(name, piece, keeps)]
        pieces += [
            _with_dependencies(piece, latest.get(name, {}))
            for name, piece in before
            if not (name and _is_kept(name, piece, keeps))
        ]
        merged = "".join(piece if piece.endswith("\n") or not piece else piece + "\n" for piece in pieces)
        parsed = [_parsed(text) for text in (merged, old, new)]
        return new if parsed[0] == parsed[2] else old if parsed[0] == parsed[1] else merged

    return merge


def _is_kept(name: str, piece: str, keeps: re.Pattern[str]) -> bool:
    return keeps.fullmatch(name) is not None and "pytest11" not in piece


def _parsed(text: str) -> dict[str, dict[str, str | None]]:
    parser = configparser.RawConfigParser(allow_no_value=True)
    parser.read_string(text)
    return {name: dict(parser.items(name)) for name in parser.sections()}


_OPTION = lazy_pattern(
    r"^(?P<key>[\w.-]+)[ \t]*[=:][^\n]*\n?(?:(?:[ \t]+[^\n]*|[#;][^\n]*)?\n(?=[ \t]|[#;])|[ \t]+[^\n]+\n?)*",
    re.MULTILINE,
)


def _options(piece: str) -> dict[str, str]:
    return {match["key"]: match[0] for match in _OPTION.finditer(piece)}


def _with_dependencies(piece: str, latest: dict[str, str]) -> str:
    """A section as it was, with the dependencies that its new version lists."""
    for key, text in _options(piece).items():
        if key in _INI_DEPENDENCIES and key in latest:
            ending = "" if latest[key].endswith("\n") else "\n"
            piece = piece.replace(text, latest[key] + ending, 1)
    added = [text for key, text in latest.items() if key in _INI_DEPENDENCIES and key not in _options(piece)]
    return piece if not added else piece.rstrip("\n") + "\n" + "".join(added)


_NOTHING = lazy_pattern(r"(?!)")
_MERGES: dict[str, Callable[[str, str], str | None]] = {
    "package.json": _json_merge(_PACKAGE),
    "composer.json": _json_merge(_COMPOSER),
    "pyproject.toml": _toml_merge(_PYPROJECT),
    "Cargo.toml": _toml_merge(_CARGO),
    "Pipfile": _toml_merge(_PIPFILE),
    "setup.cfg": _ini_merge(_CFG),
    "tox.ini": _ini_merge(_NOTHING),
}
