"""Test files as values to compare: tests, what they use, and what affects all of them. Format and comments left out."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct, field

from ralph.proof.file_table import language_of, word_set

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

_AMBIENT_NAME = re.compile(r"pytest\w*|setup\w*|teardown\w*|set[uU]p\w*|tear[dD]own\w*|load_tests|__\w+__|collect_\w+")


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
    "python": re.compile(rf"(?P<string>[rbfuRBFU]{{0,2}}(?:{_STRING}))|(?P<other>\w+|[^\w\s])", re.DOTALL),
    "javascript": re.compile(
        rf"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>{_STRING}"
        r"|(?<=[(,=:\[!&|?{};\n ])/(?![*/\s])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n\[])+/[a-z]*)"
        r"|(?P<other>[\w$]+|[^\w\s])",
        re.DOTALL,
    ),
    "go": re.compile(rf"(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<string>{_STRING})|(?P<other>\w+|[^\w\s])", re.DOTALL),
    "rust": re.compile(
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


_DEFINES = re.compile(
    r"(?:export |default |async |pub |static )*(?:function \*? ?|class |const |let |var "
    r"|func (?:\( [^)]* \) )?|fn |struct |enum |type |interface |trait )(?P<name>[\w$]+) "
)  # fmt: skip
_IMPORT = re.compile(
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
