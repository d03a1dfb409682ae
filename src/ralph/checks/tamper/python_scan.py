"""A first pass over a Python test: what its names stand for, what it replaces, where something happens."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from msgspec import Struct

from ralph.checks.tamper.python_expression import Names, dotted
from ralph.checks.tamper.python_file import FunctionNode

_PATCHES = ("patch", "patch.object", "setattr", "patch.dict", "patch.multiple")


class Scan(Struct, frozen=True):
    names: Names
    """Locals that are assigned once, and never passed to something that may change them."""
    assigned: dict[str, int]
    """Locals with the line of their value."""
    acts: frozenset[int]
    """Lines where something is called or made that is not an assertion."""
    mentioned: frozenset[str]
    replaced: frozenset[str]
    """Names that are replaced by a mock."""
    calls: int


def scan(function: FunctionNode) -> Scan:
    stored: Counter[str] = Counter(argument.arg for argument in arguments(function))
    values: dict[str, ast.expr] = {}
    mentioned: set[str] = set()
    handed_on: set[str] = set()
    replaced: set[str] = set()
    acts: set[int] = set()
    calls = 0
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                mentioned.add(name)
            case ast.Name(id=name):
                stored[name] += 1
            case ast.Call():
                calls += 1
                replaced |= _patched(node)
            case ast.Expr(value=ast.Call() as call) if "assert" not in dotted(call).lower():
                acts.add(node.lineno)
                handed_on |= {inner.id for inner in ast.walk(call) if isinstance(inner, ast.Name)}
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                values[name] = value
            case ast.Assign(targets=[ast.Tuple(elts=names)], value=ast.Tuple(elts=items)) if len(names) == len(items):
                values |= {n.id: v for n, v in zip(names, items, strict=True) if isinstance(n, ast.Name)}
            case ast.Assign(targets=[ast.Attribute(attr=attr)], value=value) if _is_mock(value):
                replaced.add(attr)
            case ast.AugAssign(target=ast.Name(id=name)):
                stored[name] += 1
    acts |= {value.lineno for value in values.values() if not isinstance(value, ast.Constant)}
    known = {
        name: value
        for name, value in values.items()
        if stored[name] == 1 and not (name in handed_on and isinstance(value, ast.List | ast.Dict | ast.Set))
    }
    lines = {name: value.lineno for name, value in values.items()}
    return Scan(known, lines, frozenset(acts), frozenset(mentioned), frozenset(replaced), calls)


def arguments(function: FunctionNode) -> Iterator[ast.arg]:
    yield from (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)


def _patched(call: ast.Call) -> set[str]:
    """`patch("shop.total")`, `monkeypatch.setattr(shop, "total", …)` → total."""
    if not dotted(call.func).endswith(_PATCHES):
        return set()
    texts = [arg.value for arg in call.args[:2] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
    return {text.rpartition(".")[2] for text in texts}


def _is_mock(value: ast.expr) -> bool:
    return isinstance(value, ast.Lambda) or (isinstance(value, ast.Call) and "Mock" in dotted(value))
