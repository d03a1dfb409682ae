"""Python expressions as canonical tokens, and what can be known about their truth without running them."""

from __future__ import annotations

import ast
import builtins
import operator
from collections.abc import Callable, Mapping
from typing import Any

from ralph.checks.tamper.suite import Tokens

Names = Mapping[str, ast.expr]
"""What a name stands for: locals assigned once, parameters of a row, constants of the module."""

NO_NAMES: Names = {}
_DEEPEST = 40
_LONGEST = 3000

OPERATORS: dict[type[ast.AST], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in", ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/",
    ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**", ast.And: "and", ast.Or: "or", ast.Not: "not", ast.USub: "-",
    ast.UAdd: "+", ast.Invert: "~", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.MatMult: "@",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip


def tokens_of(node: ast.AST, names: Names = NO_NAMES) -> Tokens:
    out: list[str] = []
    _emit(node, names, out, 0)
    return tuple(out)


def _emit(node: ast.AST, names: Names, out: list[str], depth: int) -> None:
    if depth > _DEEPEST or len(out) > _LONGEST:
        out.append("…")
        return
    deeper = depth + 1
    match node:
        case ast.Constant(value=value):
            out.append(literal_token(value))
        case ast.Name(id=name):
            if name in names:
                _emit(names[name], {n: v for n, v in names.items() if n != name}, out, deeper)
            else:
                out.append(name)
        case ast.Attribute(value=value, attr=attr):
            _emit(value, names, out, deeper)
            out.append("." + attr)
        case ast.Call(func=func, args=args, keywords=keywords):
            _emit(func, names, out, deeper)
            out.append("(")
            for arg in args:
                _emit(arg, names, out, deeper)
                out.append(",")
            for keyword in keywords:
                out.append(f"{keyword.arg or '**'}=")
                _emit(keyword.value, names, out, deeper)
                out.append(",")
            out.append(")")
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            out.append(f"-{value!r}")
        case ast.Await(value=value) | ast.NamedExpr(value=value) | ast.Expr(value=value):
            _emit(value, names, out, deeper)
        case ast.expr_context():
            return
        case ast.operator() | ast.cmpop() | ast.boolop() | ast.unaryop():
            out.append(OPERATORS.get(type(node), "?"))
        case ast.BinOp(left=left, op=op, right=right):
            for part in (left, op, right):
                _emit(part, names, out, deeper)
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            _emit(left, names, out, deeper)
            for operation, right in zip(ops, comparators, strict=True):
                _emit(operation, names, out, deeper)
                _emit(right, names, out, deeper)
        case _:
            out.append(f"<{type(node).__name__}")
            for _, value in ast.iter_fields(node):
                _emit_field(value, names, out, deeper)
            out.append(">")


def _emit_field(value: Any, names: Names, out: list[str], depth: int) -> None:
    if isinstance(value, ast.AST):
        _emit(value, names, out, depth)
    elif isinstance(value, list):
        for item in value:
            _emit_field(item, names, out, depth)
            out.append(",")
    elif isinstance(value, str):
        out.append(value)


def literal_token(value: object) -> str:
    if value is True or value is False or value is None:
        return f"#{value}".lower()
    if isinstance(value, str):
        return f"'{value}"
    if isinstance(value, int) and abs(value) > 10**300:
        return "9e300"  # such a number cannot be written as text without asking for it
    return repr(value) if isinstance(value, int | float | complex) else f"'{value!r}"


_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.Is: operator.eq, ast.IsNot: operator.ne, ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
_UNKNOWN = object()


def truth(node: ast.expr, names: Names = NO_NAMES, depth: int = 0) -> bool | None:
    """Whether the expression is true or false whatever the code under test does. None: it depends."""
    if depth > _DEEPEST:
        return None
    match node:
        case ast.Constant(value=value):
            return bool(value)
        case ast.Tuple(elts=items) | ast.List(elts=items) | ast.Set(elts=items):
            return None if any(isinstance(item, ast.Starred) for item in items) else bool(items)
        case ast.Dict(keys=keys):
            return None if None in keys else bool(keys)
        case ast.Lambda():
            return True
        case ast.JoinedStr(values=values):
            return True if any(isinstance(v, ast.Constant) and v.value for v in values) else None
        case ast.Name(id=name) if name in names:
            return truth(names[name], {n: v for n, v in names.items() if n != name}, depth + 1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            inner = truth(operand, names, depth + 1)
            return None if inner is None else not inner
        case ast.BoolOp(op=op, values=values):
            return _truth_of_several(op, values, names, depth + 1)
        case ast.IfExp(body=body, orelse=other):
            one, two = truth(body, names, depth + 1), truth(other, names, depth + 1)
            return one if one == two else None
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _truth_of_comparison(left, op, right, names)
        case ast.Call(func=ast.Name(id="isinstance"), args=[_, ast.Name(id="object")]):
            return True
        case ast.Call(func=ast.Name(id="bool" | "any" | "all" as function), args=[argument]):
            return _truth_of_call(function, argument, names, depth + 1)
        case ast.NamedExpr(value=value):
            return truth(value, names, depth + 1)
    return None


def _truth_of_several(op: ast.boolop, values: list[ast.expr], names: Names, depth: int) -> bool | None:
    known = [truth(value, names, depth) for value in values]
    decides = isinstance(op, ast.Or)
    if decides in known:
        return decides
    if all(value is not None for value in known):
        return not decides
    if decides:
        said = {tokens_of(value, names) for value in values}
        opposites = {tokens_of(negated(value), names) for value in values}
        if said & opposites:
            return True  # `x is None or x is not None`
    return None


def _truth_of_call(function: str, argument: ast.expr, names: Names, depth: int) -> bool | None:
    if function == "bool":
        return truth(argument, names, depth)
    if isinstance(argument, ast.List | ast.Tuple):
        known = [truth(item, names, depth) for item in argument.elts]
        if (function == "any") in known:
            return function == "any"
        return None if None in known else function == "all"
    if isinstance(argument, ast.GeneratorExp | ast.ListComp):
        empty = truth(argument.generators[0].iter, names, depth) is False
        return (function == "all") if empty else (truth(argument.elt, names, depth) if function == "all" else None)
    return None


def _truth_of_comparison(left: ast.expr, op: ast.cmpop, right: ast.expr, names: Names) -> bool | None:
    if _is_anything(left, names) or _is_anything(right, names):
        return isinstance(op, ast.Eq)
    one, two = fold(left, names), fold(right, names)
    if one is not _UNKNOWN and two is not _UNKNOWN:
        try:
            return bool(_COMPARISONS[type(op)](one, two))
        except TypeError:
            return None
    if tokens_of(left, names) == tokens_of(right, names):
        return isinstance(op, ast.Eq | ast.Is | ast.LtE | ast.GtE)
    match left, op, right:
        case ast.Call(func=ast.Name(id="len")), ast.GtE(), ast.Constant(value=0):
            return True
        case ast.Call(func=ast.Name(id="len")), ast.Gt(), ast.UnaryOp(op=ast.USub()):
            return True
        case _, ast.In(), ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return True if tokens_of(left, names) in [tokens_of(item, names) for item in items] else None
    return None


def _is_anything(node: ast.expr, names: Names) -> bool:
    """`unittest.mock.ANY` is equal to everything."""
    if isinstance(node, ast.Name) and node.id in names:
        node = names[node.id]
    return (isinstance(node, ast.Name) and node.id == "ANY") or (isinstance(node, ast.Attribute) and node.attr == "ANY")


def fold(node: ast.expr, names: Names = NO_NAMES, depth: int = 0) -> Any:
    """The value of an expression made of literals, or a marker if it is not one."""
    if depth > _DEEPEST:
        return _UNKNOWN
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name) if name in names:
            return fold(names[name], {n: v for n, v in names.items() if n != name}, depth + 1)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            value = fold(operand, names, depth + 1)
            return -value if isinstance(value, int | float) else _UNKNOWN
        case ast.BinOp(left=left, op=ast.Add() | ast.Sub() | ast.Mult() as op, right=right):
            one, two = fold(left, names, depth + 1), fold(right, names, depth + 1)
            if not (isinstance(one, int | float) and isinstance(two, int | float)) or max(abs(one), abs(two)) > 1e9:
                return _UNKNOWN
            return one + two if isinstance(op, ast.Add) else one - two if isinstance(op, ast.Sub) else one * two
        case ast.List(elts=items) | ast.Tuple(elts=items) if len(items) <= 100:
            values = [fold(item, names, depth + 1) for item in items]
            return _UNKNOWN if any(value is _UNKNOWN for value in values) else values
    return _UNKNOWN


def is_folded(value: object) -> bool:
    return value is not _UNKNOWN


_NEGATED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


def negated(node: ast.expr) -> ast.expr:
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return ast.copy_location(ast.Compare(left, [_NEGATED[type(op)]()], [right]), node)
        case ast.BoolOp(op=op, values=values):
            other: ast.boolop = ast.Or() if isinstance(op, ast.And) else ast.And()
            return ast.copy_location(ast.BoolOp(other, [negated(value) for value in values]), node)
    return ast.copy_location(ast.UnaryOp(ast.Not(), node), node)


_ASKS_NOBODY = frozenset(dir(builtins)) - {
    "open",
    "input",
    "__import__",
    "eval",
    "exec",
    "compile",
    "globals",
    "locals",
    "vars",
    "print",
}


def is_self_contained(node: ast.expr) -> bool:
    """`len([1, 2]) == 2`: independent of the code under test."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id not in _ASKS_NOBODY:
            return False
        if isinstance(inner, ast.Await | ast.Yield):
            return False
    return True


def dotted(node: ast.AST) -> str:
    """`pytest.mark.skip` for a chain of attributes, ignoring calls in between."""
    parts: list[str] = []
    while True:
        if isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, ast.Name):
            parts.append(node.id)
            return ".".join(reversed(parts))
        else:
            return ".".join(["?", *reversed(parts)])
