"""Which file uses which: imports, names of data files in tests, scripts in commands, pytest plugins. By text."""

from __future__ import annotations

import json
import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from ralph.core.lazy_pattern import lazy_pattern
from ralph.proof.file_table import in_test_folder, language_of, name_of

_PYTHON_IMPORT = lazy_pattern(
    r"^[ \t]*(?:from[ \t]+(?P<module>[.\w]+)[ \t]+import[ \t]+(?P<names>\([^)]*\)|[^\n#]+)"
    r"|import[ \t]+(?P<plain>[^\n#]+))"
    r"|(?:import_module|__import__|run_module|importorskip)\(\s*[\"'](?P<call>[.\w]+)[\"']",
    re.MULTILINE,
)
_QUOTED_IMPORT = lazy_pattern(
    r"(?:\bfrom|\bimport|\b(?:require(?:_relative|_once|Actual)?|import|mock|doMock|load"
    r"|include(?:_once)?)\s*\(?)"
    r"\s*[\"'`](?P<target>[^\"'`\n]+)[\"'`]"
)  # fmt: skip
_CODE_SUFFIX = lazy_pattern(r"(?:/index|/mod|/__init__)?\.\w+$")


def text_of(content: bytes | None) -> str:
    return (content or b"").decode("utf-8", "replace")


@lru_cache(maxsize=4096)
def _imports(path: str, text: str) -> frozenset[str]:
    """What a file imports: dotted names (absolute) for Python, paths without a suffix for others."""
    if language_of(path) == "python":
        return frozenset(_python_imports(path, text))
    folder = posixpath.dirname(path)
    targets = set()
    for match in _QUOTED_IMPORT.finditer(text):
        target = match["target"]
        is_relative = target.startswith(".") or "require_relative" in match[0]
        target = posixpath.normpath(posixpath.join(folder, target)) if is_relative else target.lstrip("@~/")
        targets.add(re.sub(r"\.(?:[cm]?[jt]sx?|rb|php)$", "", target))
    return frozenset(targets)


def _python_imports(path: str, text: str) -> Iterator[str]:
    package = posixpath.dirname(path).split("/") if "/" in path else []
    for match in _PYTHON_IMPORT.finditer(text):
        if match["call"]:
            yield match["call"].lstrip(".")
        elif match["plain"]:
            yield from (part.split(" as ")[0].strip() for part in match["plain"].split(","))
        else:
            module = match["module"]
            dots = len(module) - len(module.lstrip("."))
            base = package[: len(package) - dots + 1] if dots else []
            whole = ".".join(["/".join(base).replace("/", ".")] if base else []) + ("." if base else "")
            module = (whole + module.lstrip(".")).strip(".")
            yield module
            names = re.sub(r"[()#]", " ", match["names"])
            yield from (f"{module}.{part.split(' as ')[0].strip()}".strip(".") for part in names.split(","))


def does_import(path: str, text: str, target: str) -> bool:
    """Whether the file at `path` imports the file at `target`."""
    if path == target:
        return False
    stem = _CODE_SUFFIX.sub("", target)
    if name_of(stem) not in text:
        return False
    if language_of(target) != "python":
        targets = _imports(path, text)
        return stem in targets or any("/" in other and stem.endswith(f"/{other}") for other in targets)
    if language_of(path) != "python":
        return False
    return not _names_of_module(stem, posixpath.dirname(path)).isdisjoint(_imports(path, text))


def _names_of_module(stem: str, importer: str) -> set[str]:
    """Under which dotted names a module can be imported: from the root, `src`, a test folder or the importer's own."""
    parts = stem.split("/")
    names = {".".join(parts)}
    for at in range(1, len(parts)):
        root = "/".join(parts[:at])
        if (
            name_of(root) in ("src", "lib", "python")
            or in_test_folder(root + "/")
            or f"{importer}/".startswith(f"{root}/")
        ):
            names.add(".".join(parts[at:]))
    return names


def importers(target: str, files: Mapping[str, str]) -> list[str]:
    return [path for path, text in files.items() if does_import(path, text, target)]


_LISTS_FOLDER = lazy_pattern(
    r"\b(?:i?glob|rglob|iterdir|listdir|scandir|walk|readdir(?:Sync)?|ReadDir|WalkDir|Glob)\b|\*\."
)


def does_mention(text: str, path: str, folders: Sequence[str]) -> bool:
    """Whether the text has the name of a data file, or reads one of the folders around it as a whole."""
    name, folder = name_of(path), name_of(posixpath.dirname(path))
    if name in text and re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text):
        return True
    if any(part in text and _is_quoted(part, text) for part in folders) and _LISTS_FOLDER.search(text):
        return True
    return bool(folder) and folder in text and _is_quoted(folder, text) and _is_quoted(name.split(".")[0], text)


def _is_quoted(part: str, text: str) -> bool:
    return re.search(rf"[\"'`/]{re.escape(part)}[\"'`/.]", text) is not None


_PLUGIN_LIST = lazy_pattern(
    r"^[ \t]*pytest_plugins\s*(?::[^=\n]+)?[+=]+\s*(?P<value>[\[(][^\])]*[\])]|[^\n]+)", re.MULTILINE
)
_PLUGIN_OPTION = lazy_pattern(
    r"(?<![\w-])-p[ =\"',\[\]]*(?!no:)(?P<name>[A-Za-z_][\w.]*)|\bPYTEST_PLUGINS=[\"']?(?P<env>[\w.,]+)"
)


def plugin_modules(texts: Sequence[str], commands: Sequence[str]) -> set[str]:
    """Dotted names of modules that pytest is told to load."""
    modules: set[str] = set()
    for text in texts:
        for match in _PLUGIN_LIST.finditer(text):
            modules.update(re.findall(r"[\"']([\w.]+)[\"']", match["value"]))
    for line in commands:
        for match in _PLUGIN_OPTION.finditer(line):
            modules.update((match["name"] or match["env"]).split(","))
    return modules


def is_module(path: str, modules: set[str]) -> bool:
    stem = _CODE_SUFFIX.sub("", path).replace("/", ".")
    return any(stem == module or stem.endswith(f".{module}") for module in modules)


_SEPARATOR = lazy_pattern(r"&&|\|\||[;\n]|(?<![&>])&(?!&)")
_INTERPRETER = lazy_pattern(r"(?:python[\d.]*|node|bash|sh|zsh|ksh|dash|ruby|php|perl|deno|tsx|ts-node|bun|source|\.)")
_PREFIX = lazy_pattern(
    r"\w+=.*|env|time|exec|command|sudo|nice|timeout|\d+[smh]?|@|-|!|npx|poetry|uv|pipenv|pdm|hatch|run|if|then|do"
)
_OPERAND_OPTION = lazy_pattern(
    r"-(?:f|c|-config|-file|-makefile|-rcfile|-require|r|-import|-loader|-rootdir|-confcutdir|-config-file)"
)
_FILE_TOOLS = frozenset({"test", "[", "[[", "rm", "cp", "mv", "ls", "grep", "wc", "cut", "tail"})
_COMPARER = frozenset({"diff", "cmp", "comm", "colordiff"})


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def command_lines(path: str, text: str) -> list[str]:
    """The commands that a build file or script runs, as far as they can be read without its tool."""
    if name_of(path) == "package.json":
        try:
            scripts = json.loads(text).get("scripts", {})
        except (ValueError, AttributeError):
            return []
        return [value for value in scripts.values() if isinstance(value, str)] if isinstance(scripts, dict) else []
    return [re.sub(r"^[\s@+-]*(?:\w+:\s+)?", "", line) for line in text.replace("\\\n", " ").split("\n")]


def named_paths(command: str) -> Iterator[tuple[str, bool]]:
    """Paths that decide a command's result, and whether each is executed: scripts, configuration, expected output."""
    for part in _SEPARATOR.split(command):
        first, *piped = part.split("|")
        words = _words(first)
        while words and _PREFIX.fullmatch(words[0]):
            words = words[1:]
        if not words:
            continue
        yield from ((_plain(match), False) for match in re.findall(r"(?<!<)<\s*([\w./-]+)", part))
        if words[0] in ("invoke", "inv"):
            yield "tasks.py", False
        for at, word in enumerate(words[1:] if words[0] not in _FILE_TOOLS else (), 1):
            option, equals, value = word.partition("=")
            if equals and _OPERAND_OPTION.fullmatch(option):
                yield _plain(value), False
            elif _OPERAND_OPTION.fullmatch(words[at - 1]):
                yield _plain(word), False
        for words_of_part in (words, *map(_words, piped)):
            if words_of_part and words_of_part[0] in _COMPARER:
                yield from ((_plain(word), False) for word in words_of_part[1:] if not word.startswith("-"))
        if not piped:  # what is piped on is examined by the next command: it is the product
            yield from _executed(words)


def _executed(words: list[str]) -> Iterator[tuple[str, bool]]:
    if not _INTERPRETER.fullmatch(name_of(words[0])):
        yield _plain(words[0]), True
        return
    for at, word in enumerate(words[1:], 1):
        if word == "-m":
            module = "".join(words[at + 1 : at + 2]).replace(".", "/")
            yield from ((module + ending, True) for ending in (".py", "/__main__.py"))
            return
        if word in ("-c", "--eval") or (word == "-e" and not name_of(words[0]).endswith("sh")):
            return
        if not word.startswith("-"):
            yield _plain(word), True
            return


def _plain(word: str) -> str:
    return posixpath.normpath(word) if word else ""
