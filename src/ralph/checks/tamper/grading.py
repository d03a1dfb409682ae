"""How much an assertion says, by the words in its matcher's name: `toStrictEqual`, `assertNotNull`, `be_truthy`."""

from __future__ import annotations

from msgspec import Struct

from ralph.checks.tamper.paths import words_of
from ralph.checks.tamper.source import word_set
from ralph.checks.tamper.suite import BOUND, CLOSE, EXACT, PREDICATE, TRUTHY, Tokens, is_literal

_FILLER = word_set(
    "assert xct expect should must wont to be is are have has been that and debug prop require "
    "check it deep deeply strict strictly "
    "json array list dict string iterable sequence fluent the a an of than by with on all value "
    "values object message async only"
)
_NEGATIONS = word_set("not wont refute no doesnt dont never isnt un ne neq")
_CLOSE = word_set("close almost delta epsilon near approx approximately tolerance within")
_BOUNDS = word_set(
    "greater less gt gte ge lt lte le above below least most between contain contains containing "
    "include includes including in match "
    "matches regex regexp start starts end ends prefix suffix subset superset key keys property "
    "item items like any some one members "
    "elements substring"
)
_EXACT = word_set(
    "equal equals eq eql same identical exactly called times length count size len zero empty "
    "null nil none undefined blank false "
    "falsy falsey snapshot nan absent"
)
_TRUTHY = word_set("defined truthy exist exists exist? instance type present kind respond anything something typeof")
_THROWS = word_set(
    "throw throws thrown raise raises raised panic panics exception reject rejects rejected rejection throwable"
)
BROAD = frozenset(
    {"Error", "Exception", "Throwable", "StandardError", "RuntimeException", "BaseException", "SystemException"}
)
SIGNS = {"===": "==", "==": "==", "!==": "!=", "!=": "!=", "<": "<", ">": ">", "<=": "<=", ">=": ">="}
_OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">": "<=", "<=": ">", ">=": "<"}
_BY_SIGN = {"==": EXACT, "!=": TRUTHY}


class Grade(Struct, frozen=True):
    op: str
    strength: float
    unary: bool = False
    """There is one thing that is true, false, empty; not two that are compared."""
    throws: bool = False


def grade(name: str, *, negated: bool = False, compares: bool = False) -> Grade:
    """`compares`: the matcher was given something to compare with."""
    words = set(words_of(name))
    negated = negated != bool(words & _NEGATIONS)
    if words & {"a", "an"} and not words - _FILLER - _NEGATIONS:
        return Grade("kind", TRUTHY)
    words -= _FILLER | _NEGATIONS
    if words & _THROWS:
        return Grade("throws not" if negated else "throws", BOUND if negated else EXACT, throws=True)
    if "error" in words:
        if negated:
            return Grade("no error", EXACT, unary=True)
        return Grade("error", EXACT if compares else PREDICATE, unary=not compares)
    if words & _CLOSE:
        return Grade("≈", TRUTHY if negated else CLOSE)
    if words & {"null", "nil", "none", "undefined", "empty", "blank", "absent", "zero"}:
        kind = "empty" if words & {"empty", "blank"} else "none"
        return Grade(f"not {kind}" if negated else kind, TRUTHY if negated else EXACT, unary=True)
    if words & {"false", "falsy", "falsey"}:
        return Grade("true" if negated else "not", PREDICATE if negated else BOUND, unary=True)
    if words & _TRUTHY:
        return Grade("none" if negated else "there", EXACT if negated else TRUTHY, unary=True)
    if words & {"true", "ok"} or (not words and not compares):
        return Grade("not" if negated else "true", BOUND if negated else PREDICATE, unary=True)
    if words & _BOUNDS:
        return Grade(("not " if negated else "") + "".join(sorted(words)), BOUND)
    if "called" in words and not compares:
        return Grade("called", EXACT if negated else BOUND if "once" in words else PREDICATE, unary=True)
    if words & _EXACT or not words:
        kind = (
            "=="
            if words & {"equal", "equals", "eq", "eql", "same", "identical", "exactly"} or not words
            else "".join(sorted(words))
        )
        return Grade("!=" if negated and kind == "==" else kind, TRUTHY if negated else EXACT)
    return Grade(
        ("not " if negated else "") + "".join(sorted(words)), EXACT if compares else PREDICATE, unary=not compares
    )


def is_fixed(tokens: Tokens) -> bool:
    """Made of literals only."""
    return any(map(is_literal, tokens)) and not any(_is_name(token) for token in tokens)


def _is_name(token: str) -> bool:
    return (
        token.lstrip("$@")[:1].isidentifier()
        and not is_literal(token)
        and token not in ("new", "vec", "vec!", "array", "await")
    )


def comparison(tokens: Tokens) -> tuple[str, Tokens, Tokens] | None:
    """The operator at the top of an expression and its two sides."""
    depth = 0
    for at, token in enumerate(tokens):
        if token in ("(", "[", "{"):
            depth += 1
        elif token in (")", "]", "}"):
            depth -= 1
        elif depth == 0 and token in SIGNS and 0 < at < len(tokens) - 1:
            return SIGNS[token], tokens[:at], tokens[at + 1 :]
    return None


def parts(tokens: Tokens, sign: str) -> list[Tokens]:
    """An expression taken apart at `&&` or `||`."""
    found: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += token in ("(", "[", "{")
        depth -= token in (")", "]", "}")
        if token == sign and depth == 0:
            found.append([])
        else:
            found[-1].append(token)
    return [tuple(part) for part in found]


class Condition(Struct, frozen=True):
    op: str
    subject: Tokens
    expected: Tokens
    strength: float
    constant: bool = False


def condition(tokens: Tokens, *, negated: bool = False) -> Condition:
    """What an expression claims when it has to be true (or false)."""
    if (
        tokens[:1] == ("!",)
        and comparison(tokens) is None
        and len(parts(tokens, "&&")) == len(parts(tokens, "||")) == 1
    ):
        return condition(tokens[1:], negated=not negated)
    ands, ors = parts(tokens, "&&"), parts(tokens, "||")
    if len(ands) > 1 or len(ors) > 1:
        return _several(tokens, ands, ors, negated)
    if (found := comparison(tokens)) is not None:
        op, left, right = found
        op = _OPPOSITE[op] if negated else op
        if is_fixed(left) and not is_fixed(right):
            left, right = right, left
        same = left == right and op in ("==", "<=", ">=")
        return Condition(
            op, left, right, _BY_SIGN.get(op, BOUND), same or (is_fixed(left) and is_fixed(right) and op != "!=")
        )
    op, strength = ("not", BOUND) if negated else ("true", PREDICATE if "(" in tokens else TRUTHY)
    if "DeepEqual" in tokens or "equals" in tokens or "Equal" in tokens:
        op, strength = ("!=", TRUTHY) if negated else ("==", EXACT)
    always = is_fixed(tokens) and ("#false" in tokens or "#none" in tokens) == negated
    return Condition(op, tokens, (), strength, always)


def _several(tokens: Tokens, ands: list[Tokens], ors: list[Tokens], negated: bool) -> Condition:
    """All of several claims have to hold, or any of them will do."""
    every, inner = (
        (len(ors) > 1, ors if len(ors) > 1 else ands) if negated else (len(ors) == 1, ands if len(ors) == 1 else ors)
    )
    claims = [condition(part, negated=negated) for part in inner if part]
    strengths = [claim.strength for claim in claims] or [TRUTHY]
    if every:
        return Condition("and", tokens, (), max(strengths), all(claim.constant for claim in claims))
    return Condition("or", tokens, (), min(BOUND, *strengths), any(claim.constant for claim in claims))
