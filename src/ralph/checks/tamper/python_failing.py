"""Statements that make a Python test fail, keep it from failing, or leave it."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from ralph.checks.tamper.python_expression import dotted, truth

_BROAD = frozenset({"Exception", "BaseException", "AssertionError"})


def exceptions(node: ast.expr | None) -> tuple[str, ...]:
    """The exceptions that a handler or a `raises` names. None named: all of them."""
    if node is None:
        return ("BaseException",)
    if isinstance(node, ast.Tuple):
        return tuple(name for item in node.elts for name in exceptions(item))
    return (dotted(node).rpartition(".")[2],)


def waits_broadly(names: Sequence[str]) -> bool:
    """A failing assertion is one of them."""
    return bool(_BROAD & set(names))


def forgets(handler: ast.ExceptHandler) -> bool:
    """It catches what an assertion raises and does not let the test fail."""
    if not waits_broadly(exceptions(handler.type)):
        return False
    return not any(isinstance(node, ast.Raise) or _is_failing(node) for stmt in handler.body for node in ast.walk(stmt))


def fails(body: Sequence[ast.stmt]) -> bool:
    """Whether it ends in a failure of the test."""
    last = body[-1] if body else None
    return last is not None and _is_failing(last.value if isinstance(last, ast.Expr) else last)


def _is_failing(node: ast.AST) -> bool:
    match node:
        case ast.Assert(test=test):
            return truth(test) is False
        case ast.Call(func=ast.Attribute(attr="fail")):
            return True
        case ast.Raise(exc=ast.expr() as exc):
            return dotted(exc).endswith(("AssertionError", "Failed"))
    return False


def leaves(body: Sequence[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Return | ast.Continue | ast.Break)


def asserts(body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(node, ast.Assert) for stmt in body for node in ast.walk(stmt))
