"""Empty Python functions, by `ast`."""

from __future__ import annotations

import ast
import io
import re
import tokenize
import warnings
from collections.abc import Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
_NOT_PYTHON = (SyntaxError, ValueError, LookupError, RecursionError, MemoryError)
_GENERATOR = b"return; yield"  # a generator stays one
_ONCE = b"yield"  # for @contextmanager, which fails on a generator that ends at once
_NOTHING = b"pass"


def emptied(old: bytes | None, new: bytes) -> bytes | None:
    try:
        source, encoding = _read(new)
        known = _known(old)
        places = _Places(source)
        functions = [
            node for name, node in _functions(_parse(source).body, "") if _dump(node) not in known.get(name, ())
        ]
        if not functions:
            return None
        edits = [edit for node in functions if (edit := _edit(node, places))]
        for start, end, body in reversed(edits):
            source = source[:start] + body + source[end:]
        _parse(source)
        return source.decode().encode(encoding)
    except _NOT_PYTHON:
        return None


def _read(content: bytes) -> tuple[bytes, str]:
    """As UTF-8, which is what positions count in, and the encoding to go back to."""
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    text = content.decode(encoding)
    if text.encode(encoding) != content:
        raise ValueError(f"{encoding} cannot be written back")
    return text.encode(), encoding


def _parse(source: bytes) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an invalid escape sequence is not ours to report
        return ast.parse(source.decode())


def _known(old: bytes | None) -> dict[str, set[str]]:
    """The functions of the old file. A name can stand for several: overloads, a property and its setter."""
    known: dict[str, set[str]] = {}
    try:
        for name, node in _functions(_parse(_read(old or b"")[0]).body, ""):
            known.setdefault(name, set()).add(_dump(node))
    except _NOT_PYTHON:
        return {}
    return known


def _functions(body: Sequence[ast.AST], scope: str) -> Iterator[tuple[str, Function | ast.Lambda]]:
    """The outermost functions with their qualified names, in the order of the file."""
    for node in body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield scope + node.name, node
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda() as value):
                yield scope + name, value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Lambda() as value):
                yield scope + name, value
            case ast.ClassDef():
                yield from _functions(node.body, f"{scope}{node.name}.")
            case ast.stmt() | ast.ExceptHandler() | ast.match_case():
                yield from _functions(list(ast.iter_child_nodes(node)), scope)


def _dump(node: Function | ast.Lambda) -> str:
    """What the function says, without positions, comments and docstrings."""
    documented = [
        inner
        for inner in ast.walk(node)
        if isinstance(inner, Function | ast.ClassDef) and ast.get_docstring(inner, clean=False) is not None
    ]
    bodies = [inner.body for inner in documented]
    for inner in documented:
        inner.body = inner.body[1:]
    dump = ast.dump(node)
    for inner, body in zip(documented, bodies, strict=True):
        inner.body = body
    return dump


class _Places:
    """Offsets in bytes of lines and columns. Lines end where the parser ends them."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.lines = [0, *(found.end() for found in re.finditer(rb"\r\n|\r|\n", source))]

    def start(self, node: ast.stmt | ast.expr) -> int:
        line, column = node.lineno - 1, node.col_offset
        if decorators := getattr(node, "decorator_list", None):
            line = decorators[0].lineno - 1
            while self.source[self.lines[line] + column : self.lines[line] + column + 1] != b"@":
                line -= 1
        return self.lines[line] + column

    def end(self, node: ast.stmt | ast.expr) -> int:
        if node.end_lineno is None or node.end_col_offset is None:
            raise ValueError("a node without an end")
        return self.lines[node.end_lineno - 1] + node.end_col_offset


def _edit(node: Function | ast.Lambda, places: _Places) -> tuple[int, int, bytes] | None:
    if isinstance(node, ast.Lambda):
        is_empty = (isinstance(node.body, ast.Constant) and node.body.value is None) or _is_given(node, node.body)
        return None if is_empty else (places.start(node.body), places.end(node.body), b"None")
    body = node.body[1:] if ast.get_docstring(node, clean=False) is not None else node.body
    if all(isinstance(one, ast.Pass) or _is_ellipsis(one) or _is_refusal(one) for one in body):
        return None
    if len(body) == 1 and _is_stub(node, body[0]):
        return None
    start, end, empty = places.start(body[0]), places.end(body[-1]), _empty_body(node)
    return None if places.source[start:end] == empty else (start, end, empty)


def _is_refusal(node: ast.stmt) -> bool:
    """`raise NotImplementedError`: a function that does nothing yet."""
    raised = node.exc if isinstance(node, ast.Raise) else None
    name = raised.func if isinstance(raised, ast.Call) else raised
    return isinstance(name, ast.Name) and name.id == "NotImplementedError"


def _is_stub(node: Function, statement: ast.stmt) -> bool:
    """`return cents`: a test that such a function passes says no more than that it can be called."""
    return isinstance(statement, ast.Return) and _is_given(node, statement.value)


def _is_given(node: Function | ast.Lambda, value: ast.expr | None) -> bool:
    """Whether `value` is an argument as it was given. A constant is not: a story can ask for one."""
    arguments = {one.arg for one in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)}
    return isinstance(value, ast.Name) and value.id in arguments - {"self", "cls"}


def _is_ellipsis(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node.value.value is ...


def _empty_body(node: Function) -> bytes:
    if not _is_generator(node):
        return _NOTHING
    names = [ast.unparse(one).rpartition(".")[2] for one in node.decorator_list]
    return _ONCE if {"contextmanager", "asynccontextmanager"} & set(names) else _GENERATOR


def _is_generator(node: Function) -> bool:
    inner: list[ast.AST] = list(node.body)
    while inner:
        match inner.pop():
            case ast.Yield() | ast.YieldFrom():
                return True
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                pass  # a yield in there is its own
            case other:
                inner.extend(ast.iter_child_nodes(other))
    return False
