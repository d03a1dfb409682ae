"""Whether tests were only moved, renamed or added to, and which tests no longer run. When unsure: not only moved."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from ralph.core.lazy_pattern import lazy_pattern
from ralph.core.proof import Tests
from ralph.proof.file_table import Role, language_of, name_of, role_of, word_set
from ralph.proof.file_uses import text_of
from ralph.proof.restore import as_before, has_inline_tests, inline_tests
from ralph.proof.values import FileChange

Tokens = tuple[str, ...]
ANY_NAME = "<name>"
"""Stands for the name of a test: renaming it changes no expectation."""


class Case(Struct, frozen=True):
    """A test: its name, its code, and the blocks around it with what they share."""

    name: str
    code: Tokens
    around: Tokens = ()


class TestCode(Struct):
    __test__ = False
    cases: list[Case] = field(default_factory=list)
    imports: dict[str, Tokens] = field(default_factory=dict)
    """Bound name → the import."""
    definitions: dict[str, Tokens] = field(default_factory=dict)
    ambient: list[Tokens] = field(default_factory=list)
    """What affects every test of the file: marks, automatic fixtures, hooks, statements."""


def test_code(path: str, text: str) -> TestCode | None:
    """None: the language is not supported, or the file does not parse."""
    language = language_of(path)
    if language == "python":
        return _python(text)
    return _braces(text, language) if language in ("javascript", "go", "rust") else None


test_code.__test__ = False  # type: ignore[attr-defined]

_AMBIENT_NAME = lazy_pattern(
    r"pytest\w*|setup\w*|teardown\w*|set[uU]p\w*|tear[dD]own\w*|load_tests|__\w+__|collect_\w+"
)


def _python(text: str) -> TestCode | None:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    code = TestCode()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            code.imports.update(_python_imports(node))
            if "*" in code.imports:
                code.ambient.append(code.imports.pop("*"))
        elif isinstance(node, ast.ClassDef) and _holds_tests(node):
            code.cases += _class_cases(node, ())
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
            code.cases.append(_python_case(node, ()))
        elif (names := _bound_names(node)) and not any(_AMBIENT_NAME.fullmatch(name) for name in names):
            tokens = _python_tokens(node)
            code.definitions.update(dict.fromkeys(names, tokens))
            if "autouse" in tokens:
                code.ambient.append(tokens)
        elif not isinstance(node, ast.Pass):
            code.ambient.append(_python_tokens(node))
    names = [case.name for case in code.cases]
    return code if len(names) == len(set(names)) else None  # the second of a name replaces the first


def _python_imports(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, Tokens]]:
    for alias in node.names:
        if isinstance(node, ast.Import):
            yield alias.asname or alias.name.split(".")[0], ("import", alias.name)
        else:
            yield alias.asname or alias.name, ("from", "." * node.level + (node.module or ""), alias.name)


def _holds_tests(node: ast.ClassDef) -> bool:
    return node.name.startswith("Test") or any(
        isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef) and inner.name.startswith("test")
        for inner in node.body
    )


def _class_cases(node: ast.ClassDef, around: Tokens) -> Iterator[Case]:
    shared = around + tuple(token for part in (*node.decorator_list, *node.bases) for token in _python_tokens(part))
    inner = [
        part
        for part in node.body
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef) and part.name.startswith("test")
    ]
    for part in node.body:
        if part not in inner and not isinstance(part, ast.ClassDef | ast.Pass):
            shared += ("{", *_python_tokens(part), "}")
    for function in inner:
        case = _python_case(function, shared)
        yield Case(f"{node.name}::{case.name}", case.code, case.around)
    for part in node.body:
        if isinstance(part, ast.ClassDef):
            for case in _class_cases(part, shared):
                yield Case(f"{node.name}::{case.name}", case.code, case.around)


def _python_case(node: ast.FunctionDef | ast.AsyncFunctionDef, around: Tokens) -> Case:
    name = node.name
    node.name = "renamed"
    tokens = list(_python_tokens(node))
    tokens[tokens.index("renamed", tokens.index("def"))] = ANY_NAME
    node.name = name
    return Case(name, tuple(tokens), around)


def _bound_names(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    names = [target.id for target in targets if isinstance(target, ast.Name)]
    return names if len(names) == len(targets) else []


def _python_tokens(node: ast.AST) -> Tokens:
    return _tokens(ast.unparse(node), "python")


_STRING = r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`"
_LEXERS = {
    "python": lazy_pattern(rf"(?P<string>[rbfuRBFU]{{0,2}}(?:{_STRING}))|(?P<other>\w+|[^\w\s])", re.DOTALL),
    "javascript": lazy_pattern(
        rf"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>{_STRING}"
        r"|(?<=[(,=:\[!&|?{};\n ])/(?![*/\s])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*)"
        r"|(?P<other>[\w$]+|[^\w\s])",
        re.DOTALL,
    ),
    "go": lazy_pattern(rf"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>{_STRING})|(?P<other>\w+|[^\w\s])", re.DOTALL),
    "rust": lazy_pattern(
        r"(?P<comment>//[^\n]*|/\*.*?\*/)"
        r"|(?P<string>b?r(?P<hashes>#*)\".*?\"(?P=hashes)|b?\"(?:\\.|[^\"\\])*\"|b?'(?:\\[^']{1,10}|[^'\\])')|(?P<other>\w+|[^\w\s])",
        re.DOTALL,
    ),
}  # fmt: skip


def _tokens(text: str, language: str) -> Tokens:
    return tuple(token for token, _ in _lexed(text, language))


def _lexed(text: str, language: str) -> list[tuple[str, bool]]:
    """Tokens, and whether each begins a line. Quotes are alike; a comma before a closing bracket is dropped."""
    out: list[tuple[str, bool]] = []
    end = 0
    for match in _LEXERS[language].finditer(text):
        starts_line = "\n" in text[end : match.start()]
        if match["other"] is None and match["string"] is None:  # a comment
            continue
        end = match.end()
        token = match[0]
        if match["string"] and language == "javascript" and token[0] == "'" and '"' not in token:
            token = f'"{token[1:-1]}"'
        if token in ")]}" and out and out[-1][0] == ",":
            out.pop()
        out.append((token, starts_line))
    return out


def _closing(lexed: list[tuple[str, bool]], opening: int) -> int:
    depth = 0
    for at in range(opening, len(lexed)):
        depth += (lexed[at][0] in ("(", "[", "{")) - (lexed[at][0] in (")", "]", "}"))
        if depth == 0:
            return at
    return len(lexed) - 1


_CONTINUES = word_set(". , ? : + - * / % = & | < > ) ] } else catch finally")
_EXPECTS_MORE = word_set(". , ? : + - * / % = & | < > ( [ {")


def _statements(lexed: list[tuple[str, bool]]) -> Iterator[list[tuple[str, bool]]]:
    statement: list[tuple[str, bool]] = []
    at = 0
    while at < len(lexed):
        token, starts_line = lexed[at]
        is_attribute = bool(statement) and statement[0][0] == "#" and statement[-1][0] == "]"
        if token == ";" or (
            starts_line
            and statement
            and token not in _CONTINUES
            and statement[-1][0] not in _EXPECTS_MORE
            and not is_attribute
        ):
            if statement:
                yield statement
            statement = []
        if token == ";":
            at += 1
            continue
        end = _closing(lexed, at) if token in ("(", "[", "{") else at
        statement += lexed[at : end + 1]
        at = end + 1
    if statement:
        yield statement


_DEFINES = lazy_pattern(
    r"(?:export |default |async |pub |static )*(?:function \*? ?|class |const |let |var "
    r"|func (?:\( [^)]* \) )?|fn |struct |enum |type |interface |trait )(?P<name>[\w$]+) "
)  # fmt: skip
_IMPORT = lazy_pattern(
    r"(?:import|use|package|extern)\b|(?:const|let|var) .* = (?:await )?(?:require|import) \( \S+ \)(?: \. \w+)*$"
)
_KEYWORDS = word_set("import from const let var require as use self super crate type default package await pub")
_GROUP = frozenset({"describe", "suite", "context"})
_TEST = frozenset({"it", "test", "specify"})


def _braces(text: str, language: str) -> TestCode | None:
    code = TestCode()
    _read_block(_lexed(text, language), code, language, (), ())
    return code if code.cases or code.definitions or code.imports or not text.strip() else None


def _read_block(lexed: list[tuple[str, bool]], code: TestCode, language: str, names: Tokens, around: Tokens) -> None:
    cases: list[tuple[str, Tokens]] = []
    groups: list[tuple[str, Tokens, list[tuple[str, bool]]]] = []
    shared: list[Tokens] = []
    for statement in _statements(lexed):
        tokens = tuple(token for token, _ in statement if token != ";")
        line = " ".join(tokens) + " "
        if not names and _IMPORT.match(line.strip()):
            bound = _bound_by_import(tokens, language)
            code.imports.update(bound)
            if not bound and language != "go":
                code.ambient.append(tokens)  # imported for its effects, or all of it
        elif (opening := _group_body(tokens, language)) is not None:
            end = _closing(statement, opening)
            head, _ = _without_title(tokens[: opening + 1] + tokens[end:], language)
            groups.append((_title(tokens, language), head, statement[opening + 1 : end]))
        elif title := _title(tokens, language):
            cases.append((title, _without_title(tokens, language)[0]))
        elif (match := _DEFINES.match(line)) and not names:
            code.definitions[match["name"]] = tokens
        else:
            shared.append(tokens)
    if not names:
        code.ambient += shared
        shared = []
    inner = around + tuple(token for tokens in shared for token in ("{", *tokens, "}"))
    code.cases += [Case(" ".join((*names, title)), tokens, inner) for title, tokens in cases]
    for title, head, body in groups:
        _read_block(body, code, language, (*names, title), inner + head)


def _bound_by_import(tokens: Tokens, language: str) -> dict[str, Tokens]:
    if language == "go":
        paths = [(tokens[at - 1], token) for at, token in enumerate(tokens) if token[0] == '"']
        return {
            (before if re.fullmatch(r"\w+|\.", before) and before != "import" else path.strip('"').split("/")[-1]): (
                path,
            )
            for before, path in paths
        }
    if language == "rust" and "*" in tokens:
        return {}
    words = [word for word in tokens if re.fullmatch(r"[A-Za-z_$][\w$]*", word) and word not in _KEYWORDS]
    return dict.fromkeys(words, tokens)


def _group_body(tokens: Tokens, language: str) -> int | None:
    """Where the block of a group of tests opens."""
    if language == "rust" and "mod" in tokens and "{" in tokens and tokens.index("mod") < tokens.index("{"):
        return tokens.index("{")
    if language == "javascript" and tokens[0] in _GROUP and "{" in tokens:
        depth = 0
        for at, token in enumerate(tokens):
            depth += (token in ("(", "[")) - (token in (")", "]"))
            if token == "{" and depth == 1 and tokens[at - 1] in (">", ")"):
                return at
    return None


def _without_title(tokens: Tokens, language: str) -> tuple[Tokens, str]:
    at = _title_index(tokens, language)
    return (tokens, "") if at < 0 else ((*tokens[:at], ANY_NAME, *tokens[at + 1 :]), tokens[at])


def _title(tokens: Tokens, language: str) -> str:
    return _without_title(tokens, language)[1].strip("\"'`")


def _title_index(tokens: Tokens, language: str) -> int:
    if language == "javascript" and (tokens[0] in _GROUP or tokens[0] in _TEST) and "(" in tokens:
        return next((at for at, token in enumerate(tokens) if token[0] in "\"'`"), -1)
    if language == "go" and tokens[0] == "func" and re.match(r"(?:Test|Example|Fuzz|Benchmark)", tokens[1]):
        return 1
    if language == "rust" and "mod" in tokens and "{" in tokens and tokens.index("mod") < tokens.index("{"):
        return tokens.index("mod") + 1
    if language == "rust" and tokens[0] == "#" and "fn" in tokens and "test" in " ".join(tokens[: tokens.index("fn")]):
        return tokens.index("fn") + 1
    return -1


_CODE = (Role.TEST, Role.HELPER)
_IGNORED = (Role.SOURCE, Role.DOCS, Role.DEPENDENCIES)


def only_moved(changes: Sequence[FileChange], decided: Sequence[FileChange] = ()) -> bool:
    """Whether no expectation differs: tests were moved, renamed, reformatted or added.

    `changes`: all changes of the story, so that renames in the source are known. `decided`: those of them that
    `files.deciding` selected; a helper among the sources is compared like one among the tests.
    """
    helpers = {change.path for change in decided if role_of(change.path) is Role.SOURCE}
    code = [change for change in changes if role_of(change.path) in _CODE or change.path in helpers]
    code = [change for change in code if not has_inline_tests(change.path) or role_of(change.path) in _CODE]
    code += [_inline(change) for change in changes if _has_changed_inline_tests(change)]
    others = [change for change in changes if change not in code and change.path not in helpers]
    if not _data_only_moved(others):
        return False
    renames = _Renames([change for change in changes if change.path not in helpers])
    pairs = _matched(code, renames)
    return pairs is not None and all(new for _, new in pairs)


def _has_changed_inline_tests(change: FileChange) -> bool:
    return (
        has_inline_tests(change.path)
        and role_of(change.path) not in _CODE
        and _inline(change).old != _inline(change).new
    )


def _inline(change: FileChange) -> FileChange:
    old, new = ("\n".join(inline_tests(text_of(content))).encode() or None for content in (change.old, change.new))
    return FileChange(change.path, old, new)


def _data_only_moved(changes: Sequence[FileChange]) -> bool:
    """Data and configuration: as before, moved as it was, or new data."""
    others = [change for change in changes if role_of(change.path) not in (*_IGNORED, *_CODE)]
    added = Counter(change.new for change in others if change.old is None)
    for change in others:
        if change.old is None:
            if role_of(change.path) is not Role.FIXTURE:
                return False
        elif change.new is None:
            if not added[change.old]:
                return False
            added[change.old] -= 1
        elif as_before(change) != change.new:
            return False
    return True


_DEFINITION = lazy_pattern(
    r"\b(?:def|class|function\*?|func(?:[ \t]*\([^)\n]*\))?|fn|struct|enum|trait|type|interface|const"
    r"|let|var|static)[ \t]+(?P<name>[\w$]+)"
    r"|^(?P<value>[\w$]+)[ \t]*(?::[^=\n]+)?=(?!=)|\b(?P<method>[\w$]+)[ \t]*\([^()\n]*\)[ \t]*\{",
    re.MULTILINE,
)  # fmt: skip


class _Renames:
    """What the change renames in the source: names that are no longer defined, and names that are now."""

    def __init__(self, changes: Sequence[FileChange]) -> None:
        source = [change for change in changes if role_of(change.path) is Role.SOURCE and language_of(change.path)]
        self.before = {change.path: _defined(change.old) for change in source if change.old is not None}
        self.after = {change.path: _defined(change.new) for change in source if change.new is not None}
        old, new = (set().union(*names.values()) for names in (self.before, self.after))
        self.gone = {change.path for change in source if change.new is None}
        self.added = {change.path for change in source if change.old is None}
        self.removed_names = (old - new) | (_parts(self.gone) - _parts(self.added))
        self.added_names = (new - old) | (_parts(self.added) - _parts(self.gone))
        self.names: dict[str, str] = {}

    def same(self, old: Tokens, new: Tokens) -> bool:
        """Equal apart from renames, all of them in the same way. What is learnt here holds for later comparisons."""
        if len(old) != len(new):
            return False
        names = dict(self.names)
        for one, two in zip(old, new, strict=True):
            if one in names:
                if names[one] != two:
                    return False
            elif one != two:
                if not (self._is_renamed(one, two) or self._is_same_module(one.strip("\"'`"), two.strip("\"'`"))):
                    return False
                if one[0] not in "\"'`":
                    names[one] = two
        if len(set(names.values())) != len(names):
            return False
        self.names = names
        return True

    def _is_renamed(self, old: str, new: str) -> bool:
        return old in self.removed_names and new in self.added_names

    def _is_same_module(self, old: str, new: str) -> bool:
        """`shop.cart` and `shop.basket`, `../src/cart` and `../src/basket`, where the file was moved so."""
        if not re.fullmatch(r"[\w./@-]+", old) or not re.fullmatch(r"[\w./@-]+", new):
            return False
        for one, two in ((old, new), (old.rpartition(".")[0], new.rpartition(".")[0])):
            if one != old and old.rpartition(".")[2] != new.rpartition(".")[2]:
                return False
            if (
                one
                and two
                and any(_refers(one, path) for path in self.gone)
                and any(_refers(two, path) for path in self.added)
            ):
                return True
        return False

    def same_import(self, old: Tokens, new: Tokens) -> bool:
        if self.same(old, new):
            return True
        if old[:1] != ("from",) or new[:1] != ("from",) or not self.same(old[2:], new[2:]):
            return False
        name, now = old[2], new[2]
        left = any(
            _refers(old[1], path) and name in names and name not in self.after.get(path, ())
            for path, names in self.before.items()
        )
        return left and any(_refers(new[1], path) and now in names for path, names in self.after.items())


def _defined(content: bytes | None) -> set[str]:
    return {name for match in _DEFINITION.finditer(text_of(content)) for name in match.groups() if name}


def _parts(paths: set[str]) -> set[str]:
    return {part for path in paths for part in re.sub(r"\.\w+$", "", path).split("/")}


def _refers(reference: str, path: str) -> bool:
    """Whether a module name or an import path can mean this file."""
    dotted = "/" not in reference and not reference.startswith(".")
    parts = [part for part in re.split(r"[./]" if dotted or reference.startswith(".") else "/", reference) if part]
    if parts and parts[-1] in ("js", "ts", "jsx", "tsx", "mjs", "cjs"):
        parts.pop()
    stem = re.sub(r"(?:/__init__|/index|/mod)?\.\w+$", "", path).split("/")
    return bool(parts) and stem[-len(parts) :] == parts


class _Side(Struct, frozen=True):
    path: str
    code: TestCode


def _matched(changes: Sequence[FileChange], renames: _Renames) -> list[tuple[str, str]] | None:
    """Each old test with the name of the new one that is the same, or ''. None: something else differs."""
    olds = list(_sides({change.path: change.old for change in changes}))
    news = list(_sides({change.path: change.new for change in changes}))
    if len(olds) + len(news) != sum((change.old is not None) + (change.new is not None) for change in changes):
        return None
    if any(old.code.cases == [] and not _is_same_helper(old, news, renames) for old in olds):
        return None
    if not _imports_nothing_else(olds, news):
        return None
    known = {old.path for old in olds}
    if any(
        new.path not in known and not new.code.cases and role_of(new.path) is Role.HELPER and new.code.ambient
        for new in news
    ):
        return None
    taken: set[tuple[str, str]] = set()
    pairs = []
    for old in olds:
        targets = sorted(news, key=lambda new: (new.path != old.path, name_of(new.path) != name_of(old.path)))
        for case in old.code.cases:
            place, name = _find(case, old, targets, taken, renames)
            taken.add((place, name))
            pairs.append((case.name, name))
    return pairs


def _imports_nothing_else(olds: Sequence[_Side], news: Sequence[_Side]) -> bool:
    """An import runs code: files that had tests import from where tests imported before, or the standard library."""
    known = {module for old in olds for entry in old.code.imports.values() for module in _modules(entry)}
    paths = {old.path for old in olds}
    return all(
        module in known or module.split(".")[0] in sys.stdlib_module_names or module.startswith("node:")
        for new in news
        if new.path in paths
        for entry in new.code.imports.values()
        for module in _modules(entry)
    )


def _modules(entry: Tokens) -> list[str]:
    quoted = [token.strip("\"'`") for token in entry if token[0] in "\"'`"]
    return quoted or list(entry[1:2])


def _sides(files: Mapping[str, bytes | None]) -> Iterator[_Side]:
    for path, content in files.items():
        if content is not None and (code := test_code(path, text_of(content))) is not None:
            yield _Side(path, code)


def _is_same_helper(old: _Side, news: Sequence[_Side], renames: _Renames) -> bool:
    """A file without tests: everything it defined is there, and nothing that affects tests by itself was added."""
    for new in news:
        if new.path != old.path and name_of(new.path) != name_of(old.path):
            continue
        if not _same_ambient(old.code, new.code, renames):
            continue
        if all(_same_binding(name, old.code, new.code, renames, set()) for name in old.code.definitions):
            return True
    return False


def _find(
    case: Case, old: _Side, targets: Sequence[_Side], taken: set[tuple[str, str]], renames: _Renames
) -> tuple[str, str]:
    for new in targets:
        candidates = sorted(new.code.cases, key=lambda other: other.name != case.name)
        for other in candidates:
            if (new.path, other.name) not in taken and _same_case(case, old.code, other, new.code, renames):
                return new.path, other.name
    return "", ""


def _same_case(case: Case, old: TestCode, other: Case, new: TestCode, renames: _Renames) -> bool:
    known = dict(renames.names)
    if (
        renames.same(case.code, other.code)
        and renames.same(case.around, other.around)
        and _same_uses(case.code + case.around, old, new, renames, set())
        and _same_ambient(old, new, renames)
    ):
        return True
    renames.names = known
    return False


def _same_ambient(old: TestCode, new: TestCode, renames: _Renames) -> bool:
    return len(old.ambient) == len(new.ambient) and all(
        renames.same(one, two) for one, two in zip(old.ambient, new.ambient, strict=True)
    )


def _same_uses(tokens: Tokens, old: TestCode, new: TestCode, renames: _Renames, seen: set[str]) -> bool:
    return all(_same_binding(word, old, new, renames, seen) for word in dict.fromkeys(tokens))


def _same_binding(word: str, old: TestCode, new: TestCode, renames: _Renames, seen: set[str]) -> bool:
    """Whether a name means the same in both files."""
    if word in seen:
        return True
    seen.add(word)
    now = renames.names.get(word, word)
    if word in old.imports:
        return (
            now in new.imports
            and now not in new.definitions
            and renames.same_import(old.imports[word], new.imports[now])
        )
    if word in old.definitions:
        return (
            now in new.definitions
            and renames.same(old.definitions[word], new.definitions[now])
            and _same_uses(old.definitions[word], old, new, renames, seen)
        )
    return now not in new.definitions and now not in new.imports


_PARAMETERS = lazy_pattern(r"\[.*\]$|/[^/]*$(?<=\d)", re.DOTALL)


def missing_tests(before: Tests, after: Tests, changes: Sequence[FileChange]) -> tuple[str, ...]:
    """Tests by name that ran and no longer run, moved and renamed ones aside. A skipped test does not run."""
    if not before.names or not after.names:
        return ()
    ran = {name for name, state in before.names.items() if state != "skipped"}
    runs = {name for name, state in after.names.items() if state != "skipped"}
    gone = sorted(ran - runs)
    if not gone:
        return ()
    spare = Counter(_function(name) for name in runs - set(before.names))
    spare.update(_function(name) for name in runs & {n for n, state in before.names.items() if state == "skipped"})
    renamed = dict(_renamed(changes))
    missing = []
    for name in gone:
        function = _function(name)
        for candidate in (function, renamed.get(function, "")):
            if spare[candidate] > 0:
                spare[candidate] -= 1
                break
        else:
            missing.append(name)
    return tuple(missing)


def _function(name: str) -> str:
    """`tests/test_a.py::TestX::test_b[1-2]` and `tests.test_a.TestX.test_b` → test_b."""
    plain = re.sub(r"\[.*\]$", "", name, flags=re.DOTALL)
    if " " in plain:
        return re.split(r" > |::", plain)[-1].strip()
    return re.split(r"::|[./](?=\w)", plain)[-1]


def _renamed(changes: Sequence[FileChange]) -> Iterator[tuple[str, str]]:
    code = [change for change in changes if role_of(change.path) in _CODE and test_code(change.path, "") is not None]
    code += [_inline(change) for change in changes if _has_changed_inline_tests(change)]
    for old, new in _matched(code, _Renames(changes)) or ():
        if new:
            yield _function(old), _function(new)
