"""One Python condition as a claim: about which expression, compared how, with what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from msgspec import Struct

from ralph.checks.tamper.python_expression import OPERATORS, Names, dotted, fold, is_folded, negated, tokens_of
from ralph.checks.tamper.suite import BOUND, CLOSE, EXACT, PREDICATE, TRUTHY, Tokens, is_literal

_FLIPPED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "in": "has", "not in": "has not"}
_STRENGTH = {"==": EXACT, "is": EXACT, "!=": TRUTHY, "is not": TRUTHY, "in": BOUND, "not in": BOUND}
_EXPECTED_NAME = re.compile(r"(?i)^(?:expect(?:ed)?|want(?:ed)?|golden|reference|exp)(?:_|$|[A-Z])")
DEFAULT_TOLERANCE = 1e-6


class Claim(Struct, frozen=True):
    op: str
    subject: Tokens
    expected: Tokens
    strength: float
    tolerance: float = 0.0


def claims(node: ast.expr, names: Names, depth: int = 0) -> Iterator[Claim]:
    """`a and b` claims two things, everything else one."""
    if depth > 20:
        return
    match node:
        case ast.BoolOp(op=ast.And(), values=values):
            for value in values:
                yield from claims(value, names, depth + 1)
        case ast.UnaryOp(op=ast.Not(), operand=ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()) as inner):
            if isinstance(inner, ast.Compare) and len(inner.ops) > 1:
                yield Claim("not", tokens_of(inner, names), (), TRUTHY)
            else:
                yield from claims(negated(inner), names, depth + 1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield Claim("not", tokens_of(operand, names), (), BOUND)
        case ast.BoolOp(op=ast.Or(), values=values):
            parts = [claim for value in values for claim in claims(value, names, depth + 1)]
            weakest = min((part.strength for part in parts), default=TRUTHY)
            yield Claim("or", tokens_of(node, names), (), min(BOUND, weakest))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            yield comparison(left, OPERATORS[type(op)], right, names)
        case ast.Compare():
            yield Claim("chain", tokens_of(node, names), (), BOUND)
        case ast.Call():
            yield _predicate(node, names)
        case _:
            yield Claim("true", tokens_of(node, names), (), TRUTHY)


def comparison(left: ast.expr, op: str, right: ast.expr, names: Names) -> Claim:
    if _is_fixed(left, names) and not _is_fixed(right, names):
        left, right = right, left
        op = _FLIPPED.get(op, op)
    if op in ("==", "is") and isinstance(right, ast.Constant) and isinstance(right.value, bool):
        return next(claims(left if right.value else ast.UnaryOp(ast.Not(), left), names, 15))
    if op == "==" and (close := _approximate(right)):
        return Claim("≈", tokens_of(left, names), tokens_of(close[0], names), CLOSE, close[1])
    if op in ("<", "<=") and (apart := _distance(left)):
        limit = fold(right, names)
        tolerance = float(limit) if isinstance(limit, int | float) else DEFAULT_TOLERANCE
        return Claim("≈", tokens_of(apart[0], names), tokens_of(apart[1], names), CLOSE, tolerance)
    strength = _STRENGTH.get(op, BOUND)
    subject = tokens_of(left, names)
    if op in (">", ">=", "!=") and _is_size(left):
        strength = TRUTHY  # len(x) > 0
    if op == "==" and _is_type(left):
        strength = PREDICATE
    return Claim(op, subject, tokens_of(right, names), strength)


def _is_fixed(node: ast.expr, names: Names) -> bool:
    """This side is what is expected: made of literals, or named so."""
    if isinstance(node, ast.Name) and _EXPECTED_NAME.match(node.id):
        return True
    if is_folded(fold(node, names)):
        return True
    if isinstance(node, ast.Call | ast.Attribute | ast.Subscript | ast.Name):
        return False
    tokens = tokens_of(node, names)
    return any(map(is_literal, tokens)) and not any(t[:1].isidentifier() and t not in _LAYOUT for t in tokens)


_LAYOUT = frozenset({"True", "False", "None"})


def _is_size(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node) == "len"


def _is_type(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and dotted(node) == "type"


def _approximate(node: ast.expr) -> tuple[ast.expr, float] | None:
    """`approx(3.14, abs=0.1)`: the value and how far off it may be."""
    if not (isinstance(node, ast.Call) and dotted(node).rpartition(".")[2] == "approx" and node.args):
        return None
    return node.args[0], tolerance_of(node, 1)


def tolerance_of(call: ast.Call, first: int) -> float:
    """The largest tolerance a call names. `first`: where positional ones begin."""
    given = [fold(arg) for arg in call.args[first:]]
    by_name = {keyword.arg: fold(keyword.value) for keyword in call.keywords}
    named = [by_name.get(name) for name in ("rel", "abs", "delta", "rtol", "atol", "rel_tol", "abs_tol")]
    numbers = [
        abs(value) for value in (*given, *named) if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    for name in ("places", "decimal"):
        if isinstance(places := by_name.get(name), int | float):
            numbers.append(10.0 ** -min(places, 30))
    return max(numbers, default=DEFAULT_TOLERANCE)


def _distance(node: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    match node:
        case ast.Call(func=ast.Name(id="abs"), args=[ast.BinOp(left=left, op=ast.Sub(), right=right)]):
            return left, right
    return None


def _predicate(node: ast.Call, names: Names) -> Claim:
    name = dotted(node).rpartition(".")[2]
    tokens = tokens_of(node, names)
    if name in ("isinstance", "hasattr", "callable", "issubclass", "bool", "len"):
        return Claim("true", tokens, (), TRUTHY)
    if name in ("isclose", "allclose") and len(node.args) >= 2:
        value, wanted = node.args[0], node.args[1]
        return Claim("≈", tokens_of(value, names), tokens_of(wanted, names), CLOSE, tolerance_of(node, 2))
    if name in ("all", "any") and node.args and isinstance(node.args[0], ast.GeneratorExp | ast.ListComp):
        inner = max((claim.strength for claim in claims(node.args[0].elt, names, 15)), default=TRUTHY)
        return Claim(name, tokens[2:], (), inner if name == "all" else inner / 2)
    strength = (
        BOUND
        if name in ("startswith", "endswith", "match", "search", "fullmatch", "issubset", "issuperset")
        else PREDICATE
    )
    return Claim("true", tokens, (), strength)


# unittest, numpy and pandas: what their methods compare, as an operator.
_BINARY = {
    "==": "assertequal assertequals assertlistequal assertdictequal asserttupleequal assertsetequal "
    "assertsequenceequal "
    "assertmultilineequal assertjsonequal assertxmlequal asserthtmlequal assertquerysetequal "
    "assertarrayequal assertframeequal "
    "assertseriesequal assertindexequal eq assertstringequal assertarraysequal",
    "!=": "assertnotequal assertnotequals",
    "is": "assertis",
    "is not": "assertisnot",
    "in": "assertin",
    "not in": "assertnotin",
    ">": "assertgreater",
    ">=": "assertgreaterequal",
    "<": "assertless",
    "<=": "assertlessequal",
    "has": "assertcontains assertcountequal assertitemsequal assertdictcontainssubset assertregex "
    "assertregexpmatches assertredirects",
}
_BY_METHOD = {name: op for op, listed in _BINARY.items() for name in listed.split()}
_CLOSE = {"assertalmostequal", "assertalmostequals", "assertallclose", "assertapproxequal", "assertarrayalmostequal"}
_MOCKS = {
    **dict.fromkeys(("assert_called_once_with", "assert_called_with", "assert_not_called"), EXACT),
    **dict.fromkeys(("assert_awaited_once_with", "assert_awaited_with", "assert_not_awaited"), EXACT),
    **dict.fromkeys(("assert_has_calls", "assert_any_call", "assert_has_awaits", "assert_any_await"), CLOSE),
    **dict.fromkeys(("assert_called_once", "assert_awaited_once"), BOUND),
    **dict.fromkeys(("assert_called", "assert_awaited"), PREDICATE),
}
_HELPER = re.compile(r"_*(?:assert|check|verify|expect|ensure|validate|should|must)(?:_|[A-Z]|s?$)")


def call_claims(call: ast.Call, names: Names) -> tuple[ast.expr | None, list[Claim]]:
    """What an assertion method claims, and the condition it is about where there is one."""
    name = dotted(call).rpartition(".")[2]
    key = name.replace("_", "").lower()
    args = call.args
    if name in _MOCKS and isinstance(call.func, ast.Attribute):
        subject = tokens_of(call.func.value, names)
        wanted = (
            tokens_of(ast.Tuple([*args, *(k.value for k in call.keywords)], ast.Load()), names)
            if args or call.keywords
            else ()
        )
        return None, [Claim("called", subject, wanted, _MOCKS[name])]
    if key in ("asserttrue", "assertfalse", "asserttruthy", "assertfalsy", "assert") and args:
        condition = args[0] if "false" not in key and "falsy" not in key else negated(args[0])
        return condition, list(claims(condition, names))
    if key in ("assertisnone", "assertisnotnone") and args:
        condition = _compared(args[0], ast.IsNot() if "not" in key else ast.Is(), ast.Constant(None))
        return condition, list(claims(condition, names))
    if key in ("assertisinstance", "assertnotisinstance"):
        return None, [Claim("isinstance", tokens_of(call, names)[1:], (), TRUTHY)]
    if key in _CLOSE and len(args) >= 2:
        tolerance = tolerance_of(call, len(args))
        if len(args) > 2 and isinstance(places := fold(args[2]), int | float):
            tolerance = 10.0 ** -min(places, 30) if "almost" in key else abs(places)
        return None, [Claim("≈", tokens_of(args[0], names), tokens_of(args[1], names), CLOSE, tolerance)]
    if key in _BY_METHOD and len(args) >= 2:
        op = _BY_METHOD[key]
        if op == "has":
            return None, [Claim(key, tokens_of(args[0], names), tokens_of(args[1], names), BOUND)]
        condition = _compared(args[0], _NODES[op](), args[1])
        return condition, [comparison(args[0], op, args[1], names)]
    if _HELPER.match(name):
        tokens = tokens_of(call, names)
        return None, [Claim("call", tokens, (), EXACT)]
    return None, []


_NODES: dict[str, type[ast.cmpop]] = {sign: node for node, sign in OPERATORS.items() if issubclass(node, ast.cmpop)}


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> ast.expr:
    return ast.copy_location(ast.Compare(left, [op], [right]), left)
