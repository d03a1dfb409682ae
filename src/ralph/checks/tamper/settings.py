"""Settings files of tools as flat tables: `mypy.strict` → its values, whichever file says so."""

from __future__ import annotations

import configparser
import re
import tomllib
from collections.abc import Iterator
from typing import Any

from msgspec import Struct

from ralph.checks.tamper.lexing import lex
from ralph.checks.tamper.source import line_at

_MOST = 5000


class Setting(Struct, frozen=True):
    values: tuple[str, ...]
    path: str
    line: int


Table = dict[str, Setting]

_KINDS: tuple[tuple[str, str, str], ...] = (
    # file name, format, the tool its keys belong to
    (r"pyproject\.toml|uv\.toml|poetry\.toml", "toml", ""),
    (r"\.?ruff\.toml", "toml", "ruff"),
    (r"Cargo\.toml|clippy\.toml|\.clippy\.toml|nextest\.toml", "toml", "cargo"),
    (r"setup\.cfg|tox\.ini|pytest\.ini|\.pytest\.ini", "ini", ""),
    (r"\.coveragerc", "ini", "coverage"),
    (r"mypy\.ini|\.mypy\.ini|\.flake8|\.pylintrc|pylintrc|\.isort\.cfg|\.bandit", "ini", ""),
    (r"package\.json|composer\.json", "object", ""),
    (r"tsconfig[\w.-]*\.json|jsconfig\.json", "object", "tsconfig"),
    (r"jest\.config\.\w+|jest[\w.-]*\.config\.\w+", "object", "jest"),
    (r"vite(?:st)?\.config\.\w+|vitest\.workspace\.\w+", "object", "vitest"),
    (r"\.eslintrc(?:\.(?:json|c?js))?|eslint\.config\.\w+", "object", "eslint"),
    (r"\.nycrc(?:\.json)?|\.c8rc(?:\.json)?|nyc\.config\.js", "object", "nyc"),
    ((r"\.mocharc\.(?:json|c?js)|karma\.conf\.js|playwright\.config\.\w+|cypress\.config\.\w+"
r"|ava\.config\.\w+"), "object", "mocha"),
    (r"biome\.jsonc?", "object", "biome"),
    (r"pyrightconfig\.json", "object", "pyright"),
    (r"\.eslintrc\.ya?ml", "yaml", "eslint"),
    (r"\.mocharc\.ya?ml", "yaml", "mocha"),
    (r"\.?codecov\.ya?ml", "yaml", "codecov"),
    (r"\.rubocop(?:_todo)?\.yml", "yaml", "rubocop"),
    (r"\.golangci\.(?:ya?ml|json)", "yaml", "golangci"),
    (r"\.pre-commit-config\.ya?ml", "yaml", "pre-commit"),
    (r"phpstan(?:-baseline)?\.neon(?:\.dist)?", "yaml", "phpstan"),
    (r"phpunit\.xml(?:\.dist)?", "xml", "phpunit"),
    (r"pom\.xml|[\w.-]+\.csproj|Directory\.Build\.props|[\w.-]+\.runsettings", "xml", "build"),
    (r"[\w.-]+\.gradle(?:\.kts)?", "pairs", "build"),
    (r"\.eslintignore|\.flake8ignore|\.mypyignore", "list", "eslint.ignores"),
    (r"\.simplecov|\.rspec", "list", "rspec"),
)  # fmt: skip
_COMPILED = [(re.compile(pattern), form, tool) for pattern, form, tool in _KINDS]
_RENAMED = (
    ("tool.pytest.ini_options.", "pytest."), ("tool:pytest.", "pytest."), ("tool.", ""), ("coverage:", "coverage."),
    ("eslintconfig.", "eslint."), ("ruff.lint.", "ruff."), ("c8.", "nyc."), ("basedpyright.", "pyright."),
)  # fmt: skip


def kind_of(path: str) -> tuple[str, str] | None:
    name = path.rsplit("/", 1)[-1]
    return next(((form, tool) for pattern, form, tool in _COMPILED if pattern.fullmatch(name)), None)


def settings_of(path: str, text: str) -> Table:
    """Keys in lower case, values as text. A file that cannot be read has no settings."""
    kind = kind_of(path)
    if kind is None:
        return {}
    form, tool = kind
    found: dict[str, tuple[list[str], int]] = {}
    for count, (key, value, line) in enumerate(_READERS[form](text)):
        if count > _MOST:
            break
        name = _renamed(f"{tool}.{key}" if tool else key)
        values, first = found.setdefault(name, ([], line))
        values.append(value)
        found[name] = (values, first)
    return {name: Setting(tuple(values), path, line) for name, (values, line) in found.items()}


def _renamed(key: str) -> str:
    key = key.lower()
    for beginning, name in _RENAMED:
        if key.startswith(beginning):
            key = name + key[len(beginning) :]
    return key


Row = tuple[str, str, int]


def _toml(text: str) -> Iterator[Row]:
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError, ValueError):
        return
    yield from _flat(document, "", text)


def _flat(value: Any, key: str, text: str, depth: int = 0) -> Iterator[Row]:
    if depth > 20:
        return
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _flat(inner, f"{key}.{name}" if key else str(name), text, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            yield from _flat(inner, key, text, depth + 1)
    else:
        yield key, _scalar(value), _line_of(text, key)


def _scalar(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _line_of(text: str, key: str) -> int:
    last = re.escape(key.rpartition(".")[2])
    match = re.search(rf"^[ \t]*[\"']?{last}[\"']?\s*[=:]", text, re.MULTILINE)
    return line_at(text, match.start()) if match else 1


def _ini(text: str) -> Iterator[Row]:
    parser = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=", ":"))
    try:
        parser.read_string(text)
    except (configparser.Error, ValueError, AttributeError):
        return
    for section in parser.sections():
        for key, value in parser.items(section):
            name = f"{section}.{key}"
            line = _line_of(text, key)
            whole = (value or "").strip()
            if key in ("addopts", "commands") or not re.search(r"[,\n]", whole):
                yield name, whole, line
            else:
                yield from ((name, part.strip(), line) for part in re.split(r"[,\n]", whole) if part.strip())


_OBJECT_TOKEN = re.compile(
    r"(?P<string>\"(?:\\.|[^\"\\\n])*+\"|'(?:\\.|[^'\\\n])*+'|`(?:\\.|[^`\\])*+`)"
    r"|(?P<word>-?[\w$.]+)|(?P<sign>[{}\[\]:,])"
)


def _object(text: str) -> Iterator[Row]:
    """JSON, JSON with comments, and the object literals of a JavaScript file."""
    code = lex(text, "javascript").code
    keys: list[tuple[str, str]] = []
    pending = ""
    matches = list(_OBJECT_TOKEN.finditer(code))
    newlines = 1
    seen = 0
    for at, match in enumerate(matches[: 4 * _MOST]):
        newlines += code.count("\n", seen, match.start())
        seen = match.start()
        sign = match["sign"]
        if sign in ("{", "["):
            keys.append((sign, pending))
            pending = ""
        elif sign in ("}", "]"):
            if keys:
                keys.pop()
        elif sign is None:
            value = match[0].strip("\"'`")
            in_list = bool(keys) and keys[-1][0] == "["
            following = matches[at + 1]["sign"] if at + 1 < len(matches) else None
            if following == ":" and not in_list:
                pending = value
                continue
            path = ".".join(part for part in (*(key for _, key in keys), pending) if part)
            if path:
                yield path, value, newlines
            if following in (",", "}", None) or match["word"] is None:
                pending = ""


_YAML_LINE = re.compile(
    r"^(?P<indent>[ ]*)(?P<dash>(?:-[ ]+)*)(?:(?P<key>[\w./@\"'*-]+)[ ]*:(?=[ ]|$))?[ ]*(?P<value>[^#\n]*)"
)


def _yaml(text: str) -> Iterator[Row]:
    """Keys by indentation: enough for linter settings, and fast."""
    stack: list[tuple[int, str]] = []
    for number, line in enumerate(text.split("\n")[:_MOST], 1):
        match = _YAML_LINE.match(line)
        if match is None or not line.strip() or line.lstrip().startswith("#"):
            continue
        indent = len(match["indent"]) + len(match["dash"])
        while (
            stack
            and stack[-1][0] >= indent
            and not (match["dash"] and not match["key"] and stack[-1][0] == len(match["indent"]))
        ):
            stack.pop()
        value = match["value"].strip().strip("\"'")
        if match["key"]:
            stack.append((indent, match["key"].strip("\"'")))
        path = ".".join(key for _, key in stack)
        if value and path:
            inner = value[1:-1].split(",") if value.startswith("[") and value.endswith("]") else [value]
            yield from ((path, item.strip().strip("\"'"), number) for item in inner)


def _xml(text: str) -> Iterator[Row]:
    for match in re.finditer(r"<(?P<tag>[\w.:-]+)(?P<attributes>[^<>]*)>(?P<value>[^<]*)", text):
        line = line_at(text, match.start())
        if match["value"].strip():
            yield match["tag"], match["value"].strip(), line
        for name, value in re.findall(r"([\w.:-]+)\s*=\s*\"([^\"]*)\"", match["attributes"]):
            yield f"{match['tag']}.{name}", value, line


def _pairs(text: str) -> Iterator[Row]:
    for number, line in enumerate(lex(text, "java").code.split("\n"), 1):
        match = re.match(r"\s*(?P<key>[\w.]+)\s*(?:=|:|\s)\s*(?P<value>[^{}]+?)\s*$", line)
        if match:
            yield match["key"], match["value"].strip("\"'() "), number


def _list(text: str) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            yield "line", line.strip(), number


_READERS = {"toml": _toml, "ini": _ini, "object": _object, "yaml": _yaml, "xml": _xml, "pairs": _pairs, "list": _list}
